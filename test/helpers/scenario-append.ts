/**
 * Appends: a task opened, single and several events, contents kept beside them; and an event whose writer was killed
 * between the ref's move and its flush, then appended again by the same key.
 */
import { openStorage } from '../../lib/git/storage.js';
import type { EventDraft } from '../../lib/event.js';
import { openTask, type Ledger } from '../../lib/ledger/ledger.js';
import { Judge } from './ledger-judge.js';
import type { After, Run, Scenario } from './scenarios.js';

const TASK = 'workload';
const BY = { lease: null, agent: 'workload', workspace: null };
const OPEN = { task: TASK, objective: 'append', agent: 'workload', workspace: null };
const KEYS = ['one', 'two', 'three', 'four', 'five', 'six', 'seven'];

export const append: Scenario = {
  prepare: async ({ dir, host }) => {
    const storage = await openStorage(dir, host);
    await appendKeys(await openTask(storage, OPEN), ['zero']);
    await storage.close();
  },

  // Killed by the run's plan once the ref has moved, before it says so.
  part: async ({ dir, host }) => {
    const storage = await openStorage(dir, host);
    await appendKeys(await openTask(storage, OPEN), ['five']);
  },

  run: async ({ dir, host, say, part }: Run) => {
    const storage = await openStorage(dir, host);
    say('begin append');
    const ledger = await openTask(storage, OPEN);
    for (const keys of [['one'], ['two', 'three'], ['four']]) await acknowledged(ledger, keys, say);
    const [kept] = await ledger.contents.keep([Buffer.from('exact arguments\n')]);
    say(`ack kept ${kept?.oid ?? '-'}`);
    part('ref.move:rename:after=kill');
    await acknowledged(ledger, ['five'], say);
    await acknowledged(ledger, ['six', 'one', 'seven'], say);
    const other = await openTask(storage, { ...OPEN, task: 'another' });
    say(`ack event another ${(await other.head())?.commit ?? '-'} another`);
    await storage.close();
    say('end append');
  },

  examine: async ({ dir, env, host, said }: After) => {
    const judge = new Judge(dir, env);
    const findings = judge.fsck().map((line) => `fsck: ${line}`);
    findings.push(...lost(judge, said));
    const storage = await openStorage(dir, host);
    const ledger = await openTask(storage, OPEN);
    const { ok, findings: named } = await ledger.verify();
    if (!ok) findings.push(`verify: ${JSON.stringify(named)}`);
    await appendKeys(ledger, KEYS);
    await storage.close();
    const judged = judge.ledger(TASK);
    findings.push(...judged.faults);
    for (const key of ['zero', ...KEYS]) {
      const times = judged.events.filter((event) => event.key === key).length;
      if (times !== 1) findings.push(`the event ${key} is there ${String(times)} times`);
    }
    findings.push(...lost(judge, said));
    return findings;
  },
};

/** Acknowledged events and contents that are not there, by git's word alone. */
function lost(judge: Judge, said: readonly string[]): string[] {
  return said.flatMap((line) => {
    const [, what = '', first = '', commit = '', key = ''] = line.split(' ');
    if (what === 'kept')
      return judge.isReachable(first, `refs/durable/checkpoints/${TASK}`)
        ? []
        : [`the contents ${first} are lost`];
    if (what !== 'event') return [];
    const { events } = judge.ledger(first);
    return events.some((event) => event.commit === commit && event.key === key)
      ? []
      : [`the event ${key} is lost`];
  });
}

function observed(key: string): EventDraft {
  return {
    type: 'git.observed',
    what: `event ${key}`,
    ref: null,
    before: null,
    after: null,
    process: null,
    key,
  };
}

function appendKeys(ledger: Ledger, keys: readonly string[]) {
  return ledger.append(() => keys.map(observed), BY);
}

async function acknowledged(ledger: Ledger, keys: readonly string[], say: Run['say']): Promise<void> {
  const recorded = await appendKeys(ledger, keys);
  for (const { commit, event } of recorded) say(`ack event ${event.task} ${commit} ${event.key ?? '-'}`);
}
