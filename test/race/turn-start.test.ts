/** Sixteen runtimes start the same turn at once, again and again. */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { createInterface } from 'node:readline';
import { execPath } from 'node:process';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { Judge } from '../helpers/ledger-judge.js';
import { scratch } from '../helpers/scratch.js';

const RACER = fileURLToPath(new URL('../helpers/turn-racer.js', import.meta.url));
const RUNTIMES = 16;
const ROUNDS = 200;

class Racer {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;
  #errors = '';

  constructor(dir: string, env: Readonly<Record<string, string>>) {
    this.#child = spawn(execPath, [RACER, dir], { env });
    this.#child.stderr.on('data', (chunk: Buffer) => (this.#errors += chunk.toString()));
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  tell(line: string): void {
    this.#child.stdin.write(`${line}\n`);
  }

  async answer(): Promise<string> {
    const next = await this.#lines.next();
    if (next.done === true) throw new Error(`a runtime ended: ${this.#errors}`);
    return next.value;
  }

  end(): void {
    this.#child.kill('SIGKILL');
  }
}

test('of 16 runtimes that start the same turn exactly one wins, 200 times, and every loser names it', async (t) => {
  t.timeout(20 * 60 * 1000);
  const { dir, env } = scratch(t);
  const racers = Array.from({ length: RUNTIMES }, () => new Racer(dir, env));
  t.teardown(() => {
    for (const racer of racers) racer.end();
  });
  const answers = (): Promise<string[]> => Promise.all(racers.map((racer) => racer.answer()));
  await answers();
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const racer of racers) racer.tell(`turn ${String(round)}`);
    const said = await answers();
    const winner = said.findIndex((line) => line.startsWith('won '));
    t.is(said.filter((line) => line.startsWith('won ')).length, 1, said.join('\n'));
    const turn = said[winner]?.slice('won '.length) ?? '';
    const pid = String(racers[winner]?.pid);
    for (const line of said.filter((_, index) => index !== winner)) {
      const [code, named, holder] = line.split(' ');
      t.true(code === 'turn-claimed' ? named === turn : code === 'lease-held' && holder === pid, line);
    }
    for (const racer of racers) racer.tell('finish');
    t.true((await answers()).every((line) => line === 'finished'));
  }
  const starts = new Judge(dir, env).ledger('raced').events.filter(({ type }) => type === 'turn.started');
  t.is(starts.length, ROUNDS);
});
