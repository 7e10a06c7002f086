/**
 * node turn-racer.js DIR: a long-lived runtime. For each line `KEY` on standard input it starts the turn with that key
 * in the task `raced` and answers with one line: `won <turn>` or `<error code> <turn that it names>`. For a line
 * `finish` the winner ends its turn and everyone answers `finished`.
 */
import { createInterface } from 'node:readline';
import { isDurableError } from '../../lib/errors.js';
import { openRepository } from '../../lib/repository.js';
import type { Turn } from '../../lib/turn/turn.js';

const repository = await openRepository(process.argv[2] ?? '');
let turn: Turn | undefined;

process.stdout.write('ready\n');
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'finish') {
    await turn?.finish({ outcome: 'completed', summary: 'raced' });
    turn = undefined;
    process.stdout.write('finished\n');
    continue;
  }
  process.stdout.write(`${await start(line)}\n`);
}
await repository.close();

async function start(key: string): Promise<string> {
  try {
    turn = await repository.startTurn({ objective: 'race', task: 'raced', key, keeper: false });
    return `won ${turn.id}`;
  } catch (error) {
    if (!isDurableError(error)) throw error;
    if (error.code === 'turn-claimed') return `${error.code} ${error.fields.turn} -`;
    if (error.code === 'lease-held') return `${error.code} - ${String(error.fields.holder.pid)}`;
    return `${error.code} - -`;
  }
}
