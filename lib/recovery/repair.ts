/**
 * Repairing an interrupted turn: keep, roll back or roll forward. Named steps, in this order (PROTOCOL.md 11 to 18):
 *
 *   0. refuse beforehand        what is known to be refused, before anything is ended for it
 *   1. take the lease over      the holder is dead, or is ended; older stages revoked, older writers ended or awaited
 *   2. find                     only now the tree is read: a verdict for each touched path
 *   3. checkpoint               the tree just before, so that the repair can be undone by restoring it
 *   4. apply                    the images, through one recorded transaction of the new epoch
 *   5. find again               a path that changed since is a late write: kept, named by `conflict.detected`
 *   6. record                   older transactions settled, conflicts that were met decided, processes reconciled,
 *                               `turn.recovered` with the report: one append
 *   7. release the lease
 *
 * Guarantees: `keep` changes no byte. A foreign path is never overwritten, nor is one that the checkpoint of step 3 does not hold. Every step may be done again: a repair that is
 * killed anywhere leaves an interrupted turn, and the next roll, in whichever direction, ends as if the first had never run; its
 * checkpoint is that of the first one which had begun to change the tree, so that undoing goes all the way back.
 * Conflicts with somebody who writes during step 4 put the step back, and the finding is made anew, three times at most
 * (lib/recovery/met.ts).
 */
import { DurableError, hasCode } from '../errors.js';
import type { EventDraft } from '../event.js';
import { pruneFolders } from '../files/apply.js';
import { takeCheckpoint } from '../files/checkpoint.js';
import { recordConflict } from '../files/conflict.js';
import type { Move } from '../files/manifest.js';
import { look } from '../files/revision.js';
import { applyEntries, type TransactionContext } from '../files/transaction.js';
import { matches } from '../files/verdict.js';
import type { Storage } from '../git/storage.js';
import type { Held } from '../lease/hold.js';
import { ownWorkspace } from '../lease/take.js';
import { takeOver } from '../lease/takeover.js';
import type { Ledger } from '../ledger/ledger.js';
import type { ConflictState } from '../ledger/state.js';
import { acquiredDraft } from '../turn/lease-events.js';
import { aimOf, type Aim } from './aim.js';
import type { InterruptedTurn, RepairAction, RepairResult } from './document.js';
import { findingsOf, type Findings } from './findings.js';
import { chosenCutRestore, repairCutRestore } from './cut-restore.js';
import { chosenTurn, openTurnIn, interruptedHere, refuseLiveHolder, type OpenTurn } from './interrupted.js';
import { refuseLossy } from './losses.js';
import { conflictsMet, decided } from './met.js';
import { draftOf, isRepair, keepReport, settlements, writtenInFact } from './outcome.js';
import { reportOf } from './report.js';
import { aftermathOf } from './scene.js';

export interface RepairRequest {
  readonly action: RepairAction;
  /** Id, or the beginning of one. Default: the only interrupted turn of this work tree. */
  readonly turn?: string;
  /** A person said so: a live but stuck holder's recorded processes are ended first. */
  readonly takeOver?: boolean;
  /** Who repairs, as the ledger shows it. Default 'recover'. */
  readonly agent?: string;
}

/**
 * Errors: 'not-found', 'ambiguous' (which turn), 'lease-held', 'lease-unproven', 'transaction-failed', 'object-missing', the
 * disk's. What can be known beforehand is refused before any process is ended. After an error the turn is still interrupted and may be repaired again.
 */
