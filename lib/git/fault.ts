/**
 * Fault points: one before and one after each operation that changes the disk, starts a git process or a container client, or
 * ends a process.
 *
 * A point is `<site>:<operation>:before` or `…:after`; the site says why the operation is done, the operation is one of
 * `write`, `fsync`, `rename`, `link`, `unlink`, `mkdir`, `rmdir`, `spawn`, `signal`, `bind` (a socket), `take` (a step of an agent). `Disk` and
 * `Git` hit them, so no call can forget one; crash tests kill or pause a real process at each, and one test holds the points against strace.
 */

/** Every site there is. A site is added here first, with the reason the operation is done. */
export const SITES = [
  // lib/git/objects: a loose object and its journal link
  'object.temp', // the deflated object, among the tickets: a prune takes away temporary files beside objects
  'object.journal', // temp becomes the journal's entry, which outlives a prune (invariant 5)
  'object.publish', // the journal's file is linked as the loose object
  'object.restore', // a reader puts a pruned object back from the journal
  'object.drop', // a superseded lease record leaves no litter
  // lib/git/refs: compare-and-swap in git's own lock protocol (PROTOCOL.md 10, 26)
  'ticket.write', // who owns the locks of this process
  'ticket.drop',
  'ref.lock', // link(ticket, <ref>.lock)
  'ref.value', // the new value, beside the ref
  'ref.move', // temp becomes the ref
  'ref.unlock',
  'claim.link', // claims/<ticket>: the right to remove a dead owner's lock
  'claim.unlock', // the dead owner's lock goes
  'claim.drop',
  // lib/lease: workspace id, staging (PROTOCOL.md 15), write tickets (16), gc.pid
  'workspace.write', // the id file, whole, beside its name
  'workspace.place', // linked when there is none, renamed over a copied one
  'stage.make', // once, at acquisition
  'stage.temp', // new content, before the check
  'stage.keep', // the old file, linked into the stage after the check
  'stage.publish', // temp becomes the target
  'stage.remove', // a deletion: the target goes into the stage
  'stage.drop', // a temp or kept file that nobody needs
  'stage.revoke', // a taker, healer or releasing holder takes the epoch's stage away
  'stage.sweep', // revoked stages go at a later orderly release
  'tree.folder', // missing parents in the work tree
  'tree.prune', // folders that a rollback made, or a removal emptied, go again
  'writing.show', // the ticket of a write on another file system
  'writing.temp', // its temp, beside the target
  'writing.publish', // its rename, or deletion
  'writing.drop', // its temp, when it was not renamed
  'writing.hide', // the ticket goes, the write is over
  'writing.break', // a taker removes a dead writer's ticket and temp
  'maintenance.hold', // gc.pid
  'maintenance.drop',
  'keeper.start', // the keeper process
  'keeper.listen', // lib/agents/serve: its socket, and the folder that only its user can enter
  'keeper.serve', // it takes a step that a hook brought
  'process.end', // a process of an older epoch, or an orphan, gets TERM or KILL
  // lib/orphans
  'container.ask', // docker or podman lists containers
  'container.stop', // and ends one
  // lib/fence: index.lock and what hooks read (PROTOCOL.md 25 to 29)
  'fence.lock', // link(ticket, index.lock), before the lease is claimed
  'fence.pid', // the pid of the holder, as newer git names it to whom it refuses
  'fence.state', // who holds the work tree, for hooks in sh
  'fence.view', // what the observer saw last
  'fence.hook', // hooks of ours, chained, and what keeps them out of git status
  'fence.config', // git sets or takes away a setting of ours
  'fence.lower', // all of that goes, once the turn's end is recorded, or the owner is proven dead
  // lib/ledger
  'ledger.settle', // an event found instead of written is flushed before its receipt
  'ledger.torn', // what is left of a torn newest event goes aside
  'journal.pack', // git makes one pack of journalled objects, in a quarantine
  'journal.drop', // loose and journal copies of what that pack has
  // lib/git/quarantine, snapshot, keep: a checkpoint's objects and its private git dir (invariants 5, 6)
  'quarantine.make', // the folder and its owner's ticket
  'quarantine.scratch', // what only this process reads: a copy of the private index, bytes of files that keep changing
  'quarantine.drop', // all of it goes, by its owner or after its owner's death
  'snapshot.setup', // the private git dir's own few files
  'snapshot.scan', // git status with the copy of the private index
  'snapshot.add', // git takes new bytes into the quarantine
  'snapshot.tree', // git write-tree
  'snapshot.pack', // one pack of what is not reachable yet
  'snapshot.publish', // .keep, .pack, .idx into the object store
  'snapshot.index', // the private index becomes the next checkpoint's start
  'snapshot.reset', // a private index that cannot be used goes
  'keep.seal', // the pack is reachable from a ref of ours
  'keep.drop', // no maintenance from before the seal is running any more
  // hooks/install: an uninstall
  'install.purge', // git deletes our refs in one transaction
  'install.remove', // a file or folder of ours goes, with all in it
  // hooks/install-agents, lib/agents/seen, asked
  'agent.record', // what an agent's file was, before it is edited
  'agent.file', // hooks of ours in an agent's file, or out of it again
  'agent.seen', // a hook of ours fired
  'agent.asked', // a prompt that could start no turn, until it is what a turn is for
  // lib/agents/inbox
  'inbox.write', // what an agent told of and nobody could record, kept whole
  'inbox.aside', // its turn is over: it waits for a person
  'inbox.drop', // it is on record
] as const;

