/** A conversation taken back and forth again, with requests in its range that are used, unused and pending. */
import { hasCode } from '../../lib/errors.js';
import { openRepository, type Repository } from '../../lib/repository.js';
import { afterwards } from './aftermath.js';
import { Judge, type JudgedEvent } from './ledger-judge.js';
import type { After, Run, Scenario } from './scenarios.js';

const TASK = 'told';
const call = (args: string) => ({ tool: 'deploy', args, mutates: false }) as const;

export const rewinding: Scenario = {
  prepare: async ({ dir, host }) => {
    const repository = await openRepository(dir, host);
    const first = await repository.startTurn({ objective: 'first', task: TASK, keeper: false });
    await first.invoke(call('first'), () => 'done');
    await first.finish({ outcome: 'completed' });
    const second = await repository.startTurn({ objective: 'second', task: TASK, keeper: false });
    await second.steer('typed while it ran');
    for (const args of ['used', 'unused', 'pending']) {
      const { approval } = await second.requestApproval(call(args));
      if (args !== 'pending')
        await repository.resolveApproval(approval, { decision: 'approved', by: 'someone' });
    }
    const gated = await second.gate(call('used'));
    if (gated.state === 'approved') await gated.call.end({ state: 'finished' });
    await second.finish({ outcome: 'completed' });
    await repository.close();
  },

  only: /^(?:object|ticket|ref|claim|ledger|journal)\./,
  every: /^ref\.move:rename:after/,

  run: async ({ dir, host, say }: Run) => {
    const repository = await openRepository(dir, host);
    say('begin rewinding');
    const [turn = ''] = await turnIds(repository, 'second');
    const { undo } = await repository.rewind({ target: turn, reason: 'wrong' });
    say('ack rewound');
    await repository.rewind({ target: undo ?? '' });
    say('ack undone');
    await repository.close();
    say('end rewinding');
  },

  examine: async ({ dir, env, host, said }: After) => {
    const judge = new Judge(dir, env);
    const findings = judge.fsck().map((line) => `fsck: ${line}`);
    const { events } = judge.ledger(TASK);
    const rewinds = events.filter(({ type }) => type === 'conversation.rewound').length;
    const acknowledged = said.filter((line) => /^ack (?:rewound|undone)$/.test(line)).length;
    if (rewinds < acknowledged || rewinds > acknowledged + 1)
      findings.push(`${String(rewinds)} rewinds are there, ${String(acknowledged)} were acknowledged`);
    const repository = await openRepository(dir, host);
    findings.push(...(await told(repository, rewinds)));
    findings.push(...(await standing(repository, events, rewinds > 0)));
    findings.push(...(await afterwards(repository, judge)));
    await repository.close();
    return findings;
  },
};

async function turnIds(repository: Repository, objective: string): Promise<string[]> {
  const { turns } = await repository.conversation(TASK);
  return turns.filter((turn) => turn.objective === objective).map(({ turn }) => turn);
}

/** One rewind leaves the second turn, the next comes back to it, and another one leaves it again. */
async function told(repository: Repository, rewinds: number): Promise<string[]> {
  const findings: string[] = [];
  const isLeft = async (): Promise<boolean | undefined> =>
    (await repository.conversation(TASK)).turns.find(({ objective }) => objective === 'second')?.rewound;
  if ((await isLeft()) !== (rewinds === 1))
    findings.push(`after ${String(rewinds)} rewinds the line is another`);
  const [turn = ''] = await turnIds(repository, 'second');
  await repository.rewind({ target: turn });
  if ((await isLeft()) !== true) findings.push('the next rewind does not leave the turn');
  return findings;
}

/** Requests in the range that were not used are invalidated by any rewind past them, and a used one stays used. */
async function standing(
  repository: Repository,
  events: readonly JudgedEvent[],
  wasRewound: boolean,
): Promise<string[]> {
  const findings: string[] = [];
  const expected: Readonly<Record<string, string>> = {
    used: 'consumed',
    unused: 'invalidated',
    pending: 'invalidated',
  };
  const answers = events.filter(({ type }) => type === 'approval.resolved').length;
  if (answers !== 2) findings.push(`${String(answers)} answers are there, and not 2`);
  for (const { approval } of await repository.approvals()) {
    const args = approval.requested.event.summary;
    if (approval.state !== expected[args])
      findings.push(`${args} is ${approval.state}, ${wasRewound ? 'after' : 'before'} the run's own rewind`);
    try {
      await repository.resolveApproval(approval.id, { decision: 'approved', by: 'someone' });
      findings.push(`${args} was answered after the rewind`);
    } catch (error) {
      if (!hasCode(error, 'approval-settled')) throw error;
    }
  }
  return findings;
}
