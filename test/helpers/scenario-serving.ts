/** A keeper that takes the steps of its turn from a socket: killed anywhere, what it answered is on record, and once. */
import { existsSync } from 'node:fs';
import { serve } from '../../lib/agents/serve.js';
import { openStorage } from '../../lib/git/storage.js';
import { leaseOf, readLease, tokenOf } from '../../lib/lease/record.js';
import { workspaceId } from '../../lib/lease/workspace.js';
import { openRepository } from '../../lib/repository.js';
import { startTurn } from '../../lib/turn/start.js';
import { afterwards } from './aftermath.js';
import { askKeeper, keeperSocket, requestFor } from './keeper-client.js';
import { Judge } from './ledger-judge.js';
import type { After, Run, Scenario } from './scenarios.js';

const TASK = 'served';
const SESSION = 's1';
const AGENT = 'claude-code';

export const serving: Scenario = {
  prepare: () => Promise.resolve(),

  only: /^keeper\.(?:listen|serve)\b/,

  run: async ({ dir, host, say }: Run) => {
    const storage = await openStorage(dir, host);
    const begin = { objective: 'serve', task: TASK, agent: AGENT, session: SESSION };
    await startTurn(storage, { ...begin, keeper: false });
    say('begin serving');
    const lease = await readLease(storage, leaseOf(workspaceId(storage, { create: false }) ?? ''));
    const service = lease === null ? null : serve(storage, tokenOf(lease.record));
    if (service === null) throw new Error('nothing listens');
    for (const event of ['PreToolUse', 'PostToolUse']) {
      const call = { tool_use_id: 'c1', tool_name: 'Write', tool_input: { file_path: `${dir}/a` } };
      const payload = { session_id: SESSION, cwd: dir, hook_event_name: event, ...call };
      const said = await askKeeper(dir, payload, requestFor(host.env, host.pid));
      if (said?.['answer'] !== '') throw new Error(`${event}: ${JSON.stringify(said)}`);
      say(`ack ${event}`);
    }
    await service.close();
    say('ack closed');
    await storage.close();
    say('end serving');
  },

  examine: async ({ dir, env, host, said }: After) => {
    const judge = new Judge(dir, env);
    const findings = judge.fsck().map((line) => `fsck: ${line}`);
    const types = judge.tasks().includes(TASK) ? judge.ledger(TASK).events.map(({ type }) => type) : [];
    for (const [ack, type] of [
      ['ack PreToolUse', 'invocation.started'],
      ['ack PostToolUse', 'invocation.finished'],
    ] as const) {
      const count = types.filter((one) => one === type).length;
      if (count > 1 || (said.includes(ack) && count === 0))
        findings.push(`${type} is there ${String(count)} times`);
    }
    if (said.includes('ack closed') && existsSync(keeperSocket(dir)))
      findings.push('the socket is left behind');
    const repository = await openRepository(dir, host);
    if ((await repository.recoveryReport()).interrupted.length > 0)
      await repository.recover({ action: 'keep' });
    findings.push(...(await afterwards(repository, judge)));
    await repository.close();
    return findings;
  },
};
