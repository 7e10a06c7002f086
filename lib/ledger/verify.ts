/**
 * Is a ledger whole, and does everything in it follow? Reads all of it; writes nothing, and damage is a finding.
 *
 * Steps, oldest event first: the ref is at a commit · each object's id is its bytes' · one parent, the event before · the line
 * decodes, is canonical, and chain, trailers and subject follow from it (lib/ledger/message.ts) · numbers without gaps · turnStart,
 * previousTurn and what is carried are right · the event was allowed then · epochs never go down within a lease, each
 * begins with lease.acquired and has one holder · the contents it names are there and have their digest.
 *
 * The first event at which the chain itself breaks ends the search: what follows it proves nothing. Contents are looked
 * for only where the task has a contents ref (a ledger may travel without); images of `paths` are not looked for, since
 * an intent may name bytes that never came to be.
 */
import { canonicalJson, chainStart } from '../canonical.js';
import { factOf, isDurableError } from '../errors.js';
import type { Event, Recorded } from '../event.js';
import { CONTENTS_PREFIX } from '../git/contents.js';
import type { ReadAnswer } from '../git/objects.js';
import { parseCommit, treeBody } from '../git/objects-format.js';
import type { Storage } from '../git/storage.js';
import { contentsNamed, ContentsCheck } from './contents-check.js';
import { EpochCheck } from './epoch-check.js';
import { openDecisions } from './carried.js';
import { fold, initialState } from './fold.js';
import { decodeEvent, disagreement } from './message.js';
import { refusal } from './rules.js';
import type { TaskState } from './state.js';
import { pathOf } from './stream.js';

export type FindingCode =
  | 'ref-damaged'
  | 'object-missing'
  | 'object-damaged'
  | 'not-linear'
  | 'event-invalid'
  | 'version-unsupported'
  | 'chain-broken'
  | 'seq-gap'
  | 'other-task'
  | 'turn-start-wrong'
  | 'carried-wrong'
  | 'not-allowed'
  | 'epoch-went-down'
  | 'epoch-not-acquired'
  | 'epoch-shared'
  | 'contents-missing'
  | 'contents-damaged';

export interface Finding {
  readonly task: string;
  /** Number of the event, null when the ledger as a whole is meant. */
  readonly seq: number | null;
  readonly code: FindingCode;
  readonly detail: string;
}

export interface Verification {
  readonly ok: boolean;
  /** How many were found good, from the first one. */
  readonly events: number;
  /** Commit the ledger's ref is at. */
  readonly head: string | null;
  /** Chain value of the newest good event. */
  readonly chain: string | null;
  readonly findings: readonly Finding[];
}

export interface VerifyOf {
  readonly task: string;
  readonly ref: string;
  /** Read every object that its checkpoints and transactions reach, and not only look for it. Default false. */
  readonly contents?: boolean;
}

export async function verifyLedger(storage: Storage, of: VerifyOf): Promise<Verification> {
  const { task, ref } = of;
  const verifier = new Verifier(storage, task, of.contents ?? false);
  let head: string | null = null;
  try {
    head = storage.refs.read(ref);
    if (head !== null) await verifier.run(head);
    storage.refs.read(`${CONTENTS_PREFIX}${task}`);
  } catch (error) {
    if (!isDurableError(error)) throw error;
    verifier.broken('ref-damaged', factOf(error));
  }
  return verifier.result(head);
}

/** More than this many findings tell a person nothing new. */
const MOST = 100;

class Verifier {
  readonly #storage: Storage;
  readonly #task: string;
  readonly #findings: Finding[] = [];
  readonly #epochs = new EpochCheck();
  readonly #contents: ContentsCheck | null;
  readonly #emptyTree: string;
  #state: TaskState;
  #events = 0;
  #stopped = false;

  constructor(storage: Storage, task: string, bytes: boolean) {
    this.#storage = storage;
    this.#task = task;
    this.#state = initialState(task);
    this.#emptyTree = storage.objects.hash('tree', treeBody([]));
    const kept = storage.refs.names(CONTENTS_PREFIX).includes(`${CONTENTS_PREFIX}${task}`);
    this.#contents = kept ? new ContentsCheck(storage, { bytes }) : null;
  }