export async function repair(storage: Storage, request: RepairRequest): Promise<RepairResult> {
  const agent = request.agent ?? 'recover';
  const interrupted = await interruptedHere(storage);
  const named = interrupted.map(({ turn }) => turn.id).filter((id) => id.startsWith(request.turn ?? ''));
  const cut = await chosenCutRestore(storage, request.turn, named);
  if (cut !== null)
    return repairCutRestore(storage, cut, {
      action: request.action,
      agent,
      force: request.takeOver ?? false,
    });
  const open = await chosenTurn(storage, request.turn);
  if (request.takeOver !== true) refuseLiveHolder(storage, open);
  // Without either, the takeover refuses before it ends anything.
  if (open.detectedBy !== null || request.takeOver === true)
    await refuseBeforehand(storage, open, request.action);
  const held = await takeOver(storage, {
    kind: 'operation',
    task: open.state.task,
    turn: open.turn.id,
    turnKey: null,
    objective: `${request.action}: ${open.turn.started.event.objective}`,
    agent,
    force: request.takeOver ?? false,
  });
  const parts = { held, agent, action: request.action, ledger: open.ledger, turn: open.turn.id };
  try {
    const result = await new Repair(storage, parts).run();
    await held.release();
    return result;
  } catch (error) {
    await held.letGo();
    throw error;
  }
}

/** Nothing that is found here is used: the tree is read again once older writers are over. */
async function refuseBeforehand(storage: Storage, open: OpenTurn, action: RepairAction): Promise<void> {
  const { ledger, state, turn } = open;
  const aftermath = aftermathOf(storage, open);
  const { lost } = await findingsOf({ storage, ledger }, { state, turn, aftermath });
  refuseLossy(action, lost);
}

/**
 * The draft of `turn.recovered` for a turn that goes on under `held`: what was found is kept, no byte is changed.
 * Errors as those of the report.
 */
export async function recoveredDraft(
  storage: Storage,
  ledger: Ledger,
  recovery: { readonly held: Held; readonly turn: string; readonly action: 'resume' },
): Promise<EventDraft> {
  const open = await openTurnNamed(storage, ledger, recovery.turn);
  const { document, findings } = await reportOf({ storage, ledger }, open);
  const outcome = { action: recovery.action, checkpoint: null, restored: 0, removed: 0 } as const;
  return draftOf({ report: await keepReport(ledger, document), findings, held: recovery.held, outcome });
}

async function openTurnNamed(storage: Storage, ledger: Ledger, turn: string): Promise<OpenTurn> {
  const open = await openTurnIn(storage, ledger);
  if (open?.turn.id === turn) return open;
  throw new DurableError('turn-closed', { turn, state: 'over' });
}

interface Applied {
  readonly open: OpenTurn;
  readonly document: InterruptedTurn;
  readonly findings: Findings;
  readonly aim: Aim;
  readonly checkpoint: string;
}

const MOST_TRIES = 3;

class Repair {
  readonly #context: TransactionContext & { readonly turn: string; readonly workspace: string };
  readonly #action: RepairAction;

  constructor(
    storage: Storage,
    parts: { held: Held; agent: string; action: RepairAction; ledger: Ledger; turn: string },
  ) {
    const { held, agent, ledger, turn } = parts;
    this.#context = { storage, ledger, held, agent, workspace: ownWorkspace(storage), turn };
    this.#action = parts.action;
  }

