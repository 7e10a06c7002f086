/**
 * A process that runs a turn through the public library, for tests that kill it.
 *
 *     node dist/test/helpers/turn-child.js DIR SCRIPT
 *
 * SCRIPT is a JSON list of steps: `{"call": name}` runs a recorded call that appends its name to the file `effects`
 * outside the ledger, `{"die": true}` kills this process, `{"dieIn": name}` kills it inside a call. Prints a JSON line a step.
 */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { openRepository } from '../../lib/index.js';

interface Step {
  readonly call?: string;
  readonly die?: boolean;
  readonly dieIn?: string;
}

const [dir, script, options] = process.argv.slice(2);
if (dir === undefined || script === undefined) throw new Error('usage: turn-child DIR SCRIPT [OPTIONS]');
const steps = JSON.parse(script) as Step[];
const { onDoubt } = JSON.parse(options ?? '{}') as { onDoubt?: 'retry' | 'accept' };

const repository = await openRepository(dir);
try {
  const result = await repository.turn(
    {
      objective: 'durable execution',
      key: 'the-turn',
      keeper: false,
      ...(onDoubt === undefined
        ? {}
        : {
            onDoubt: () =>
              onDoubt === 'accept' ? { action: 'accept', result: 'accepted' } : { action: 'retry' },
          }),
    },
    async (turn) => {
      const results: unknown[] = [];
      for (const step of steps) {
        if (step.die === true) process.kill(process.pid, 'SIGKILL');
        const name = step.call ?? step.dieIn ?? '';
        results.push(
          await turn.invoke({ tool: 'effect', args: { name }, mutates: false }, () => {
            appendFileSync(join(dir, '..', 'effects'), `${name}\n`);
            if (step.dieIn !== undefined) process.kill(process.pid, 'SIGKILL');
            return { did: name };
          }),
        );
      }
      return results;
    },
  );
  process.stdout.write(`${JSON.stringify({ result })}\n`);
} catch (error) {
  const code = error instanceof Error && 'code' in error ? error.code : String(error);
  const fields = error instanceof Error && 'fields' in error ? error.fields : null;
  process.stdout.write(`${JSON.stringify({ code, fields })}\n`);
} finally {
  await repository.close();
}
