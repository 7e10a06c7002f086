/**
 * What an agent told and nobody could record: one report of a turn that is open, one of a turn that is over. Killed anywhere, each that
 * was kept is on record once or lies in the inbox whole; the next agent's start takes in what it can, and the repository has no word of the rest.
 */
import { readFileSync } from 'node:fs';
import { deliverAll, takeStep } from '../../lib/agents/gate.js';
import { placeOf } from '../../lib/agents/deliver.js';
import { inboxFiles, keepPayload, type KeptPayload } from '../../lib/agents/inbox.js';
import type { AgentProcess } from '../../lib/agents/own-turn.js';
import { openStorage, type Storage } from '../../lib/git/storage.js';
import type { Host } from '../../lib/host.js';
import { startTurn } from '../../lib/turn/start.js';
import { Judge } from './ledger-judge.js';
import type { After, Run, Scenario } from './scenarios.js';

const SESSION = 's1';
const CALLS = ['c1', 'c2'] as const;

export const inbox: Scenario = {
  prepare: () => Promise.resolve(),

  only: /^inbox/,
  every: /^inbox/,

  run: async ({ dir, host, say }: Run) => {
    const storage = await openStorage(dir, host);
    const by = agentHere(storage);
    const turn = await startTurn(storage, {
      objective: 'work',
      task: 'work',
      key: 'turn',
      agent: by.agent,
      session: SESSION,
      keeper: false,
    });
    for (const call of CALLS)
      await turn.begin({ tool: 'Write', args: { call }, paths: [], key: `${SESSION}:${call}` });
    const place = await placeOf(storage, by, SESSION);
    if (place === null) throw new Error('the turn is not held by this process');
    say('begin inbox');
    keep(storage, { by, call: 'c1', place });
    say('ack c1');
    keep(storage, { by, call: 'c2', place: { ...place, epoch: place.epoch + 1 } });
    say('ack c2');
    await deliverAll(storage);
    say('ack delivered');
    await turn.finish({ outcome: 'completed' });
    await storage.close();
    say('end inbox');
  },

  examine: async ({ dir, env, host, said }: After) => {
    await begun(dir, host);
    const judge = new Judge(dir, env);
    const { events, faults } = judge.ledger('work');
    const findings = [...judge.fsck().map((line) => `fsck: ${line}`), ...faults];
    const storage = await openStorage(dir, host);
    const files = inboxFiles(storage);
    await storage.close();
    const kept = files.map(({ path }) => readFileSync(path, 'utf8'));
    for (const { path, isLate } of files) if (!isLate) findings.push(`nobody took in ${path}`);
    for (const call of CALLS.filter((one) => said.includes(`ack ${one}`))) {
      const ends = events.filter(
        ({ type, key }) => type === 'invocation.finished' && key === endOf(events, call),
      );
      const copies = kept.filter((text) => text.includes(wordsOf(call)));
      if (ends.length + copies.length !== 1)
        findings.push(
          `${call} is ${String(ends.length)} times on record, ${String(copies.length)} in the inbox`,
        );
      const told = events.filter(({ key }) => key?.startsWith('inbox:') === true).length;
      if (told !== kept.length) findings.push(`${String(kept.length)} are late, ${String(told)} said so`);
    }
    return findings;
  },
};

const wordsOf = (call: string): string => `what ${call} answered`;

/** The idempotency key of a call's end: the call's own id in the ledger. */
function endOf(events: ReturnType<Judge['ledger']>['events'], call: string): string | undefined {
  const proposed = events.find(({ key }) => key === `${SESSION}:${call}`);
  return proposed === undefined ? undefined : String(proposed.fields['invocation']);
}

function agentHere(storage: Storage): AgentProcess {
  const { pid, start } = storage.identity.self();
  return { agent: 'claude-code', process: { pid, start } };
}

/** Another agent begins. */
async function begun(dir: string, host: Host): Promise<void> {
  const storage = await openStorage(dir, host);
  const step = {
    kind: 'session-start',
    session: 's2',
    source: 'startup',
    cwd: dir,
    transcript: null,
  } as const;
  await takeStep(storage, agentHere(storage), step);
  await storage.close();
}

function keep(
  storage: Storage,
  { by, call, place }: { by: AgentProcess; call: string; place: NonNullable<KeptPayload['place']> },
): void {
  const { host, layout } = storage;
  const payload = JSON.stringify({
    hook_event_name: 'PostToolUse',
    session_id: SESSION,
    cwd: layout.workTree,
    tool_name: 'Write',
    tool_input: { call },
    tool_use_id: call,
    tool_response: wordsOf(call),
  });
  const at = host.now().toISOString();
  const { workTree } = layout;
  keepPayload(storage, {
    v: 1,
    at,
    agent: by.agent,
    process: by.process,
    workTree,
    place,
    why: 'a test',
    payload,
  });
}
