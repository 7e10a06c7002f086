/** Interrupted turns whose baseline is lost or torn in the object store, through the real program. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { openRepository } from '../../lib/index.js';
import { document, events, type Line } from '../helpers/events.js';
import { interrupted, interruptedRun } from '../helpers/interrupted-run.js';
import { differences, listing } from '../helpers/listing.js';
import { lose, tear, unpack } from '../helpers/loose-objects.js';
import { stateOf, until } from '../helpers/processes.js';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

interface Place extends Scratch {
  /** The checkpoint before the command, and the one after the death. */
  readonly before: string;
  readonly after: string;
}

async function place(t: ExecutionContext): Promise<Place> {
  const at = scratch(t);
  at.write('folder/file', 'as it was\n');
  await interruptedRun(t, at, 'echo changed > folder/file; echo made > made');
  const taken = events(at, '--type', 'checkpoint.taken');
  const named = (reason: string): string =>
    String(taken.findLast((event) => event['reason'] === reason)?.['checkpoint']);
  unpack(at);
  return { ...at, before: named('before-tool'), after: named('after-death') };
}

interface Report {
  readonly interrupted: readonly {
    readonly lost: readonly { readonly oid: string; readonly state: string }[];
  }[];
}

const CASES = [
  ['tree is missing', lose, (at: Place) => `${at.before}:worktree`, 'missing'],
  ['tree is torn', tear, (at: Place) => `${at.before}:worktree`, 'damaged'],
  ['folder is missing', lose, (at: Place) => `${at.before}:worktree/folder`, 'missing'],
  ['scope is missing', lose, (at: Place) => `${at.before}:payload/scope`, 'missing'],
  ['commit is missing', lose, (at: Place) => at.before, 'missing'],
] as const;

for (const [what, harm, nameOf, state] of CASES) {
  test(`an interrupted turn of which the baseline's ${what} is reported with what is lost; no repair that moves files is done, and one that keeps them ends it`, async (t) => {
    const at = await place(t);
    const oid = at.git('rev-parse', nameOf(at));
    harm(at, nameOf(at));
    const files = listing(at.dir, ['.git']);
    const report = document<Report>(at, ['recover'], { codes: [3] });
    t.deepEqual(
      report.interrupted.flatMap(({ lost }) => lost.map((one) => [one.oid, one.state])),
      [[oid, state]],
    );
    const said = durable(at, ['recover']);
    t.regex(said.stdout, new RegExp(`${state} .*the baseline of call .*${oid}`));
    t.regex(said.stdout, /recover --keep/);
    t.notRegex(said.stdout, /--roll-/);
    for (const how of ['--roll-back', '--roll-forward']) {
      const { code, stderr } = durable(at, ['recover', how]);
      t.is(code, 1, how);
      t.regex(stderr, new RegExp(`^git-durable: object ${oid} [^\n]*'git durable recover --keep'\n$`), how);
    }
    const { code, stdout, stderr } = durable(at, ['recover', '--keep']);
    t.is(code, 0, stderr);
    t.deepEqual(differences(files, listing(at.dir, ['.git'])), []);
    t.is(durable(at, ['run', '--', 'true']).code, 0);
    // What it names as the way back holds everything.
    const undo = /restore ([0-9a-f]+)/.exec(stdout)?.[1] ?? '';
    rmSync(join(at.dir, 'folder'), { recursive: true });
    t.is(durable(at, ['restore', undo]).code, 0);
    t.deepEqual(differences(files, listing(at.dir, ['.git'])), []);
  });
}

test('a repair that is refused ends no process that the turn left running, and one that is done does', async (t) => {
  const at = scratch(t);
  at.write('new', 'not in HEAD, whose tree git itself needs\n');
  await interrupted(t, at, { script: 'echo changed > README; sleep 1000 & echo $! > ../left' });
  const left = Number(readFileSync(join(at.top, 'left'), 'utf8'));
  t.teardown(() => {
    if (!['', 'Z'].includes(stateOf(left))) process.kill(left, 'SIGKILL');
  });
  const taken = (reason: string): Line | undefined =>
    events(at, '--type', 'checkpoint.taken').find((event) => event['reason'] === reason);
  await until('the keeper has kept the scene', () => taken('after-death') !== undefined);
  unpack(at);
  lose(at, `${String(taken('before-tool')?.['checkpoint'])}:worktree`);
  const lease = at.git('for-each-ref', 'refs/durable/leases');
  for (const how of ['--roll-back', '--roll-forward']) {
    t.is(durable(at, ['recover', how]).code, 1);
    t.false(['', 'Z'].includes(stateOf(left)), how);
    t.is(at.git('for-each-ref', 'refs/durable/leases'), lease);
  }
  const kept = durable(at, ['recover', '--keep']);
  t.is(kept.code, 0, kept.stderr);
  t.true(['', 'Z'].includes(stateOf(left)));
});

test('a repair that a lost baseline forbids has the code object-missing', async (t) => {
  const at = await place(t);
  lose(at, `${at.before}:worktree`);
  const repository = await openRepository(at.dir);
  t.teardown(() => repository.close());
  await t.throwsAsync(repository.recover({ action: 'roll-back' }), { code: 'object-missing' });
});

test('a checkpoint of files whose checkpoint before is lost holds them anew', (t) => {
  const at = scratch(t);
  at.write('folder/file', 'bytes\n');
  const take = (): string => document<{ checkpoint: string }>(at, ['checkpoint']).checkpoint;
  const first = take();
  unpack(at);
  for (const name of ['worktree/folder/file', 'worktree/folder', 'worktree']) lose(at, `${first}:${name}`);
  const second = take();
  const files = listing(at.dir, ['.git']);
  rmSync(join(at.dir, 'folder'), { recursive: true });
  t.is(durable(at, ['restore', second]).code, 0);
  t.deepEqual(differences(files, listing(at.dir, ['.git'])), []);
});