  async run(): Promise<RepairResult> {
    const applied = await this.#apply();
    const met = await this.#met(applied);
    await this.#findLateWrites(applied);
    const changed = writtenInFact(this.#context.storage, applied.aim, applied.findings);
    await this.#record(applied, changed, met);
    return {
      turn: this.#context.turn,
      action: this.#action,
      ...changed,
      kept: applied.aim.kept,
      uncovered: applied.document.uncovered,
      uncoveredCount: applied.document.uncoveredCount,
      checkpoint: applied.checkpoint,
      foreign: this.#context.held.takenOver?.foreign ?? [],
    };
  }

  /** Steps 2 to 4, again when somebody wrote in between. */
  async #apply(): Promise<Applied> {
    let taken: string | null = null;
    for (let tries = 1; ; tries += 1) {
      const { storage, ledger, turn } = this.#context;
      const open = await openTurnNamed(storage, ledger, turn);
      const { document, findings } = await reportOf({ storage, ledger }, open);
      refuseLossy(this.#action, findings.lost);
      const checkpoint: string = taken ?? (await this.#checkpoint(open, findings));
      taken = checkpoint;
      const aim = await aimOf(storage, { action: this.#action, findings, checkpoint });
      try {
        await this.#move(aim);
        return { open, document, findings, aim, checkpoint };
      } catch (error) {
        if (!hasCode(error, 'conflict') || tries === MOST_TRIES) throw error;
      }
    }
  }

  async #checkpoint({ turn }: OpenTurn, { files }: Findings): Promise<string> {
    const { storage, ledger, agent, workspace } = this.#context;
    const earlier = turn.checkpoints.findLast(({ reason }) => reason === 'before-repair');
    if (earlier !== undefined && turn.transactions.some((one) => isRepair(one, turn))) return earlier.commit;
    const taken = await takeCheckpoint(storage, ledger, {
      message: `before ${this.#action} of turn ${turn.id}`,
      reason: 'before-repair',
      turn: turn.id,
      by: { agent, workspace },
      // Named ones count as looked at even where nothing is, so that the undo takes away what the repair brings there.
      paths: files.filter(({ sight }) => sight.found !== 'directory').map(({ touched }) => touched.path),
    });
    return taken.checkpoint;
  }

  async #move({ moves, prune }: Aim): Promise<void> {
    if (moves.length > 0)
      await applyEntries(this.#context, moves, { purpose: 'repair', isKept: false, prune });
    // A repair that was killed before this had no more paths to move.
    else pruneFolders(this.#context.storage, prune);
  }

  async #met({ open: { turn } }: Applied): Promise<readonly ConflictState[]> {
    const state = await this.#context.ledger.state();
    const repairs = [...state.transactions.values()].filter(
      (one) => one.prepared.event.turn === turn.id && isRepair(one, turn),
    );
    return conflictsMet(state, turn.id, repairs);
  }

  async #findLateWrites({ aim, findings }: Applied): Promise<void> {
    const { storage } = this.#context;
    const moved = new Map(aim.moves.map(({ path, to }) => [path, to]));
    for (const { touched, sight } of findings.files) {
      const { path } = touched;
      const left = moved.get(path);
      const now = look(storage, path);
      const before = sight.found === 'directory' || sight.found === 'special' ? null : sight.found;
      if (left === undefined ? sameFound(now.found, sight.found) : matches(now.found, left)) continue;
      const move: Move = {
        path,
        from: left === undefined ? before : left,
        to: left === undefined ? before : left,
      };
      const clash = { move, found: now.found, bytes: now.bytes, late: true };
      await recordConflict(this.#context, { clash, why: 'late-write' });
    }
  }

  async #record(
    applied: Applied,
    changed: Pick<RepairResult, 'restored' | 'removed'>,
    conflicts: readonly ConflictState[],
  ): Promise<void> {
    const { storage, ledger, held, agent, workspace } = this.#context;
    const { document, findings, checkpoint } = applied;
    const outcome = {
      action: this.#action,
      checkpoint,
      restored: changed.restored.length,
      removed: changed.removed.length,
    };
    const recovered = draftOf({ report: await keepReport(ledger, document), findings, held, outcome });
    const ended = held.takenOver?.ended ?? [];
    await ledger.append(
      async (state) => [
        acquiredDraft(held),
        ...(await settlements(this.#context, state, this.#action)),
        ...decided(storage, state, { conflicts, by: agent }),
        ...ended.map((process): EventDraft => ({ type: 'process.reconciled', process, outcome: 'stopped' })),
        recovered,
        { type: 'lease.released', turn: this.#context.turn },
      ],
      { lease: held.token, agent, workspace },
    );
  }
}

function sameFound(a: Findings['files'][number]['sight']['found'], b: typeof a): boolean {
  return typeof a === 'string' || typeof b === 'string' ? a === b : matches(a, b);
}
