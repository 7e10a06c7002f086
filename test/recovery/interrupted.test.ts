import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { Storage } from '../../lib/git/storage.js';
import { findTurns } from '../../lib/recovery/interrupted.js';
import { openAs } from '../helpers/lease-place.js';
import { scratch } from '../helpers/scratch.js';
import { openTurn } from '../helpers/turn-place.js';

const judged = async (storage: Storage): Promise<(string | null)[]> =>
  (await findTurns(storage, false)).open.map(({ detectedBy }) => detectedBy);

test('of a copied work tree that does not stand any more a turn counts as interrupted unless its holder is alive on this host', async (t) => {
  for (const [dead, hostId, expected] of [
    [true, undefined, 'recover'],
    [true, 'another host', 'recover'],
    [false, 'another host', 'recover'],
    [false, undefined, null],
  ] as const) {
    const place = scratch(t);
    await openTurn(await openAs(t, place), { dead });
    const dir = join(place.top, 'copy');
    execFileSync('cp', ['-a', place.dir, dir]);
    const identity = hostId === undefined ? {} : { hostId };
    const copy = await openAs(t, place, { dir, identity });
    t.deepEqual(await judged(copy), [], 'the original stands');
    rmSync(place.dir, { recursive: true });
    t.deepEqual(await judged(copy), [expected], `${String(dead)} ${String(hostId)}`);
  }
});
