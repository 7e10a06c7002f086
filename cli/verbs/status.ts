/** `status`: who holds the work tree, what runs, what was interrupted, what waits for a decision. */
import { diagnose } from '../../lib/doctor.js';
import type { Status } from '../../lib/status.js';
import { EXIT } from '../exit.js';
import { LOOKING, noteDamage, withRepository } from '../open.js';
import type { Cell, Output } from '../output.js';
import { quantity } from '../../lib/quantity.js';
import type { VerbContext } from '../verb.js';

export async function run(context: VerbContext): Promise<number> {
  const { output } = context;
  return withRepository(
    context,
    async (repository) => {
      const status = await output.progress('reading', () => repository.status());
      output.result(documentOf(status, context.version), () => {
        describe(output, status);
      });
      await noteDamage(context, repository.storage);
      if (!context.arguments.flag('exit-code')) return EXIT.done;
      const problems = await diagnose(repository.storage, { deep: false });
      return problems.length > 0 || needsAttention(status) ? EXIT.attention : EXIT.done;
    },
    LOOKING,
  );
}

/** The field names are a contract. */
function documentOf(status: Status, version: string): unknown {
  const { workspace, lease, turn, interrupted, approvals, conflicts, orphans, inbox, fence } = status;
  return {
    version,
    workspace,
    lease:
      lease === null
        ? null
        : {
            holder: lease.holder,
            task: lease.task,
            turn: lease.turn,
            epoch: lease.epoch,
            acquiredAt: lease.acquiredAt,
            alive: lease.alive,
          },
    turn,
    interrupted: interrupted.map((one) => ({
      id: one.turn,
      task: one.task,
      state: 'interrupted',
      objective: one.objective,
      agent: one.agent,
      startedAt: one.startedAt,
    })),
    approvals,
    conflicts,
    orphans,
    inbox,
    fence,
  };
}

function needsAttention(status: Status): boolean {
  return status.interrupted.length + status.approvals + status.conflicts > 0;
}

function describe(output: Output, status: Status): void {
  const { lease, turn, fence } = status;
  const rows: (readonly (Cell | string)[])[] = [['workspace', status.workspace ?? 'none yet']];
  if (lease === null) rows.push(['lease', { text: 'free', style: 'green' }]);
  else {
    const life = lease.alive ? '' : ', which is dead';
    const { agent, pid, host } = lease.holder;
    rows.push([
      'lease',
      `${agent} (pid ${String(pid)} on ${host}${life}), epoch ${String(lease.epoch)}, since ${lease.acquiredAt}`,
    ]);
  }
  if (turn !== null) rows.push(['turn', `${turn.id}, ${turn.state}: ${turn.objective}`]);
  for (const one of status.interrupted)
    rows.push([{ text: 'interrupted', style: 'red' }, `${one.turn}: ${one.objective}`]);
  rows.push(['approvals', counted(status.approvals, 'pending')]);
  rows.push(['conflicts', counted(status.conflicts, 'open')]);
  rows.push(['orphans', counted(status.orphans, 'still running')]);
  if (status.inbox.since !== null) {
    const text = `${quantity(status.inbox.count, 'report')} of agents, not on record, since ${status.inbox.since}`;
    rows.push(['inbox', { text, style: 'yellow' }]);
  }
  rows.push(['fence', fence.reason === null ? fence.mode : `${fence.mode}: ${fence.reason}`]);
  for (const problem of fence.problems) rows.push([{ text: 'problem', style: 'yellow' }, problem]);
  output.table(rows);
  output.line(`next: ${nextCommand(status)}`);
}

const counted = (count: number, what: string): Cell =>
  count === 0 ? { text: 'none', style: 'dim' } : { text: `${String(count)} ${what}`, style: 'yellow' };

function nextCommand(status: Status): string {
  if (status.interrupted.length > 0) return 'git durable recover';
  if (status.approvals > 0) return 'git durable approvals';
  if (status.conflicts > 0) return 'git durable conflicts';
  if (status.fence.problems.length > 0 || status.inbox.count > 0) return 'git durable doctor';
  if (status.orphans > 0) return 'git durable orphans';
  if (status.lease === null) return 'git durable run -- CMD';
  return status.turn === null ? 'git durable lease' : `git durable log --turn ${status.turn.id}`;
}
