import { chmodSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import test from 'ava';
import { frame, Frames, openPrivate } from '../../lib/agents/wire.js';
import { userId } from '../helpers/keeper-client.js';
import { scratch } from '../helpers/scratch.js';

test('frames come out as they went in, however the bytes are cut on the way', (t) => {
  const bytes = fc.uint8Array({ maxLength: 40 });
  fc.assert(
    fc.property(fc.array(bytes, { maxLength: 6 }), fc.array(fc.nat(12), { minLength: 1 }), (sent, cuts) => {
      const all = Buffer.concat(sent.map(frame));
      const frames = new Frames(40);
      const got: Buffer[] = [];
      for (let at = 0, turn = 0; at < all.length; turn += 1) {
        const size = 1 + (cuts[turn % cuts.length] ?? 0);
        got.push(...(frames.take(all.subarray(at, at + size)) ?? []));
        at += size;
      }
      return got.length === sent.length && got.every((one, n) => one.equals(sent[n] ?? Buffer.alloc(1)));
    }),
  );
  t.is(new Frames(3).take(frame(Buffer.from('four'))), null);
});

test('a folder is private that its user alone can enter, under no other name', (t) => {
  const { top } = scratch(t, { repository: false });
  const folder = join(top, 'folder');
  mkdirSync(folder, { mode: 0o700 });
  const open = (user: number): boolean => {
    const opened = openPrivate(folder, user);
    opened?.close();
    return opened !== null;
  };
  t.true(open(userId()));
  t.false(open(userId() + 1));
  for (const bits of [0o710, 0o701, 0o750, 0o777]) {
    chmodSync(folder, bits);
    t.false(open(userId()), bits.toString(8));
  }
  symlinkSync(folder, join(top, 'link'));
  t.throws(() => openPrivate(join(top, 'link'), userId()), { code: 'ENOTDIR' });
  t.throws(() => openPrivate(join(top, 'none'), userId()), { code: 'ENOENT' });
});
