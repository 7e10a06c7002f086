/**
 * node answer-child.js DIR: another process that answers. For each line, the id of a request, on standard input it approves it, and
 * says the moment at which that was acknowledged: milliseconds since 1970, with a fraction.
 */
import { createInterface } from 'node:readline';
import { openRepository } from '../../lib/repository.js';

const repository = await openRepository(process.argv[2] ?? '');
process.stdout.write('ready\n');
for await (const id of createInterface({ input: process.stdin })) {
  await repository.resolveApproval(id, { decision: 'approved', by: 'someone' });
  process.stdout.write(`${String(performance.timeOrigin + performance.now())}\n`);
}
await repository.close();
