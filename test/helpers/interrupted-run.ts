/** A `run` whose holder got SIGKILL, its keeper having recorded the death: what `recover` is for. */
import type { ExecutionContext } from 'ava';
import { processesNaming, until } from './processes.js';
import { startDurable } from './program.js';
import type { Scratch } from './scratch.js';

/** `script` (for sh) is whole when its holder dies, and the command is gone when this returns. `cwd`: a work tree. */
export async function interruptedRun(
  t: ExecutionContext,
  place: Scratch,
  script: string,
  cwd = place.dir,
): Promise<void> {
  const words = ['run', '--', 'sh', '-c', `${script}; echo written; read -r _`];
  const running = startDurable(t, place, words, { cwd });
  t.is(await running.line(), 'written', running.said);
  process.kill(running.pid, 'SIGKILL');
  await running.ended;
  running.child.stdin.end('\n');
  await until('the keeper is gone', () => processesNaming(cwd).length === 0);
}
