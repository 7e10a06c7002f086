import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { workspaceId } from '../../lib/lease/workspace.js';
import { HolderProcess } from '../helpers/holder-process.js';
import { at } from '../helpers/json.js';
import { openAs } from '../helpers/lease-place.js';
import { scratch } from '../helpers/scratch.js';

test('a work tree has no id until one is asked for, and then the same one for ever', async (t) => {
  const place = scratch(t);
  const storage = await openAs(t, place);
  t.is(workspaceId(storage, { create: false }), null);
  t.false(existsSync(join(place.dir, '.git/durable')));
  const id = workspaceId(storage, { create: true });
  t.regex(id ?? '', /^[a-z2-7]{26}$/);
  t.is(workspaceId(await openAs(t, place), { create: true }), id);
});

test('a linked work tree has an id of its own', async (t) => {
  const place = scratch(t);
  place.git('worktree', 'add', '-q', '../linked');
  const main = workspaceId(await openAs(t, place), { create: true });
  const linked = workspaceId(await openAs(t, place, { dir: join(place.top, 'linked') }), { create: true });
  t.not(linked, main);
});

test('a moved repository, and one after a restart with other device numbers, keeps its id', async (t) => {
  const place = scratch(t);
  const id = workspaceId(await openAs(t, place), { create: true });
  const moved = join(place.top, 'moved');
  renameSync(place.dir, moved);
  t.is(workspaceId(await openAs(t, place, { dir: moved }), { create: true }), id);
  const restarted = await openAs(t, place, { dir: moved, identity: { bootId: 'another' } });
  t.is(workspaceId(restarted, { create: true }), id);
  t.regex(readFileSync(join(moved, '.git/durable/workspace'), 'utf8'), /"boot":"another"/);
});

test('a copy gets an id of its own, the same whoever asks first, and reading it writes nothing', async (t) => {
  const place = scratch(t);
  const id = workspaceId(await openAs(t, place), { create: true });
  const dir = join(place.top, 'copy');
  execFileSync('cp', ['-a', place.dir, dir]);
  const before = readFileSync(join(dir, '.git/durable/workspace'), 'utf8');
  const copy = await openAs(t, place, { dir });
  const read = workspaceId(copy, { create: false });
  t.is(readFileSync(join(dir, '.git/durable/workspace'), 'utf8'), before);
  t.not(read, id);
  t.is(workspaceId(copy, { create: true }), read);
  t.is(workspaceId(copy, { create: true }), read);
  t.is(workspaceId(await openAs(t, place), { create: true }), id);
});

test('of several first processes all get the same id', async (t) => {
  const place = scratch(t);
  const all = await Promise.all(Array.from({ length: 6 }, () => HolderProcess.start(t, place)));
  const answers = await Promise.all(all.map((one) => one.ask('acquire')));
  const leases = answers.map((answer) => at(answer.ok, 'record', 'lease') ?? at(answer.fields, 'lease'));
  t.is(new Set(leases).size, 1);
});
