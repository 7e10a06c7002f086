/**
 * node race-child.js DIR NAME EVENTS CHECKPOINTS: appends EVENTS events to the task `raced`, with CHECKPOINTS checkpoints
 * spread among them, each after new bytes in a file of its own, and says `event <commit> <key>` or
 * `checkpoint <commit> <path> <SHA-256>` the moment each was acknowledged.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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
  const bytes = randomBytes(3000);
  mkdirSync(join(dir, 'race'), { recursive: true });
  writeFileSync(join(dir, 'race', name), bytes);
  const { checkpoint } = await repository.checkpoint({ message: key });
  const digest = createHash('sha256').update(bytes).digest('hex');
  process.stdout.write(`checkpoint ${checkpoint} race/${name} ${digest}\n`);
}
await repository.close();
