/** Objects and refs by themselves: one ref moved again and again, others made, one object dropped. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { commitBody } from '../../lib/git/objects-format.js';
import { openStorage, type Storage } from '../../lib/git/storage.js';
import { Judge } from './ledger-judge.js';
import type { After, Run, Scenario } from './scenarios.js';

const OTHERS = [1, 2, 3, 4].map((number) => `refs/durable/leases/ws-${String(number)}`);
const REF = 'refs/durable/tasks/stored';

export const store: Scenario = {
  // The repository has seen nothing of ours yet.
  prepare: () => Promise.resolve(),

  run: async ({ dir, host, say }: Run) => {
    const storage = await openStorage(dir, host);
    say('begin store');
    for (const other of OTHERS) {
      say(`ack ref ${REF} ${await move(storage, REF, other)}`);
      say(`ack ref ${other} ${await move(storage, other, 'first')}`);
    }
    const superseded = await commit(storage, null, 'superseded');
    storage.objects.drop(superseded);
    await storage.close();
    say('end store');
  },

  examine: async ({ dir, env, host, said }: After) => {
    const judge = new Judge(dir, env);
    const findings = judge.fsck().map((line) => `fsck: ${line}`);
    for (const line of said.filter((text) => text.startsWith('ack ref'))) {
      const [, , ref = '', oid = ''] = line.split(' ');
      if (!judge.holds(ref, oid)) findings.push(`${ref} lost ${oid}`);
      if (!existsSync(join(dir, '.git/durable/journal', oid))) findings.push(`the journal lost ${oid}`);
    }
    const storage = await openStorage(dir, host);
    for (const ref of [REF, ...OTHERS]) {
      const next = await move(storage, ref, 'next', 2_000);
      if (!judge.holds(ref, next)) findings.push(`the next move of ${ref} did not happen`);
    }
    await storage.close();
    // A value file beside the ref may stay (`<ref>.<ticket>.lock`): git and we ignore it.
    const locks = [REF, ...OTHERS].map((ref) => join(dir, '.git', `${ref}.lock`));
    findings.push(...locks.filter((lock) => existsSync(lock)).map((lock) => `left behind: ${lock}`));
    return findings;
  },
};

async function move(storage: Storage, ref: string, message: string, budgetMs?: number): Promise<string> {
  const from = storage.refs.read(ref);
  const to = await commit(storage, from, message);
  const outcome = await storage.refs.update({ move: { ref, from, to } }, budgetMs);
  if (!outcome.moved) throw new Error(`${ref} was at ${String(outcome.was)}`);
  return to;
}

async function commit(storage: Storage, parent: string | null, message: string): Promise<string> {
  const tree = await storage.objects.write('tree', Buffer.alloc(0));
  const parents = parent === null ? [] : [parent];
  return storage.objects.write('commit', commitBody({ tree, parents, message, at: storage.host.now() }));
}
