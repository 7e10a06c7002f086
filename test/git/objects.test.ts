/** One suite for both backends: what an object store promises, judged by git itself. */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { hasCode } from '../../lib/errors.js';
import type { FaultPoint } from '../../lib/git/fault.js';
import { commitBody } from '../../lib/git/objects-format.js';
import { type Storage } from '../../lib/git/storage.js';
import { scratch, type Scratch } from '../helpers/scratch.js';
import { openObjects, unlinkAndWrite, type Opened } from '../helpers/opened-objects.js';

type Backend = 'native' | 'isomorphic';

const BACKENDS: readonly { backend: Backend; objectFormat: 'sha1' | 'sha256' }[] = [
  { backend: 'native', objectFormat: 'sha1' },
  { backend: 'native', objectFormat: 'sha256' },
  { backend: 'isomorphic', objectFormat: 'sha1' },
];

for (const { backend, objectFormat } of BACKENDS) {
  const rule = (title: string, check: (t: ExecutionContext, opened: Opened) => Promise<void>): void => {
    test(`${backend} ${objectFormat}: ${title}`, async (t) => {
      const place = scratch(t, { objectFormat });
      place.git('config', 'durable.objects', backend);
      // Flushing is judged in the power-loss tests; here it would be most of the time.
      place.git('config', 'durable.fsync', 'false');
      await check(t, await openObjects(t, place));
    });
  };

  rule('what is written is what git reads, under the id that git gives it', async (t, { place, storage }) => {
    for (const body of [Buffer.alloc(0), Buffer.from('é\r\n\0'), Buffer.alloc(3_000_000, 'abcdefg')]) {
      const oid = await storage.objects.write('blob', body);
      t.is(
        oid,
        spawnSync('git', ['hash-object', '--stdin'], { cwd: place.dir, input: body })
          .stdout.toString()
          .trim(),
      );
      t.true(
        spawnSync('git', ['cat-file', 'blob', oid], { cwd: place.dir, maxBuffer: 1e8 }).stdout.equals(body),
      );
      t.deepEqual(await storage.objects.read(oid), { type: 'blob', body });
      t.is(storage.objects.hash('blob', body), oid);
    }
  });

  rule(
    'an object is a read-only file of its own and of the journal',
    async (t, { storage, loose, journal }) => {
      const oid = await storage.objects.write('blob', Buffer.from('x'));
      t.is(statSync(loose(oid)).ino, statSync(journal(oid)).ino);
      t.is(statSync(loose(oid)).mode & 0o222, 0);
      t.deepEqual(tickets(storage), [storage.tickets.id], 'no temporary file is left');
    },
  );

  rule(
    'several at once are written as one by one, doubles and known ones included',
    async (t, { place, storage }) => {
      const known = await storage.objects.write('tree', Buffer.alloc(0));
      const texts = ['a', 'b', 'a', 'c'];
      const blobs = texts.map((text) => ({ type: 'blob' as const, body: Buffer.from(text) }));
      const oids = await storage.objects.writeAll([...blobs, { type: 'tree', body: Buffer.alloc(0) }]);
      t.is(oids.pop(), known);
      t.deepEqual(
        oids.map((oid) => place.git('cat-file', 'blob', oid)),
        texts,
      );
      t.deepEqual(await storage.objects.writeAll([]), []);
      t.deepEqual(tickets(storage), [storage.tickets.id]);
      place.git('fsck', '--full');
    },
  );

  rule('commits and trees pass the strict checks of git', async (t, { place, storage }) => {
    const tree = await storage.objects.write('tree', Buffer.alloc(0));
    const body = commitBody({
      tree,
      parents: [place.git('rev-parse', 'HEAD')],
      message: 'é\n\nline',
      at: new Date(0),
    });
    const commit = await storage.objects.write('commit', body);
    place.git('update-ref', 'refs/durable/tasks/a', commit);
    place.git('fsck', '--strict', '--full');
    t.is(place.git('log', '-1', '--format=%an <%ae> %at|%B', commit).trim(), `${AUTHOR} 0|é\n\nline`);
    t.is((await storage.objects.read(commit))?.type, 'commit');
  });

  rule('an object is written loose even when a pack has it', async (t, { place, storage, loose }) => {
    const oid = place.git('rev-parse', 'HEAD:README');
    place.git('repack', '-adq');
    place.git('prune-packed');
    t.false(existsSync(loose(oid)));
    t.is(await storage.objects.write('blob', Buffer.from('hello\n')), oid);
    t.true(existsSync(loose(oid)));
    place.git('prune-packed');
    await storage.objects.write('blob', Buffer.from('hello\n'));
    t.true(existsSync(loose(oid)), 'written again, although this process wrote it before');
  });

  rule('a torn loose object is replaced by a writer', async (t, { place, storage, loose }) => {
    const oid = place.git('rev-parse', 'HEAD:README');
    for (const torn of [Buffer.alloc(0), readFileSync(loose(oid)).subarray(0, 5)]) {
      unlinkAndWrite(loose(oid), torn);
      t.is(await storage.objects.write('blob', Buffer.from('hello\n')), oid);
      t.is(place.git('cat-file', 'blob', oid), 'hello');
    }
    place.git('fsck', '--full');
  });

  rule('a torn loose object is replaced by a reader from the journal', async (t, opened) => {
    const { place, storage, loose, journal } = opened;
    const oid = await storage.objects.write('blob', Buffer.from('kept'));
    unlinkAndWrite(loose(oid), readFileSync(loose(oid)).subarray(0, 7));
    t.deepEqual(await storage.objects.read(oid), { type: 'blob', body: Buffer.from('kept') });
    t.is(statSync(loose(oid)).ino, statSync(journal(oid)).ino);
    place.git('fsck', '--full');
  });

  rule(
    'a pruned object is put back by the first reader, and git sees it',
    async (t, { place, storage, loose }) => {
      const other = await storage.objects.write('blob', Buffer.from('other'));
      await storage.objects.read(place.git('rev-parse', 'HEAD'));
      place.git('prune', '--expire=now');
      t.false(existsSync(loose(other)), 'git took the object, and its folder if that was empty');
      t.is((await storage.objects.read(other))?.body.toString(), 'other');
      t.is(place.git('cat-file', 'blob', other), 'other');
    },
  );

  rule('what nobody has is undefined', async (t, { storage }) => {
    const oid = storage.objects.hash('blob', Buffer.from('never written'));
    t.is(await storage.objects.read(oid), undefined);
  });

  rule('a journal entry that is not that object restores nothing', async (t, { storage, loose, journal }) => {
    const oid = await storage.objects.write('blob', Buffer.from('a'));
    const other = await storage.objects.write('blob', Buffer.from('b'));
    unlinkAndWrite(journal(oid), readFileSync(journal(other)));
    unlinkAndWrite(loose(oid), Buffer.alloc(0));
    const error = await t.throwsAsync(storage.objects.read(oid));
    t.true(hasCode(error, 'object-damaged'));
  });

  rule(
    'packed objects are read, those of a pack made after the first read too',
    async (t, { place, storage }) => {
      const head = place.git('rev-parse', 'HEAD');
      place.git('repack', '-adq');
      t.is((await storage.objects.read(head))?.type, 'commit');
      place.write('second', 'second\n');
      place.git('add', 'second');
      place.git('commit', '-q', '-m', 'second');
      place.git('repack', '-adq');
      t.is((await storage.objects.read(place.git('rev-parse', 'HEAD:second')))?.body.toString(), 'second\n');
      t.is((await storage.objects.read(head))?.type, 'commit');
    },
  );

  rule('a damaged pack is an error, never a wrong or missing object', async (t, { place, storage }) => {
    const oid = place.git('rev-parse', 'HEAD:README');
    place.git('repack', '-adq');
    damagePack(place, oid);
    const error = await t.throwsAsync(storage.objects.read(oid));
    t.true(hasCode(error, 'object-damaged'), String(error));
    const copy = await storage.objects.write('blob', Buffer.from('hello\n'));
    t.is(copy, oid);
    t.is(
      (await storage.objects.read(oid))?.body.toString(),
      'hello\n',
      'a writer of the same object heals it',
    );
  });

  rule(
    'a list comes in its order, missing ones named, lost ones restored',
    async (t, { place, storage, loose }) => {
      const bodies = Array.from({ length: 60 }, (_, at) => Buffer.from(`blob ${String(at)}`));
      const oids: string[] = [];
      for (const body of bodies) oids.push(await storage.objects.write('blob', body));
      const never = storage.objects.hash('blob', Buffer.from('never written'));
      const tree = place.run('git', ['mktree'], {
        input: oids
          .slice(0, 40)
          .map((oid, at) => `100644 blob ${oid}\t${String(at)}\n`)
          .join(''),
      });
      place.git('update-ref', 'refs/durable/x', place.git('commit-tree', '-m', 'x', tree.stdout.trim()));
      place.git('repack', '-adq');
      place.git('prune', '--expire=now');
      t.false(existsSync(loose(oids[50] ?? '')));
      for (const count of [5, 60]) {
        const asked = [...oids.slice(60 - count), never, ...oids.slice(0, 1)];
        const got: string[] = [];
        for await (const answer of storage.objects.readMany(asked)) {
          got.push(answer.oid);
          if ('missing' in answer) t.is(answer.oid, never);
          else t.true(answer.body.equals(bodies[oids.indexOf(answer.oid)] ?? Buffer.alloc(0)));
        }
        t.deepEqual(got, asked);
      }
      for await (const answer of storage.objects.readMany([])) t.fail(answer.oid);
      place.git('fsck', '--full');
    },
  );

  rule('a list goes on after a torn object that the journal heals', async (t, { storage, loose }) => {
    const oids: string[] = [];
    for (let at = 0; at < 60; at += 1)
      oids.push(await storage.objects.write('blob', Buffer.from(String(at))));
    for (const at of [0, 31, 59]) unlinkAndWrite(loose(oids[at] ?? ''), Buffer.from('torn'));
    const bodies: string[] = [];
    for await (const answer of storage.objects.readMany(oids))
      bodies.push('body' in answer ? answer.body.toString() : '');
    t.deepEqual(
      bodies,
      Array.from({ length: 60 }, (_, at) => String(at)),
    );
  });

  rule('a list may be left early', async (t, { storage }) => {
    const oids: string[] = [];
    for (let at = 0; at < 40; at += 1)
      oids.push(await storage.objects.write('blob', Buffer.alloc(100_000, at)));
    for await (const answer of storage.objects.readMany(oids)) {
      t.is(answer.oid, oids.at(0) ?? '');
      break;
    }
    t.is((await storage.objects.read(oids[1] ?? ''))?.body[0], 1);
  });

  rule('a dropped object is gone, journal entry and all', async (t, { storage, loose, journal }) => {
    const oid = await storage.objects.write('blob', Buffer.from('lease record'));
    storage.objects.drop(oid);
    t.false(existsSync(loose(oid)) || existsSync(journal(oid)));
    t.is(await storage.objects.read(oid), undefined);
    storage.objects.drop(oid);
    t.is(await storage.objects.write('blob', Buffer.from('lease record')), oid);
    t.true(existsSync(loose(oid)));
  });

  rule('in a linked work tree objects go where all work trees look', async (t, { place }) => {
    place.git('worktree', 'add', '-q', '../linked');
    const linked = await openObjects(t, place, {}, join(place.top, 'linked'));
    const oid = await linked.storage.objects.write('blob', Buffer.from('x'));
    t.is(place.git('cat-file', 'blob', oid), 'x');
    t.is((await linked.storage.objects.read(oid))?.body.toString(), 'x');
  });

  for (const point of [
    'object.temp:write:before',
    'object.temp:fsync:before',
    'object.publish:link:before',
  ] as const) {
    rule(
      `no space at ${point} is a typed error, tears nothing, and the next try works`,
      async (t, { place }) => {
        const host = { full: true };
        place.git('config', 'durable.fsync', 'true');
        const opened = await openObjects(t, place, { faults: { hit: full(point, host) } });
        const error = await t.throwsAsync(opened.storage.objects.write('blob', Buffer.from('x')));
        t.true(hasCode(error, 'out-of-space'));
        t.deepEqual(tickets(opened.storage), [opened.storage.tickets.id], 'no temporary file is left');
        place.git('fsck', '--full');
        host.full = false;
        const oid = await opened.storage.objects.write('blob', Buffer.from('x'));
        t.is(place.git('cat-file', 'blob', oid), 'x');
      },
    );
  }

  for (const [code, refusal] of [
    ['EROFS', 'permission-denied'],
    ['ENOSPC', 'out-of-space'],
  ] as const) {
    rule(`a git dir that cannot be written (${code}) can be read, the journal too`, async (t, opened) => {
      const { place, loose, storage } = opened;
      const oid = await storage.objects.write('blob', Buffer.from('x'));
      const hit = (): never => {
        throw Object.assign(new Error('cannot be written'), { code });
      };
      const readOnly = await openObjects(t, place, { faults: { hit } });
      unlinkAndWrite(loose(oid), Buffer.alloc(0));
      t.is((await readOnly.storage.objects.read(oid))?.body.toString(), 'x');
      const error = await t.throwsAsync(readOnly.storage.objects.write('blob', Buffer.from('y')));
      t.true(hasCode(error, refusal));
    });
  }
}

const AUTHOR = 'git-durable <git-durable@users.noreply.github.com>';

const tickets = (storage: Storage): string[] => readdirSync(join(storage.layout.shared, 'tickets'));

const full =
  (point: FaultPoint, disk: { full: boolean }) =>
  (hit: FaultPoint): void => {
    if (disk.full && hit === point) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
  };

/** Flips the last bytes of the object's own stream in the only pack. */
function damagePack(place: Scratch, oid: string): void {
  const dir = join(place.dir, '.git/objects/pack');
  const idx = readdirSync(dir).find((name) => name.endsWith('.idx')) ?? '';
  const listed = place.git('verify-pack', '-v', `.git/objects/pack/${idx}`);
  const [, , , size = '', offset = ''] = (
    listed.split('\n').find((line) => line.startsWith(oid)) ?? ''
  ).split(/\s+/);
  const pack = join(dir, idx.replace(/idx$/, 'pack'));
  const bytes = readFileSync(pack);
  const end = Number(offset) + Number(size);
  for (let at = end - 6; at < end; at += 1) bytes[at] = (bytes[at] ?? 0) ^ 0xff;
  chmodSync(pack, 0o644);
  writeFileSync(pack, bytes);
}
