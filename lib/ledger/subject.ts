/**
 * The first line of each event's commit: what a person reads in `git log --oneline refs/durable/tasks/<task>`.
 *
 * It is derived from the event and nothing else, so that verify can derive it again. One line of at most 100
 * characters; control characters become spaces, so that a tool's argument can not rewrite somebody's terminal.
 */
import type { Event, EventType, ProcessRecord } from '../event.js';
import { displayPath } from '../git/path.js';
import { quantity } from '../quantity.js';

const SUBJECT_MAX = 100;

export function subjectOf(event: Event): string {
  const said = describe(event.type, event);
  const subject = said === '' ? event.type : `${event.type}: ${said}`;
  return cut(onOneLine(subject), SUBJECT_MAX);
}

/** Text of at most `max` UTF-16 code units; what is longer ends with an ellipsis and never with half a character. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text;
  const end = max - 1;
  const half = /[\ud800-\udbff]/.test(text.charAt(end - 1)) && /[\udc00-\udfff]/.test(text.charAt(end));
  return `${text.slice(0, half ? end - 1 : end)}…`;
}

/** Controls (C0, DEL, C1), line separators and direction overrides out; a lone surrogate, which has no UTF-8, as U+FFFD. */
function onOneLine(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\s]+/gu, ' ')
    .trim();
}

type Words = { readonly [T in EventType]: (event: Event<T>) => string };

function describe<T extends EventType>(type: T, event: Event<T>): string {
  return WORDS[type](event);
}

const short = (oid: string): string => oid.slice(0, 10);
const named = (process: ProcessRecord): string => `${String(process.pid)} ${process.command}`;

const WORDS: Words = {
  'task.opened': (e) => e.objective,
  'turn.started': (e) => `${e.objective} (${e.agent})`,
  'turn.finished': (e) => `${e.outcome}${e.summary === '' ? '' : `, ${e.summary}`}`,
  'turn.interrupted': (e) => `${e.reason} (seen by ${e.detectedBy})`,
  'turn.recovered': (e) =>
    `${e.action}, ${quantity(e.restored, 'file')} restored, ${String(e.removed)} removed`,
  'invocation.proposed': (e) => `${e.tool} ${e.summary}`,
  'invocation.started': (e) => e.invocation,
  'invocation.finished': (e) =>
    `${e.state}${e.exit === null ? '' : `, exit ${String(e.exit)}`}${e.summary === '' ? '' : `, ${e.summary}`}`,
  'approval.requested': (e) => `${e.tool} ${e.summary}`,
  'approval.resolved': (e) =>
    `${e.decision} by ${e.by}${e.feedbackSummary === '' ? '' : `, ${e.feedbackSummary}`}`,
  'approval.consumed': (e) => `${e.approval} ${e.use === 'run' ? 'lets a call run' : 'was returned'}`,
  'steering.received': (e) => e.text,
  'usage.recorded': (e) =>
    `${e.model ?? 'unknown model'}, ${String(e.inputTokens ?? 0)} in, ${String(e.outputTokens ?? 0)} out`,
  'checkpoint.taken': (e) => `${short(e.checkpoint)} ${e.reason}${e.message === '' ? '' : `, ${e.message}`}`,
  'transaction.prepared': (e) => `${quantity(e.paths, 'file')}, ${e.transaction}`,
  'transaction.committed': (e) => `${e.transaction} by ${e.by}`,
  'transaction.rolled-back': (e) => `${e.transaction} by ${e.by}, ${e.reason}`,
  'conflict.detected': (e) => `${displayPath(e.path)} ${e.why}`,
  'conflict.resolved': (e) => `${e.choice} by ${e.by}`,
  'process.started': (e) => `${named(e.process)}${e.background ? ' in the background' : ''}`,
  'process.reconciled': (e) => `${named(e.process)} ${e.outcome}`,
  'conversation.rewound': (e) => `to ${String(e.toSeq)}, ${e.reason}`,
  'workspace.restored': (e) =>
    `to ${short(e.checkpoint)}, ${quantity(e.restored, 'file')}, ${String(e.removed)} removed`,
  'git.observed': (e) => `${e.what}${e.ref === null ? '' : ` (${e.ref})`}`,
  'lease.acquired': (e) =>
    `epoch ${String(e.epoch)} by ${e.holder.agent}${e.takenOver === null ? '' : `, over ${String(e.takenOver.epoch)}`}`,
  'lease.lost': (e) => `epoch ${String(e.lostEpoch)}, ${e.reason}`,
  'lease.released': (e) => `epoch ${String(e.epoch)}`,
  'agent.switched': (e) => `${e.from} to ${e.to}`,
};