export type Site = (typeof SITES)[number];
export type Operation =
  'write' | 'fsync' | 'rename' | 'link' | 'unlink' | 'mkdir' | 'rmdir' | 'spawn' | 'signal' | 'bind' | 'take';
export type FaultPoint = `${Site}:${Operation}:${'before' | 'after'}`;

export interface Faults {
  readonly hit: (point: FaultPoint) => void;
}

export const noFaults: Faults = { hit: () => undefined };

/**
 * Faults from a plan such as `ref.move:rename:before=kill` or `stage.move:rename:before#3=stop` (the third hit),
 * several joined by commas; `trace` makes each point visible to strace as an access of `/durable-point/<point>`.
 * Only the entry points of programs (cli, keeper, test children) read a plan from their environment.
 */
export function plannedFaults(plan: string | undefined, act: FaultActions): Faults {
  if (plan === undefined || plan === '') return noFaults;
  const rules = plan.split(',').map(parseRule);
  const seen = new Map<string, number>();
  return {
    hit: (point) => {
      const count = (seen.get(point) ?? 0) + 1;
      seen.set(point, count);
      for (const rule of rules) {
        if (rule.action === 'trace') act.trace(point);
        else if (rule.point === point && rule.nth === count) act[rule.action](point);
      }
    },
  };
}

export interface FaultActions {
  /** Ends this process at once, as SIGKILL does. */
  readonly kill: (point: FaultPoint) => void;
  /** Stops this process until SIGCONT. */
  readonly stop: (point: FaultPoint) => void;
  /** Throws an out-of-space error, as a full disk does. */
  readonly enospc: (point: FaultPoint) => void;
  readonly trace: (point: FaultPoint) => void;
}

interface Rule {
  readonly point: string;
  readonly nth: number;
  readonly action: keyof FaultActions;
}

function parseRule(text: string): Rule {
  if (text === 'trace') return { point: '', nth: 0, action: 'trace' };
  const match = /^([^#=]+)(?:#(\d+))?=(kill|stop|enospc)$/.exec(text);
  if (match === null) throw new RangeError(`not a fault rule: ${text}`);
  return { point: match[1] ?? '', nth: Number(match[2] ?? '1'), action: match[3] as Rule['action'] };
}
