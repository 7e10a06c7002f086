/** What a checkpoint reaches, lost or torn in the object store: `verify` says so. Through the real program. */
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { deflateSync } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import { document } from '../helpers/events.js';
import { objectFile, unpack } from '../helpers/loose-objects.js';
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
  unpack(at);
  const objectAt = (path: string): string => objectFile(at, `${checkpoints[1] ?? ''}:worktree/${path}`);
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

for (const [what, flip] of [
  ['torn', () => Buffer.from('torn')],
  ['whole, with other bytes', () => deflateSync(Buffer.from('blob 6\0First\n'))],
] as const) {
  test(`a file whose object is ${what} is named at each checkpoint that has it by verify --contents, which leaves with 5`, (t) => {
    const at = place(t);
    t.is(durable(at, ['verify', '--contents']).code, 0);
    chmodSync(at.objectAt('folder/first'), 0o644);
    writeFileSync(at.objectAt('folder/first'), flip());
    t.not(at.run('git', ['fsck', '--full']).code, 0);
    const { code, stderr } = durable(at, ['verify', '--contents']);
    t.is(code, 5);
    const named = [...stderr.matchAll(/event (\d+): contents-damaged, 'worktree\/folder\/first'/g)];
    t.deepEqual(
      named.map(([, seq]) => seq),
      ['2', '3'],
    );
  });
}
