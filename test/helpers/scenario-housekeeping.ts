/**
 * What a ledger does about its own storage: a torn newest event is set aside by the next append, a pruned object comes back
 * from the journal, a grown journal becomes one pack, and packs that no maintenance threatens any more lose their `.keep`.
 */
import { rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { releaseKeeps } from '../../lib/git/keep.js';
import { openStorage } from '../../lib/git/storage.js';
import { openTask, type Ledger } from '../../lib/ledger/ledger.js';
import { packJournal } from '../../lib/ledger/pack.js';
import { asUser } from './as-user.js';
import { Judge } from './ledger-judge.js';
import type { After, Run, Scenario } from './scenarios.js';

const BY = { lease: null, agent: 'workload', workspace: null };
const TASKS = ['torn', 'pruned'] as const;
const BEFORE = ['one', 'two', 'three'];

export const housekeeping: Scenario = {
  prepare: async ({ dir, host }) => {
    const storage = await openStorage(dir, host);
    for (const task of TASKS) await append(await opened(storage, task), BEFORE);
    const torn = (await (await opened(storage, 'torn')).head())?.commit ?? '';
    await storage.close();
    // As a power cut leaves what was not flushed: both names, no bytes.
    for (const copy of copiesOf(dir, torn)) truncateSync(copy, 7);
  },

  run: async ({ dir, host, say }: Run) => {
    const storage = await openStorage(dir, host);
    say('begin housekeeping');
    const torn = await opened(storage, 'torn');
    for (const { commit, event } of await append(torn, ['four'])) say(`ack ${event.task} ${commit}`);
    const pruned = await opened(storage, 'pruned');
    const tip = (await pruned.head())?.commit ?? '';
    asUser(() => {
      rmSync(copiesOf(dir, tip)[0]);
    });
    await storage.objects.read(tip);
    await packJournal(storage, 1);
    say('ack packed');
    releaseKeeps(storage, 1);
    for (const { commit, event } of await append(pruned, ['four'])) say(`ack ${event.task} ${commit}`);
    await storage.close();
    say('end housekeeping');
  },

  examine: async ({ dir, env, host, said }: After) => {
    const judge = new Judge(dir, env);
    const storage = await openStorage(dir, host);
    for (const task of TASKS) await append(await opened(storage, task), ['last']);
    const findings = judge.fsck().map((line) => `fsck: ${line}`);
    const acks = said.filter((line) => /^ack (?:torn|pruned) /.test(line)).map((line) => line.split(' '));
    for (const task of TASKS) {
      const { events, faults } = judge.ledger(task);
      findings.push(...faults);
      for (const key of task === 'torn' ? ['one', 'two', 'last'] : [...BEFORE, 'last'])
        if (events.filter((event) => event.key === key).length !== 1)
          findings.push(`${task} has not one ${key}`);
      for (const [, , commit] of acks.filter(([, of]) => of === task))
        if (!events.some((event) => event.commit === commit)) findings.push(`${task} lost ${commit ?? ''}`);
      const { ok, findings: named } = await (await opened(storage, task)).verify();
      if (!ok) findings.push(`verify ${task}: ${JSON.stringify(named)}`);
    }
    await packJournal(storage, 1);
    await storage.close();
    findings.push(...judge.fsck().map((line) => `fsck at the end: ${line}`));
    return findings;
  },
};

type Storage = Awaited<ReturnType<typeof openStorage>>;

const opened = (storage: Storage, task: string): Promise<Ledger> =>
  openTask(storage, { task, objective: task, agent: 'workload', workspace: null });

const append = (ledger: Ledger, keys: readonly string[]) =>
  ledger.append(
    () =>
      keys.map((key) => ({
        type: 'git.observed',
        what: key,
        ref: null,
        before: null,
        after: null,
        process: null,
        key,
      })),
    BY,
  );

/** The loose object and the journal's own link of it: two names of one file, or two files. */
function copiesOf(dir: string, oid: string): [loose: string, journal: string] {
  const git = join(dir, '.git');
  return [join(git, 'objects', oid.slice(0, 2), oid.slice(2)), join(git, 'durable/journal', oid)];
}
