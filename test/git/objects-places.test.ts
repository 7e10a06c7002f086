/** Where objects lie elsewhere, or are not there: what holds of the store whichever backend reads. */
import { spawnSync } from 'node:child_process';
import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import test from 'ava';
import type { FaultPoint } from '../../lib/git/fault.js';
import { scratch } from '../helpers/scratch.js';
import { openObjects, unlinkAndWrite } from '../helpers/opened-objects.js';

test('objects that lie on another disk are copied there, and restored there', async (t) => {
  const place = scratch(t);
  const apart = (point: FaultPoint): void => {
    const links = ['object.publish:link:before', 'object.restore:link:before'];
    if (links.includes(point)) throw Object.assign(new Error('another disk'), { code: 'EXDEV' });
  };
  const { storage, loose } = await openObjects(t, place, { faults: { hit: apart } });
  const oid = await storage.objects.write('blob', Buffer.from('x'));
  t.is(place.git('cat-file', 'blob', oid), 'x');
  unlinkAndWrite(loose(oid), Buffer.from('torn'));
  t.is((await storage.objects.read(oid))?.body.toString(), 'x');
  t.is(place.git('cat-file', 'blob', oid), 'x');
  t.is(statSync(loose(oid)).mode & 0o777, 0o444);
  place.git('fsck', '--strict');
});

test('in a partial clone the remote is never asked: the journal is, and what is not here is missing', async (t) => {
  const place = scratch(t);
  place.git('config', 'uploadpack.allowFilter', 'true');
  place.write('README', 'second');
  place.git('commit', '-qam', 'second');
  place.git('clone', '-q', '--filter=blob:none', `file://${encodeURI(place.dir)}`, '../partial');
  const { storage, loose } = await openObjects(t, place, {}, join(place.top, 'partial'));
  const oid = await storage.objects.write('blob', Buffer.from('ours'));
  rmSync(loose(oid));
  t.is((await storage.objects.read(oid))?.body.toString(), 'ours');
  const first = place.git('rev-parse', 'HEAD~:README');
  t.is(await storage.objects.read(first), undefined);
  const asked = [...Array.from({ length: 30 }, () => first), oid];
  const answers: boolean[] = [];
  for await (const answer of storage.objects.readMany(asked)) answers.push('missing' in answer);
  t.deepEqual(answers, [...Array.from({ length: 30 }, () => true), false]);
});

test('a program that has read ends by itself, without closing', (t) => {
  const place = scratch(t);
  place.git('repack', '-adq');
  const library = pathToFileURL(join(import.meta.dirname, '../../lib/')).href;
  const program = `
    const { openStorage } = await import('${library}git/storage.js');
    const { systemHost } = await import('${library}host.js');
    const storage = await openStorage(process.argv[1], systemHost());
    const object = await storage.objects.read(process.argv[2]);
    console.log(object.type);`;
  const oid = place.git('rev-parse', 'HEAD');
  const ran = spawnSync(process.execPath, ['--input-type=module', '-e', program, place.dir, oid], {
    env: place.env,
    timeout: 20_000,
  });
  t.is(ran.stdout.toString(), 'commit\n');
  t.is(ran.status, 0);
});

test('what is no object id is refused before git sees it', async (t) => {
  const { storage } = await openObjects(t, scratch(t));
  for (const wrong of ['HEAD', '', 'a\nb', 'A'.repeat(40)]) {
    await t.throwsAsync(storage.objects.read(wrong), { instanceOf: RangeError });
    t.throws(
      () => {
        storage.objects.drop(wrong);
      },
      { instanceOf: RangeError },
    );
  }
});
