/**
 * An event as a commit message and back.
 *
 *     <subject>                       derived, for people
 *
 *     {"agent":…,"v":1}               canonical JSON, one line: the evidence
 *
 *     Durable-Seq: 12                 derived from the line
 *     Durable-Chain: sha256:<hex>     derived from the line and the chain before it
 *
 * Decoding reads `v` before anything else, so that an event of a newer program is named as such and not as broken. What
 * is not an event of ours is 'event-invalid', whatever its bytes are; decoding never throws anything else. A decoded
 * event has passed its schema; that subject, trailers and chain agree with the line is checked by `matches` (verify),
 * not at each read.
 */
import * as v from 'valibot';
import { canonicalJson, chainNext } from '../canonical.js';
import { DurableError } from '../errors.js';
import { FORMAT_VERSION, SCHEMAS, type Event, type EventType, type Recorded } from '../event.js';
import { subjectOf } from './subject.js';

export interface EncodedEvent {
  readonly message: string;
  readonly chain: string;
}

/** The message of an event that follows `previous` (a chain value, 64 hex digits). */
export function encodeEvent(event: Event, previous: string): EncodedEvent {
  const line = canonicalJson(event);
  const chain = chainNext(previous, line);
  return { message: messageOf(event, line, chain), chain };
}

/** Errors: 'event-invalid', 'version-unsupported'; both name `commit`. */
export function decodeEvent(message: string, commit: string): Recorded {
  const parts = split(message, commit);
  return recorded(commit, parts.chain, decodeLine(parts.line, commit));
}

/** The first thing about a message that its own line and the chain before it do not say; null when all agrees. */
export function disagreement(message: string, event: Event, previous: string): string | null {
  const expected = encodeEvent(event, previous);
  if (expected.message === message) return null;
  const [subject = '', , line = '', , seq = '', chain = ''] = message.split('\n');
  if (line !== canonicalJson(event)) return 'its line is not canonical JSON';
  if (chain !== `Durable-Chain: sha256:${expected.chain}`) return 'its chain value does not follow';
  if (seq !== `Durable-Seq: ${String(event.seq)}`) return 'its Durable-Seq is not its line’s';
  if (subject !== subjectOf(event)) return 'its subject is not derived from its line';
  return 'its message has something added';
}

function messageOf(event: Event, line: string, chain: string): string {
  return `${subjectOf(event)}\n\n${line}\n\nDurable-Seq: ${String(event.seq)}\nDurable-Chain: sha256:${chain}\n`;
}

interface Parts {
  readonly line: string;
  readonly chain: string;
}

const CHAIN = '\nDurable-Chain: sha256:';

/** Cuts by position and not by lines: a ledger of 100,000 events is read through here. */
function split(message: string, commit: string): Parts {
  const start = message.indexOf('\n\n') + 2;
  const end = message.indexOf('\n', start);
  const at = end === -1 ? -1 : message.indexOf(CHAIN, end);
  if (start === 1 || at === -1 || message.charAt(start) !== '{') {
    throw invalid(commit, 'its message has no event line and trailers');
  }
  const chain = message.slice(at + CHAIN.length, at + CHAIN.length + 64);
  if (!/^[0-9a-f]{64}$/.test(chain)) throw invalid(commit, 'its Durable-Chain is not a SHA-256');
  return { line: message.slice(start, end), chain };
}

function decodeLine(line: string, commit: string): Event {
  const value = parsed(line, commit);
  const version = memberOf(value, 'v');
  if (typeof version !== 'number') throw invalid(commit, 'its line has no version');
  if (version > FORMAT_VERSION) {
    throw new DurableError('version-unsupported', {
      found: version,
      supported: FORMAT_VERSION,
      where: `commit ${commit}`,
    });
  }
  const type = memberOf(value, 'type');
  if (!isEventType(type)) throw invalid(commit, `no event type ${JSON.stringify(type)}`);
  return validated(type, value, commit);
}

function parsed(line: string, commit: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw invalid(commit, 'its line is not JSON', error);
  }
}

/** Errors: 'event-invalid' with the path of the first member that does not fit. */
export function validated<T extends EventType>(type: T, value: unknown, commit: string | null): Event<T> {
  const result = v.safeParse(SCHEMAS[type], value, { abortEarly: true, abortPipeEarly: true });
  if (result.success) return result.output;
  const [issue] = result.issues;
  throw invalid(commit, `${type}: ${v.getDotPath(issue) ?? 'event'}: ${issue.message}`);
}

export function isEventType(type: unknown): type is EventType {
  return typeof type === 'string' && Object.hasOwn(SCHEMAS, type);
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && name in value
    ? Object.getOwnPropertyDescriptor(value, name)?.value
    : undefined;
}

function recorded(commit: string, chain: string, event: Event): Recorded {
  return { commit, chain, event };
}

function invalid(commit: string | null, detail: string, cause?: unknown): DurableError {
  return new DurableError('event-invalid', { commit, detail }, cause);
}
