/**
 * node race-child.js DIR NAME EVENTS CHECKPOINTS: appends EVENTS events to the task `raced`, with CHECKPOINTS checkpoints
 * spread among them, and says `event <commit> <key>` or `checkpoint <commit>` the moment each was acknowledged.
 */
import { openRepository } from '../../lib/repository.js';
import { openTask } from '../../lib/ledger/ledger.js';

const [dir = '', name = '', events = '0', checkpoints = '0'] = process.argv.slice(2);
const repository = await openRepository(dir);
const ledger = await openTask(repository.storage, {
  task: 'raced',
  objective: 'race',
  agent: 'race',
  workspace: null,
});
const every = Math.ceil(Number(events) / (Number(checkpoints) + 1));
for (let number = 0; number < Number(events); number += 1) {
  const key = `${name} ${String(number)}`;
  const draft = { ref: null, before: null, after: null, process: null, key } as const;
  const [recorded] = await ledger.append(() => [{ type: 'git.observed', what: key, ...draft }], {
    lease: null,
    agent: name,
    workspace: null,
    budgetMs: 120_000,
  });
  process.stdout.write(`event ${recorded?.commit ?? '-'} ${key}\n`);
  if (number % every !== every - 1 || number + 1 === Number(events)) continue;
  const { checkpoint } = await repository.checkpoint({ message: key });
  process.stdout.write(`checkpoint ${checkpoint}\n`);
}
await repository.close();
