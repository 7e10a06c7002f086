/** The lease by itself: a dead holder's taken over, renewed, released, taken again; files written through its stage. */
import { openStorage, type Storage } from '../../lib/git/storage.js';
import { acquire } from '../../lib/lease/acquire.js';
import type { Held } from '../../lib/lease/hold.js';
import { workspaceId } from '../../lib/lease/workspace.js';
import { openTask } from '../../lib/ledger/ledger.js';
import { Judge } from './ledger-judge.js';
import type { After, Run, Scenario } from './scenarios.js';
import { outOfPlace, placeTree, readTree, treeAt, type Leaf, type Tree } from './tree-state.js';

const REQUEST = {
  kind: 'operation',
  task: null,
  turn: null,
  turnKey: null,
  objective: 'hold the lease',
  agent: 'workload',
} as const;

export const lease: Scenario = {
  prepare: ({ dir }) => {
    placeTree(dir, treeAt(0));
    return Promise.resolve();
  },

  // Ends without letting go: a dead holder, with something in its stage.
  part: async ({ dir, host }) => {
    const storage = await openStorage(dir, host);
    const held = await acquire(storage, REQUEST);
    held.stage.write(Buffer.from('left in the stage'), 0o666);
  },

  run: async ({ dir, host, say, part }: Run) => {
    const storage = await openStorage(dir, host);
    say('begin lease');
    await openTask(storage, { objective: 'an earlier task', agent: 'workload', workspace: null });
    for (let round = 0; round < 2; round += 1) {
      if (round === 1) part('');
      const held = await acquire(storage, REQUEST);
      say(`ack held ${named(storage, held)}`);
      await held.renew();
      say(`ack held ${named(storage, held)}`);
      await write(held, round, say);
      await held.release();
      say(`ack free ${named(storage, held)}`);
    }
    await storage.close();
    say('end lease');
  },

  examine: async ({ dir, env, host, said }: After) => {
    const judge = new Judge(dir, env);
    const findings = judge.fsck().map((line) => `fsck: ${line}`);
    const acks = said.filter((line) => /^ack (?:held|free)/.test(line));
    const epochs = acks.map((line) => Number(line.split(' ')[3]));
    const written = said.filter((line) => line.startsWith('ack written')).length;
    findings.push(...heldTo(judge, acks.at(-1)));
    findings.push(
      ...outOfPlace(readTree(dir), [fileStates(written), fileStates(written + 1)]).map(
        (path) => `${path} is neither before nor after change ${String(written)}`,
      ),
    );
    const storage = await openStorage(dir, host);
    const id = workspaceId(storage, { create: false });
    const next = await acquire(storage, REQUEST);
    if (epochs.some((epoch) => epoch >= next.token.epoch))
      findings.push(`epoch ${String(next.token.epoch)} was given out twice`);
    const workspaces = acks.map((line) => line.split(' ')[2]);
    if (workspaces.some((one) => one !== id)) findings.push('the work tree has another id');
    await next.release();
    await storage.close();
    return findings;
  },
};

/** The newest record is the acknowledged one, or one after it. */
function heldTo(judge: Judge, ack: string | undefined): string[] {
  if (ack === undefined) return [];
  const [, state, , epoch] = ack.split(' ');
  const record = judge.leases()[0];
  const findings: string[] = [];
  if (record === undefined || Number(record['epoch']) < Number(epoch))
    findings.push(`epoch ${String(epoch)} is lost`);
  else if (Number(record['epoch']) === Number(epoch) && record['state'] !== 'free' && state === 'free')
    findings.push(`the release of epoch ${String(epoch)} is lost`);
  return findings;
}

function named(storage: Storage, { token }: Held): string {
  return `${workspaceId(storage, { create: false }) ?? '-'} ${String(token.epoch)}`;
}

/** Takes one file away, replaces one, makes one in a new folder, each through the stage, and says so after each. */
async function write(held: Held, round: number, say: Run['say']): Promise<void> {
  const next = fileStates(3 * round + 3);
  const { kept: removed } = await held.stage.remove(round === 0 ? 'tool.sh' : 'link');
  held.stage.discard(removed);
  say('ack written');
  for (const path of ['a.txt', `new ${String(round)}/file`]) {
    const temp = held.stage.write(Buffer.from(next.get(path)?.content ?? ''), 0o666);
    const { kept } = await held.stage.publish(temp, path);
    held.stage.discard(kept);
    say('ack written');
  }
}

/** The tree after so many of these changes. */
function fileStates(written: number): Tree {
  const tree = new Map<string, Leaf>(treeAt(0));
  for (let round = 0; round < 2; round += 1) {
    const content = `written in round ${String(round)}\n`;
    if (written > 3 * round) tree.delete(round === 0 ? 'tool.sh' : 'link');
    if (written > 3 * round + 1) tree.set('a.txt', { content, mode: '100644' });
    if (written > 3 * round + 2) tree.set(`new ${String(round)}/file`, { content, mode: '100644' });
  }
  return tree;
}
