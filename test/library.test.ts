import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import test from 'ava';
import { scratch } from './helpers/scratch.js';

const ROOT = resolve(import.meta.dirname, '../..');

test("the README's library example runs, and what it did is in the ledger", (t) => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
  const example = /^```js\n(.*?)^```$/ms.exec(readme)?.[1] ?? '';
  const place = scratch(t);
  place.write('a.txt', 'old name\n');
  const program = example.replace("'git-durable'", JSON.stringify(join(ROOT, 'dist/lib/index.js')));
  const ran = place.run('node', ['--input-type=module', '-e', program]);
  t.is(ran.code, 0, ran.stderr);
  t.is(readFileSync(join(place.dir, 'a.txt'), 'utf8'), 'new name\n');
  const ref = place.git('for-each-ref', '--format=%(refname)', 'refs/durable/tasks');
  t.regex(place.git('log', '--format=%s', ref), /invocation\.proposed: edit .*a\.txt/);
});

const USE = `
import {
  DurableError, fold, hasCode, initialState, openRepository,
  type Change, type Difference, type Restored, type TakenCheckpoint, type TaskState, type Verification,
} from 'git-durable';

const repository = await openRepository('.');
const seen: string[] = [];
const changes: readonly Change[] = [{ kind: 'write', path: 'a.txt', bytes: Buffer.from('new') }];
const restored: Restored = await repository.turn(
  { key: 'k', objective: 'use the package', agent: 'me', onDoubt: () => ({ action: 'ask' }) },
  async (turn) => {
    const taken: TakenCheckpoint = await turn.checkpoint('before');
    await turn.transaction(changes);
    const differences: Difference[] = await repository.diff(taken.checkpoint);
    seen.push(...differences.map(({ path, status }) => path + ' ' + status));
    return turn.restore({ checkpoint: taken.checkpoint });
  },
);
const [task = ''] = repository.tasks();
let state: TaskState = initialState(task);
for await (const recorded of repository.events(task)) state = fold(state, recorded);
const newest: string[] = [];
for await (const { event } of repository.events(task, { backwards: true })) newest.push(event.type);
const verification: Verification = await repository.verify(task);
const same = JSON.stringify(state.head) === JSON.stringify((await repository.state(task)).head);
try {
  repository.events('nowhere');
} catch (error) {
  if (hasCode(error, 'not-found') && error instanceof DurableError) seen.push(error.fields.what);
}
await repository.close();
console.log(JSON.stringify({ seen, restored: restored.restored, newest: newest[0], ok: verification.ok, same }));
`;

test('the package, used by its name from TypeScript, gives what its types say', (t) => {
  const place = scratch(t);
  place.write('.gitignore', 'node_modules\nuse.*\ntsconfig.json\npackage.json\n');
  place.write('a.txt', 'old');
  mkdirSync(join(place.dir, 'node_modules/@types'), { recursive: true });
  symlinkSync(ROOT, join(place.dir, 'node_modules/git-durable'));
  symlinkSync(join(ROOT, 'node_modules/@types/node'), join(place.dir, 'node_modules/@types/node'));
  place.write('package.json', '{"type":"module"}');
  place.write('use.ts', USE);
  const options = ['--module', 'nodenext', '--target', 'es2023', '--strict', '--types', 'node'];
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  const compiled = place.run('node', [compiler, ...options, '--ignoreConfig', 'use.ts']);
  t.is(compiled.code, 0, compiled.stdout);
  const ran = place.run('node', ['use.js']);
  t.is(ran.code, 0, ran.stderr);
  t.deepEqual(JSON.parse(ran.stdout), {
    seen: ['a.txt modified', 'task'],
    restored: ['a.txt'],
    newest: 'lease.released',
    ok: true,
    same: true,
  });
});
