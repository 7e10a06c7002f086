/**
 * node append-child.js DIR TASK NAME COUNT [stay]: appends COUNT observations and prints the commit of each receipt;
 * with `stay` it lives on until it is killed.
 */
import { openStorage } from '../../lib/git/storage.js';
import { systemHost } from '../../lib/host.js';
import { Ledger } from '../../lib/ledger/ledger.js';

const [dir = '.', task = '', name = '', count = '0', stay = ''] = process.argv.slice(2);
const storage = await openStorage(dir, systemHost());
const ledger = Ledger.open(storage, task);
for (let n = 0; n < Number(count); n += 1) {
  const what = `${name} ${String(n)}`;
  const draft = { type: 'git.observed', what, ref: null, before: null, after: null, process: null } as const;
  const [recorded] = await ledger.append(() => [{ ...draft, key: what }], {
    lease: null,
    agent: name,
    workspace: null,
    budgetMs: 60_000,
  });
  process.stdout.write(`${recorded?.commit ?? 'nothing'}\n`);
}
if (stay === '') await storage.close();
else setInterval(() => undefined, 60_000);
