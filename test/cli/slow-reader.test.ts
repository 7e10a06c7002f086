/** What a verb prints reaches a reader that takes its time: the end of the program cuts nothing off. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, readFileSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { errno } from '../../lib/git/disk.js';
import { script } from '../helpers/asking.js';
import { until } from '../helpers/processes.js';
import { durable, PROGRAM } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

/** Processor time of a process so far, in ticks; null once it has ended. */
function ticks(pid: number): number | null {
  try {
    const fields = readFileSync(`/proc/${String(pid)}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    return fields[0] === 'Z' ? null : Number(fields[11]) + Number(fields[12]);
  } catch (error) {
    if (errno(error) === 'ENOENT') return null;
    throw error;
  }
}

/** Runs a verb into a pipe that nobody reads until the program has ended or has nothing left to do but wait. */
async function readLate(
  t: ExecutionContext,
  place: Scratch,
  words: readonly string[],
): Promise<{ code: unknown; text: string }> {
  const pipe = join(place.top, 'pipe');
  place.run('rm', ['-f', pipe]);
  t.is(place.run('mkfifo', [pipe]).code, 0);
  const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(pipe, constants.O_WRONLY);
  const child = spawn(process.execPath, [PROGRAM, '-C', place.dir, ...words], {
    env: place.env,
    stdio: ['ignore', writer, 'ignore'],
  });
  closeSync(writer);
  let code: unknown;
  const exited = once(child, 'exit').then(([ended]) => {
    code = ended;
  });
  const { pid } = child;
  if (pid === undefined) throw new Error('the program was not started');
  let seen: (number | null)[] = [];
  await until('the program waits or has ended', () => {
    seen = [...seen.slice(-20), ticks(pid)];
    const [first] = seen;
    return first === null || (seen.length > 20 && first !== 0 && seen.every((one) => one === first));
  });
  const chunk = Buffer.alloc(1 << 16);
  const chunks: Buffer[] = [];
  await until('all is read', () => {
    try {
      const size = readSync(reader, chunk);
      chunks.push(Buffer.from(chunk.subarray(0, size)));
      return size === 0;
    } catch (error) {
      if (errno(error) === 'EAGAIN') return false;
      throw error;
    }
  });
  await exited;
  closeSync(reader);
  return { code, text: Buffer.concat(chunks).toString('utf8') };
}

test('a listing far larger than a pipe comes whole to a reader that is late', async (t) => {
  const place = scratch(t);
  writeFileSync(join(place.top, 'big'), JSON.stringify({ text: 'x'.repeat(1 << 20) }));
  await script(t, place, 'durable ask --tool big --args @../big; durable log > /dev/null').ended;
  for (const words of [['approvals', '--json'], ['approvals'], ['log', '--json']]) {
    const { stdout, code } = durable(place, words);
    t.true(words[0] === 'log' || stdout.length > 1 << 20);
    t.deepEqual(await readLate(t, place, words), { code, text: stdout }, words.join(' '));
  }
});
