import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { leaveConflict } from '../helpers/conflicting.js';
import { document, type Line } from '../helpers/events.js';
import { interruptedRun } from '../helpers/interrupted-run.js';
import { durable, PROGRAM } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

interface Listed {
  readonly open: readonly Line[];
  readonly resolved: readonly Line[];
}

/** The id of a conflict that a finished turn has left open. */
function conflicting(place: Scratch): string {
  leaveConflict(place);
  return String(document<Listed>(place, ['conflicts']).open[0]?.['id']);
}

test('conflicts lists, compares three ways and names what to type; status counts it', (t) => {
  const place = scratch(t);
  const id = conflicting(place);
  t.is(document(place, ['status'])['conflicts'], 1);
  t.is(durable(place, ['status', '--exit-code']).code, 3);
  t.regex(durable(place, ['status']).stdout, /next: git durable conflicts/);
  t.like(document<Listed>(place, ['conflicts']).open[0], {
    path: 'file',
    state: 'open',
    why: 'changed-since-read',
  });
  const shown = durable(place, ['conflicts', id.slice(0, 8)]).stdout;
  t.regex(shown, /--- base\n\+\+\+ theirs\n@@[^\n]*\n-read\n\+theirs\n/);
  t.regex(shown, /--- base\n\+\+\+ mine\n@@[^\n]*\n-read\n\+mine\n/);
  t.is(durable(place, ['conflicts', 'nowhere']).code, 2);
});

test('recover names each open conflict, interrupted work or none, and names none that is settled', async (t) => {
  const place = scratch(t);
  const id = conflicting(place);
  const named = (): unknown => document(place, ['recover'], { codes: [0, 3] })['conflicts'];
  const line = new RegExp(`^ +${id} +file$`, 'm');
  t.like(named(), [{ id, path: 'file' }]);
  const idle = durable(place, ['recover']);
  t.is(idle.code, 0);
  t.regex(idle.stdout, line);
  t.regex(idle.stdout, /^next: git durable conflicts$/m);
  await interruptedRun(t, place, 'echo changed > README');
  t.like(named(), [{ id, path: 'file' }]);
  t.regex(durable(place, ['recover']).stdout, line);
  t.is(durable(place, ['recover', '--keep']).code, 0);
  t.is(durable(place, ['resolve', id, '--use-latest']).code, 0);
  t.deepEqual(named(), []);
  t.notRegex(durable(place, ['recover']).stdout, /conflict/);
});

test('resolve --keep-mine writes and prints its undo; a second answer is 4; no answer or two are 2', (t) => {
  const place = scratch(t);
  const id = conflicting(place);
  t.is(durable(place, ['resolve', id]).code, 2);
  t.is(durable(place, ['resolve', id, '--keep-mine', '--use-latest']).code, 2);
  const done = document(place, ['resolve', id.slice(0, 8), '--keep-mine']);
  t.like(done, { id, path: 'file', choice: 'keep-mine', restored: ['file'], removed: [] });
  t.is(readFileSync(join(place.dir, 'file'), 'utf8'), 'mine\n');
  t.is(durable(place, ['resolve', id, '--use-latest']).code, 4);
  t.is(durable(place, ['restore', String(done['checkpoint'])]).code, 0);
  t.is(readFileSync(join(place.dir, 'file'), 'utf8'), 'theirs\n');
});

test('resolve --use-latest writes nothing and frees the path; from inside a turn it is refused with 4', (t) => {
  const place = scratch(t);
  const id = conflicting(place);
  const inside = durable(place, ['run', '--', process.execPath, '-e', INSIDE, id]);
  t.is(inside.code, 4, inside.stderr);
  t.is(durable(place, ['resolve', id, '--use-latest']).code, 0);
  t.is(readFileSync(join(place.dir, 'file'), 'utf8'), 'theirs\n');
  t.is(document<Listed>(place, ['conflicts']).resolved[0]?.['state'], 'use-latest');
});

const INSIDE = `process.exit(require('node:child_process').spawnSync(process.execPath,
  [${JSON.stringify(PROGRAM)}, 'resolve', process.argv[1], '--use-latest']).status)`;
