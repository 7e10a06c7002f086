/**
 * Waiting for an answer: a caller wakes within 100 ms of it, whichever process gives it, and does not poll (that it does not is
 * held by test/decisions/wait.test.ts). Measured from the acknowledgement to the one who answers until the caller has the answer; 0
 * where it had it before: the ref is moved first, then flushed, then acknowledged.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { systemHost } from '../../lib/host.js';
import { openRepository } from '../../lib/repository.js';
import { scratchAt } from '../helpers/scratch.js';
import { median, type Row } from './row.js';

const CHILD = fileURLToPath(new URL('../helpers/answer-child.js', import.meta.url));
const ROUNDS = 31;

export async function measure(): Promise<readonly Row[]> {
  const top = mkdtempSync(join(tmpdir(), 'durable bench '));
  try {
    const times = await latencies(top);
    const row = { base: null, unit: 'ms', limit: 100 } as const;
    const [middle, most] = [median(times), Math.max(...times)];
    return [
      { ...row, what: 'wake of a waiting caller, median', ours: middle, ratio: middle, rule: 'at most' },
      {
        ...row,
        what: `wake of a waiting caller, longest of ${String(ROUNDS)}`,
        ours: most,
        ratio: most,
        rule: null,
      },
    ];
  } finally {
    rmSync(top, { recursive: true, force: true });
  }
}

async function latencies(top: string): Promise<number[]> {
  const place = scratchAt(top);
  const child = spawn(process.execPath, [CHILD, place.dir], {
    env: place.env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  await lines.next();
  const repository = await openRepository(place.dir, { ...systemHost(), env: place.env });
  const turn = await repository.startTurn({ objective: 'wait', keeper: false });
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const asked = await turn.requestApproval({ tool: 'wait', args: String(round) });
    const waiting = turn.awaitAnswer(asked, 60_000);
    child.stdin.write(`${asked.approval}\n`);
    const { state } = await waiting;
    const woken = performance.timeOrigin + performance.now();
    if (state !== 'approved') throw new Error(`the answer is ${state}`);
    const said = await lines.next();
    times.push(Math.max(0, woken - Number(said.value)));
  }
  await turn.finish({ outcome: 'completed' });
  child.stdin.end();
  await repository.close();
  return times;
}