  async run(head: string): Promise<void> {
    const { commits, damage } = await pathOf(this.#storage, this.#task, { after: null, to: head });
    commits.reverse();
    const gap = damage === null ? null : damage.fields.commit;
    await this.#readAll(commits);
    if (!this.#stopped && gap !== null) {
      this.broken(gap === head ? 'ref-damaged' : 'object-damaged', damage?.fields.detail ?? '');
    }
    if (this.#contents !== null) this.#add(await this.#contents.finish());
  }

  /** The chain ends here. */
  broken(code: FindingCode, detail: string): void {
    this.#add([{ seq: this.#stopped ? null : this.#events + 1, code, detail }]);
    this.#stopped = true;
  }

  result(head: string | null): Verification {
    const findings = [...this.#findings].sort((a, b) => (a.seq ?? 0) - (b.seq ?? 0));
    const chain = this.#state.head?.chain ?? null;
    return { ok: findings.length === 0, events: this.#events, head, chain, findings };
  }

  async #readAll(commits: readonly string[]): Promise<void> {
    try {
      for await (const answer of this.#storage.objects.readMany(commits)) {
        await this.#event(answer);
        if (this.#stopped) return;
      }
    } catch (error) {
      if (!isDurableError(error)) throw error;
      this.broken('object-damaged', factOf(error));
    }
  }

  async #event(answer: ReadAnswer): Promise<void> {
    const { oid } = answer;
    if ('missing' in answer) {
      this.broken('object-missing', `commit ${oid} is missing`);
      return;
    }
    if (this.#storage.objects.hash(answer.type, answer.body) !== oid) {
      this.broken('object-damaged', `the bytes of ${oid} have another id`);
      return;
    }
    const recorded = this.#decoded(oid, answer);
    if (recorded === null) return;
    this.#follows(recorded);
    if (this.#contents !== null) {
      this.#add(await this.#contents.add(recorded.event.seq, contentsNamed(recorded.event)));
    }
    this.#state = fold(this.#state, recorded);
    this.#events += 1;
  }

  /** The event, when it is one and its place in the chain is right. */
  #decoded(oid: string, { type, body }: Exclude<ReadAnswer, { missing: true }>): Recorded | null {
    const before = this.#state.head;
    try {
      if (type !== 'commit') return this.#refuse('event-invalid', `${oid} is a ${type}`);
      const { tree, parents, message } = parseCommit(body);
      if (parents.join(' ') !== (before?.commit ?? '')) {
        return this.#refuse('not-linear', `the parents of ${oid} are not the event before it`);
      }
      const recorded = decodeEvent(message, oid);
      const { event } = recorded;
      if (event.task !== this.#task) return this.#refuse('other-task', `${oid} is of task ${event.task}`);
      if (event.seq !== this.#events + 1)
        return this.#refuse('seq-gap', `${oid} has number ${String(event.seq)}`);
      const wrong = disagreement(message, event, before?.chain ?? chainStart(this.#task));
      if (wrong !== null) return this.#refuse('chain-broken', `${oid}: ${wrong}`);
      if (tree !== this.#emptyTree) return this.#refuse('chain-broken', `${oid}: its tree is not empty`);
      return recorded;
    } catch (error) {
      if (!isDurableError(error)) throw error;
      if (error.code === 'version-unsupported') return this.#refuse(error.code, error.message);
      return this.#refuse('event-invalid', `${oid}: ${factOf(error)}`);
    }
  }

  #refuse(code: FindingCode, detail: string): null {
    this.broken(code, detail);
    return null;
  }

  #follows({ event }: Recorded): void {
    const { seq } = event;
    const wrong = misplaced(this.#state, event);
    if (wrong !== null) this.#add([{ seq, ...wrong }]);
    const refused = refusal(this.#state, event);
    if (refused !== null) this.#add([{ seq, code: 'not-allowed', detail: refused.message }]);
    this.#add(this.#epochs.add(event).map((finding) => ({ seq, ...finding })));
  }

  #add(findings: readonly Omit<Finding, 'task'>[]): void {
    const room = MOST - this.#findings.length;
    for (const finding of findings.slice(0, room)) this.#findings.push({ task: this.#task, ...finding });
  }
}

interface Wrong {
  readonly code: FindingCode;
  readonly detail: string;
}

/** What an event says of its turn, against the events before it. */
function misplaced(state: TaskState, event: Event): Wrong | null {
  if (event.type !== 'turn.started') {
    const expected = state.turnStart;
    return event.turnStart === expected
      ? null
      : {
          code: 'turn-start-wrong',
          detail: `it names ${event.turnStart ?? 'none'} and not ${expected ?? 'none'}`,
        };
  }
  const right =
    event.turnStart === null &&
    event.previousTurn === state.turnStart &&
    event.opened === state.opened &&
    event.previousCheckpoint === state.lastCheckpoint;
  if (!right)
    return { code: 'turn-start-wrong', detail: 'it does not name the turn and the checkpoint before it' };
  return canonicalJson(event.carried) === canonicalJson(openDecisions(state))
    ? null
    : { code: 'carried-wrong', detail: 'it does not carry over exactly what was undecided' };
}
