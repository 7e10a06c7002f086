import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { hasCode } from '../../lib/errors.js';
import { CatFile, streamObjects } from '../../lib/git/catfile.js';
import { Git } from '../../lib/git/process.js';
import { noFaults } from '../../lib/git/fault.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

function opened(t: ExecutionContext, place: Scratch, env: Record<string, string> = {}): CatFile {
  const catFile = new CatFile(new Git(place.dir, { ...place.env, ...env }, noFaults));
  t.teardown(() => catFile.close());
  return catFile;
}

/** Blobs in one pack, the ids in order; those in `damaged` do not inflate. */
function packed(place: Scratch, count: number, damaged: readonly number[] = []): string[] {
  for (let at = 0; at < count; at += 1)
    place.write(`f${String(at)}`, `${String(at)} ${'x'.repeat(at * 997)}`);
  place.git('add', '-A');
  place.git('commit', '-q', '-m', 'all');
  place.git('repack', '-adq', '--depth=0');
  const listed = place.git('ls-tree', 'HEAD').split('\n');
  const byPath = new Map(listed.map((line) => [line.split('\t')[1], line.split(/[ \t]/)[2] ?? '']));
  const oids = Array.from({ length: count }, (_, at) => byPath.get(`f${String(at)}`) ?? '');
  const dir = join(place.dir, '.git/objects/pack');
  const pack = join(dir, readdirSync(dir).find((name) => name.endsWith('.pack')) ?? '');
  const bytes = readFileSync(pack);
  for (const line of place.git('verify-pack', '-v', pack).split('\n')) {
    const [oid = '', , , size, offset] = line.split(/\s+/);
    if (!damaged.includes(oids.indexOf(oid))) continue;
    const end = Number(offset) + Number(size);
    for (let at = end - 6; at < end; at += 1) bytes[at] = (bytes[at] ?? 0) ^ 0xff;
  }
  chmodSync(pack, 0o644);
  writeFileSync(pack, bytes);
  return oids;
}

test('of many questions at once only the damaged one fails', async (t) => {
  const place = scratch(t);
  const oids = packed(place, 12, [3, 7]);
  const catFile = opened(t, place);
  const answers = await Promise.allSettled(oids.map((oid) => catFile.read(oid)));
  for (const [at, answer] of answers.entries()) {
    if (at === 3 || at === 7)
      t.true(answer.status === 'rejected' && hasCode(answer.reason, 'object-damaged'));
    else t.true(answer.status === 'fulfilled' && answer.value?.body.toString().startsWith(`${String(at)} `));
  }
});

test('a git that was killed is asked again', async (t) => {
  const place = scratch(t);
  const [oid = ''] = packed(place, 1);
  const [bin, pids] = [join(place.top, 'bin'), join(place.top, 'pids')];
  mkdirSync(bin);
  writeFileSync(join(bin, 'git'), '#!/bin/sh\necho $$ >> "$PIDS"\nPATH="$REAL_PATH" exec git "$@"\n');
  chmodSync(join(bin, 'git'), 0o755);
  const path = place.env['PATH'] ?? '';
  const catFile = opened(t, place, { PATH: `${bin}:${path}`, REAL_PATH: path, PIDS: pids });
  t.is((await catFile.read(oid))?.body.toString(), '0 ');
  process.kill(Number(readFileSync(pids, 'utf8')), 'SIGKILL');
  t.is((await catFile.read(oid))?.body.toString(), '0 ');
  t.is(readFileSync(pids, 'utf8').trim().split('\n').length, 2);
});

test('what was asked before closing is answered, what is asked after it too', async (t) => {
  const place = scratch(t);
  const oids = packed(place, 40);
  const catFile = opened(t, place);
  const before = oids.map((oid) => catFile.read(oid));
  const closed = catFile.close();
  const after = catFile.read(oids[1] ?? '');
  await closed;
  t.true((await Promise.all(before)).every((object) => object !== undefined));
  t.is((await after)?.body.length, 2 + 997);
});

test('without a git the question fails as git-missing', async (t) => {
  const place = scratch(t);
  const catFile = opened(t, place, { PATH: place.top });
  t.true(hasCode(await t.throwsAsync(catFile.read('0'.repeat(40))), 'git-missing'));
});

test('a stream answers in order, large bodies and missing ones too, and names the object that git died of', async (t) => {
  const place = scratch(t);
  const oids = packed(place, 300, [200]);
  oids.splice(100, 0, '0'.repeat(40));
  const got: string[] = [];
  const git = new Git(place.dir, place.env, noFaults);
  const error = await t.throwsAsync(async () => {
    for await (const answer of streamObjects(git, oids)) {
      got.push(answer.oid);
      if ('missing' in answer) t.is(answer.oid, '0'.repeat(40));
      else
        t.regex(
          answer.body.toString('latin1', 0, 8),
          new RegExp(`^${String(got.length > 100 ? got.length - 2 : got.length - 1)} `),
        );
    }
  });
  t.deepEqual(got, oids.slice(0, 201));
  t.true(hasCode(error, 'object-damaged') && error.fields.oid === oids[201]);
});
