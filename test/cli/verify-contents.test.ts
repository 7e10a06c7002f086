/** What a checkpoint reaches, lost or torn in the object store: `verify` says so. Through the real program. */
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { document } from '../helpers/events.js';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

interface Place extends Scratch {
  /** Two checkpoints; the file `folder/first` is in both, `folder/second` in the second. */
  readonly checkpoints: readonly string[];
  /** Where an object of the second one lies, loose. */
  readonly objectAt: (path: string) => string;
}

function place(t: ExecutionContext): Place {
  const at = scratch(t);
  const checkpoints = ['first', 'second'].map((name) => {
    at.write(`folder/${name}`, `${name}\n`);
    return document<{ checkpoint: string }>(at, ['checkpoint']).checkpoint;
  });
  const packs = join(at.dir, '.git/objects/pack');
  const bodies = readdirSync(packs).filter((name) => name.endsWith('.pack'));
  const bytes = bodies.map((name) => readFileSync(join(packs, name)));
  for (const name of readdirSync(packs)) rmSync(join(packs, name));
  for (const input of bytes) at.run('git', ['unpack-objects', '-q'], { input });
  const objectAt = (path: string): string => {
    const oid = at.git('rev-parse', `${checkpoints[1] ?? ''}:worktree/${path}`);
    return join(at.dir, '.git/objects', oid.slice(0, 2), oid.slice(2));
  };
  return { ...at, checkpoints, objectAt };
}

interface Verified {
  readonly findings: readonly { readonly seq: number; readonly code: string; readonly detail: string }[];
}

const found = (at: Scratch): string[] =>
  document<Verified>(at, ['verify'], { codes: [5] }).findings.map(
    ({ seq, code }) => `${String(seq)} ${code}`,
  );

test('a checkpoint of which each object is there verifies', (t) => {
  t.is(durable(place(t), ['verify']).code, 0);
});

for (const [what, path, expected] of [
  ['a file of two checkpoints', 'folder/first', ['2 contents-missing', '3 contents-missing']],
  ['a file of the second one', 'folder/second', ['3 contents-missing']],
  ['a folder of the second one', 'folder', ['3 contents-missing']],
] as const) {
  test(`${what} that is lost is named at each checkpoint that has it, and verify leaves with 5`, (t) => {
    const at = place(t);
    rmSync(at.objectAt(path));
    t.deepEqual(found(at), expected);
  });
}

test('a folder that is torn is named as damage, and verify leaves with 5', (t) => {
  const at = place(t);
  chmodSync(at.objectAt('folder'), 0o644);
  writeFileSync(at.objectAt('folder'), 'torn');
  t.deepEqual(found(at), ['3 contents-damaged']);
});
