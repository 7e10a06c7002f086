/**
 * Long ledgers, made fast: events are planned by the library's own code, and written by `git fast-import` into one pack
 * instead of one flushed loose object each. The commits have the very ids that appends would have given them.
 */
import { spawnSync } from 'node:child_process';
import { parseCommit } from '../../lib/git/objects-format.js';
import type { Storage } from '../../lib/git/storage.js';
import type { LeaseToken } from '../../lib/lease/record.js';
import { initialState } from '../../lib/ledger/fold.js';
import { planned, type AppendBy, type PlanIn } from '../../lib/ledger/plan.js';
import type { TaskState } from '../../lib/ledger/state.js';
import { mixedTurn } from './event-mix.js';

export interface Imported {
  readonly task: string;
  readonly ref: string;
  readonly events: number;
  readonly state: TaskState;
}

/** A ledger of whole turns, at least `events` long, its refs flushed by git. */
export async function importLedger(
  storage: Storage,
  options: { readonly task: string; readonly events: number; readonly seed?: number },
): Promise<Imported> {
  const { task, events, seed = 1 } = options;
  const ref = `refs/durable/tasks/${task}`;
  const to: PlanIn = {
    storage,
    task,
    redact: (text) => text,
    earlier: () => Promise.resolve(null),
    event: () => Promise.reject(new Error('an imported ledger repeats nothing')),
  };
  const stream: Buffer[] = [];
  let state = initialState(task);
  const add = async (drafts: ReturnType<typeof mixedTurn>, by: AppendBy): Promise<void> => {
    const plan = await planned(to, { before: state, by, drafts });
    stream.push(...plan.bodies.map((body, index) => imported(ref, body, index === 0 && state.head === null)));
    state = plan.after;
  };
  const opened = { type: 'task.opened', objective: 'Rename the parser', standing: false } as const;
  await add([opened], { lease: null, agent: 'scripted', workspace: null });
  for (let turn = 1; (state.head?.seq ?? 0) < events; turn += 1) {
    const lease = tokenOf(turn);
    const drafts = mixedTurn(turn, { seed, lease: lease.lease, runtime: lease.runtime });
    await add(drafts, { lease, agent: 'scripted', workspace: 'wimported' });
  }
  fastImport(storage, Buffer.concat(stream));
  return { task, ref, events: state.head?.seq ?? 0, state };
}

function tokenOf(epoch: number): LeaseToken {
  const lease = 'ws-imported';
  return {
    lease,
    ref: `refs/durable/leases/${lease}`,
    runtime: `runtime-${String(epoch)}`,
    epoch,
    acquisition: 'a',
  };
}

function imported(ref: string, body: Buffer, first: boolean): Buffer {
  const text = body.toString('utf8');
  const { message } = parseCommit(body);
  const people = text
    .slice(0, text.indexOf('\n\n'))
    .split('\n')
    .filter((line) => /^(?:author|committer) /.test(line));
  const bytes = Buffer.from(message, 'utf8');
  const head = `${first ? `reset ${ref}\n` : ''}commit ${ref}\n${people.join('\n')}\ndata ${String(bytes.length)}\n`;
  return Buffer.concat([Buffer.from(head), bytes, Buffer.from('\n')]);
}

function fastImport(storage: Storage, input: Buffer): void {
  const { workTree } = storage.layout;
  const ran = spawnSync('git', ['fast-import', '--quiet', '--force'], { cwd: workTree, input });
  if (ran.status !== 0) throw new Error(`git fast-import: ${ran.stderr.toString('utf8')}`);
}
