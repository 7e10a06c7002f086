/**
 * A step that tells what has happened (a tool ran, a turn ended) is recorded or kept, and the agent goes on either way: nothing of it
 * can be refused any more, and nobody tells it twice.
 *
 * What cannot be appended goes to the inbox (lib/agents/inbox.ts): the disk refused it, the ledger is damaged, the lease is
 * lost. What is not on record shortly before the host stops waiting goes there as well, and is taken out again should it be recorded after all: killed in between, the
 * next step of the agent finds it by its key. Where the inbox refuses it too (the same full disk), that is all there is to say.
 */
import { messageOf } from '../errors.js';
import type { Storage } from '../git/storage.js';
import { placeOf } from './deliver.js';
import { takeStep } from './gate.js';
import { dropPayload, keepPayload, type InboxFile } from './inbox.js';
import { isWithin } from './limits.js';
import type { AgentProcess, OwnTurn } from './own-turn.js';
import { PASS, type Reply, type Step } from './step.js';

const REPORTS: ReadonlySet<Step['kind']> = new Set(['after-tool', 'answer', 'stop', 'session-end']);

/** Whether this tells what has happened, so that it is not refused. */
export const isReport = ({ kind }: Step): boolean => REPORTS.has(kind);

interface Told {
  readonly by: AgentProcess;
  readonly step: Step;
  /** As the hook read it. */
  readonly payload: string;
  /** The session's turn, when it was looked up a moment ago. */
  readonly own?: OwnTurn | undefined;
}

/** `leftMs`: until the host may stop waiting. `note`: told what could not be recorded, and where it is. Never throws. */
export async function report(
  storage: Storage,
  told: Told,
  { leftMs, note }: { readonly leftMs: number; readonly note: (line: string) => void },
): Promise<Reply> {
  const recorded = takeStep(storage, told.by, told.step, told.own);
  const heard = { by: told.by, session: told.step.session, payload: told.payload };
  let kept: InboxFile | null = null;
  try {
    if (!(await isWithin(recorded, leftMs)))
      kept = await keep(storage, heard, 'the agent is about to wait no longer', note);
    const reply = await recorded;
    if (kept !== null) dropPayload(storage, kept);
    return reply;
  } catch (error) {
    if (kept === null) await keep(storage, heard, messageOf(error), note);
    else note(`it stays there: ${messageOf(error)}`);
    return PASS;
  }
}

export interface Heard {
  readonly by: AgentProcess;
  /** '' where it is not known. */
  readonly session: string;
  readonly payload: string;
}

/** Puts it into the inbox; null where it could not be kept. Never throws. */
export async function keep(
  storage: Storage,
  { by, session, payload }: Heard,
  why: string,
  note: (line: string) => void,
): Promise<InboxFile | null> {
  const { agent, process } = by;
  try {
    const place = await placeOf(storage, by, session);
    const at = storage.host.now().toISOString();
    const { workTree } = storage.layout;
    const kept = keepPayload(storage, { v: 1, at, agent, process, workTree, place, why, payload });
    const said = kept === null ? 'not kept, since the inbox is full' : 'kept in the inbox';
    note(`what ${agent} told was not recorded, and is ${said} (git durable doctor): ${why}`);
    return kept;
  } catch (error) {
    note(`what ${agent} told was neither recorded (${why}) nor kept: ${messageOf(error)}`);
    return null;
  }
}
