/**
 * The recovery report's promise: it costs what the turn costs, whatever came before it in the ledger.
 *
 * The same interrupted turn (19 files by transaction, 12 calls, one of them half done) after 1,000 and after 100,000 packed events; each
 * run opens the repository, reads the report and closes it, as the command does after its imports.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runTransaction } from '../../lib/files/transaction.js';
import { openStorage } from '../../lib/git/storage.js';
import { systemHost, type Host } from '../../lib/host.js';
import { recoveryReport } from '../../lib/recovery/report.js';
import { importLedger } from '../helpers/ledger-import.js';
import { scratchAt, type Scratch } from '../helpers/scratch.js';
import { beginCall, endCall, openTurn } from '../helpers/turn-place.js';
import { inTurns, ratioRow, type Row } from './row.js';

export async function measure(): Promise<readonly Row[]> {
  const top = mkdtempSync(join(tmpdir(), 'durable bench '));
  try {
    const long = await interrupted(join(top, 'long'), 100_000);
    const short = await interrupted(join(top, 'short'), 1000);
    const times = await inTurns(report(long), report(short), { rounds: 31, warm: 3 });
    return [ratioRow('recovery report after 100,000 events / after 1,000', times, 1.5)];
  } finally {
    rmSync(top, { recursive: true, force: true });
  }
}

const hostOf = (place: Scratch): Host => ({ ...systemHost(), env: place.env });

async function interrupted(top: string, events: number): Promise<Scratch> {
  mkdirSync(top);
  const place = scratchAt(top);
  const names = Array.from({ length: 19 }, (_, index) => `file ${String(index)}`);
  for (const name of names) place.write(name, `${name} before\n`.repeat(100));
  place.git('add', '-A');
  place.git('commit', '-q', '-m', 'files');
  const storage = await openStorage(place.dir, hostOf(place));
  await importLedger(storage, { task: 'task', events });
  const turn = await openTurn(storage, { dead: true });
  const bytes = Buffer.from('after\n'.repeat(100));
  await runTransaction(
    turn,
    names.map((path) => ({ kind: 'write', path, bytes })),
  );
  for (const name of names.slice(0, 12)) {
    const call = await beginCall(turn, {
      paths: [{ path: name, expected: Buffer.from(`${name}\n`.repeat(50)) }],
    });
    place.write(name, name === 'file 11' ? 'file 1' : `${name}\n`.repeat(50));
    if (name !== 'file 11') await endCall(turn, call);
  }
  await storage.close();
  place.git('repack', '-adq');
  return place;
}

function report(place: Scratch): () => Promise<void> {
  return async () => {
    const storage = await openStorage(place.dir, hostOf(place));
    const { interrupted: turns } = await recoveryReport(storage);
    await storage.close();
    if (turns[0]?.files.length !== 19 || !turns[0].gitStatusMatches)
      throw new Error('not the report expected');
  };
}
