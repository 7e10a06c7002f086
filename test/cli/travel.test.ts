import { join } from 'node:path';
import test from 'ava';
import { document } from '../helpers/events.js';
import { durable } from '../helpers/program.js';
import { scratch } from '../helpers/scratch.js';

test("the user's pushes, clones and lists carry nothing of ours, and an empty remote gets the user's branch", (t) => {
  const place = scratch(t);
  t.is(durable(place, ['run', '--', 'sh', '-c', 'echo 2 > README']).code, 0);
  document(place, ['checkpoint']);
  const remote = join(place.top, 'remote.git');
  place.git('init', '-q', '--bare', remote);
  place.git('remote', 'add', 'origin', remote);
  place.git('push', '-q', '--all', 'origin');
  place.git('push', '-q', '--tags', 'origin');
  const listed = place.git('ls-remote', 'origin').split('\n');
  t.deepEqual(
    listed.map((line) => line.split('\t')[1]),
    ['HEAD', 'refs/heads/main'],
  );
  place.git('clone', '-q', place.dir, join(place.top, 'clone'));
  t.is(place.git('-C', join(place.top, 'clone'), 'for-each-ref', 'refs/durable'), '');
  t.is(place.git('branch', '--all', '--format=%(refname)').includes('durable'), false);
  t.is(place.git('stash', 'list'), '');
});

test('a server that checks objects strictly takes every ref of ours; each points at a commit with a short name', (t) => {
  const place = scratch(t);
  t.is(durable(place, ['run', '--', 'sh', '-c', 'echo 2 > README']).code, 0);
  document(place, ['checkpoint']);
  const remote = join(place.top, 'remote.git');
  place.git('init', '-q', '--bare', remote);
  place.git('-C', remote, 'config', 'receive.fsckObjects', 'true');
  place.git('-c', 'fsck.badTimezone=error', 'push', '-q', remote, 'refs/durable/*:refs/durable/*');
  const refs = place.git('for-each-ref', '--format=%(objecttype) %(refname)', 'refs/durable').split('\n');
  t.true(refs.length >= 4);
  for (const ref of refs) {
    t.regex(ref, /^commit /);
    t.true(ref.length - 'commit '.length < 100);
  }
  t.is(place.git('-C', remote, 'fsck', '--strict', '--full'), '');
});
