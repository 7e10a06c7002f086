/** What a turn's keeper costs while it waits: its resident memory, reported beside that of a node that does nothing. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemHost } from '../../lib/host.js';
import { openRepository } from '../../lib/index.js';
import { keeperOf } from '../helpers/keeper.js';
import { removeTree, scratchAt } from '../helpers/scratch.js';
import type { Row } from './row.js';

export async function measure(): Promise<readonly Row[]> {
  const top = mkdtempSync(join(tmpdir(), 'durable bench '));
  const bare = spawn(process.execPath, ['-e', 'console.log(1); setInterval(() => undefined, 1000)']);
  try {
    await once(bare.stdout, 'data');
    const keeper = await keeperMemory(top);
    return [
      row('keeper, resident memory / a bare node', keeper.resident, memory(bare.pid ?? 0, 'VmRSS')),
      row('keeper, its own memory / a bare node', keeper.own, memory(bare.pid ?? 0, 'RssAnon')),
    ];
  } finally {
    bare.kill('SIGKILL');
    await removeTree(top);
  }
}

/** After its first renewal, when all that it needs is loaded. */
async function keeperMemory(top: string): Promise<{ resident: number; own: number }> {
  const place = scratchAt(top);
  place.git('config', 'durable.ttl', '1');
  const repository = await openRepository(place.dir, { ...systemHost(), env: place.env });
  const turn = await repository.startTurn({ objective: 'measure', agent: 'bench' });
  const pid = await keeperOf(place);
  const found = { resident: memory(pid, 'VmRSS'), own: memory(pid, 'RssAnon') };
  await turn.finish({ outcome: 'completed' });
  await repository.close();
  return found;
}

/** Mebibytes, from proc(5). */
export function memory(pid: number, field: 'VmRSS' | 'RssAnon'): number {
  const status = readFileSync(`/proc/${String(pid)}/status`, 'utf8');
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1024;
}

const row = (what: string, ours: number, base: number): Row => ({
  ...{ what, ours, base, unit: 'MiB', ratio: ours / base },
  limit: Number.POSITIVE_INFINITY,
  rule: null,
});
