/**
 * The contents that events name: are they there, do the kept bytes have their digest, and is every tree and file that a checkpoint
 * or a transaction reaches there?
 *
 * In batches, each through one git process, so that memory is bounded by a batch.
 */
import { digest } from '../canonical.js';
import { isDurableError } from '../errors.js';
import type { Event, Kept } from '../event.js';
import type { ReadAnswer } from '../git/objects.js';
import type { Storage } from '../git/storage.js';
import { Reach } from './contents-reach.js';

export interface ContentsFinding {
  readonly seq: number;
  readonly code: 'contents-missing' | 'contents-damaged';
  readonly detail: string;
}

export interface Named {
  /** What the event calls it. */
  readonly as: string;
  readonly oid: string;
  /** Digest of the bytes, where the event gives one. */
  readonly digest: string | null;
}

/** Not a conflict's `base`: it is a precondition, whose bytes are kept only where they were known. */
const SINGLE = ['checkpoint', 'undo', 'contents', 'theirs', 'mine'] as const;

/** Object ids of contents in an event: bytes it keeps, checkpoints, and both sides of a conflict. */
export function contentsNamed(event: Event): Named[] {
  const named: Named[] = [];
  const members: Readonly<Record<string, unknown>> = { ...event };
  for (const [as, value] of Object.entries(members)) {
    if (isKept(value)) named.push({ as, oid: value.oid, digest: value.digest });
  }
  for (const as of SINGLE) {
    const value = members[as];
    if (typeof value === 'string' && /^[0-9a-f]{40,64}$/.test(value))
      named.push({ as, oid: value, digest: null });
    else if (hasOid(value) && !isKept(value)) named.push({ as, oid: value.oid, digest: null });
  }
  if (event.type === 'turn.started') {
    const { oid, digest: status } = event.baseline.status;
    named.push({ as: 'status', oid, digest: status });
  }
  return named;
}

function hasOid(value: unknown): value is { readonly oid: string } {
  return typeof value === 'object' && value !== null && 'oid' in value && typeof value.oid === 'string';
}

function isKept(value: unknown): value is Kept {
  return hasOid(value) && 'digest' in value && typeof value.digest === 'string';
}

/** Of what an event names by an id alone: these are commits. */
const COMMITS: ReadonlySet<string> = new Set(['checkpoint', 'undo', 'contents']);

const BATCH = 1000;

export interface Waiting extends Named {
  readonly seq: number;
}

export class ContentsCheck {
  readonly #storage: Storage;
  readonly #reach: Reach;
  #waiting: Waiting[] = [];

  /** `bytes`: read all that is reached, and hold its bytes to its id. */
  constructor(storage: Storage, options: { readonly bytes: boolean }) {
    this.#storage = storage;
    this.#reach = new Reach(storage, options);
  }

  /** Findings come a batch at a time; `finish` gives the last. */
  async add(seq: number, named: readonly Named[]): Promise<ContentsFinding[]> {
    this.#waiting.push(...named.map((one) => ({ ...one, seq })));
    return this.#waiting.length < BATCH ? [] : this.finish();
  }

  async finish(): Promise<ContentsFinding[]> {
    const waiting = this.#waiting;
    this.#waiting = [];
    const bytes = waiting.filter((one) => one.digest !== null);
    const others = waiting.filter((one) => one.digest === null);
    const presence = await this.#presence(others);
    const lost = new Set(presence.map(({ oid }) => oid));
    const commits = others.filter(({ as, oid }) => COMMITS.has(as) && !lost.has(oid));
    const findings = presence.map(({ seq, code, detail }) => ({ seq, code, detail }));
    return [...(await this.#digests(bytes)), ...findings, ...(await this.#reach.check(commits))];
  }

  async #digests(kept: readonly Waiting[]): Promise<ContentsFinding[]> {
    const findings: ContentsFinding[] = [];
    let at = 0;
    while (at < kept.length) {
      try {
        for await (const answer of this.#storage.objects.readMany(kept.slice(at).map(({ oid }) => oid))) {
          const one = kept[at];
          at += 1;
          if (one !== undefined) findings.push(...judged(one, answer));
        }
      } catch (error) {
        // The object at which reading stopped; go on after it.
        const one = kept[at];
        if (!isDurableError(error) || one === undefined) throw error;
        findings.push({ seq: one.seq, code: 'contents-damaged', detail: `${one.as}: ${error.message}` });
        at += 1;
      }
    }
    return findings;
  }

  async #presence(named: readonly Waiting[]): Promise<(ContentsFinding & { readonly oid: string })[]> {
    if (named.length === 0) return [];
    const input = Buffer.from(named.map(({ oid }) => `${oid}\n`).join(''));
    const answers = (await this.#storage.git.output(['cat-file', '--batch-check'], { input })).toString(
      'latin1',
    );
    const lost = new Set([...answers.matchAll(/^([0-9a-f]+) missing$/gm)].map((match) => match[1]));
    const findings: (ContentsFinding & { readonly oid: string })[] = [];
    for (const { seq, as, oid } of named.filter((one) => lost.has(one.oid))) {
      // The journal may still have it: reading puts it back.
      const found = await this.#storage.objects.read(oid).catch((error: unknown) => {
        if (isDurableError(error)) return undefined;
        throw error;
      });
      if (found === undefined)
        findings.push({ oid, seq, code: 'contents-missing', detail: `${as} ${oid} is missing` });
    }
    return findings;
  }
}

function judged({ seq, as, oid, digest: expected }: Waiting, answer: ReadAnswer): ContentsFinding[] {
  if ('missing' in answer) return [{ seq, code: 'contents-missing', detail: `${as} ${oid} is missing` }];
  if (expected === null || digest(answer.body) === expected) return [];
  return [{ seq, code: 'contents-damaged', detail: `${as} ${oid} has another SHA-256` }];
}
