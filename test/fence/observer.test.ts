/**
 * The observer tells the turn's own git from any other by what says so of the very thing and value: whatever the turn's git does
 * meanwhile explains nothing else.
 */
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { durable, startDurable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

interface Seen {
  readonly what: string;
  readonly ref: string | null;
  readonly before: string | null;
  readonly after: string | null;
  readonly process: { readonly pid: number; readonly command: string } | null;
}

function observed(place: Scratch): Seen[] {
  const { stdout } = durable(place, ['log', '--type', 'git.observed', '--json']);
  return stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Seen);
}

type Mode = 'strict' | 'hooks';

/**
 * A repository with a branch, a stash of two entries, a tag two linked work trees (`../linked` on
 * branch `apart`, `../away`) and a remote.
 */
function prepared(t: ExecutionContext, mode: Mode): Scratch {
  const place = scratch(t);
  place.git('branch', 'other');
  place.git('tag', 'v1');
  for (const text of ['one', 'two']) {
    place.write('README', `${text}\n`);
    place.git('stash', '-q');
  }
  place.git('worktree', 'add', '-q', '-b', 'apart', '../linked');
  place.git('worktree', 'add', '-q', '--detach', '../away');
  place.run('git', ['init', '-q', '--bare', '../up']);
  place.git('push', '-q', '../up', 'main');
  place.git('remote', 'add', 'origin', '../up');
  place.write('theirs', 'theirs\n');
  place.write('../linked/README', 'changed\n');
  t.is(durable(place, ['init', '--fence', mode]).code, 0);
  return place;
}

/** What the turn's own git does before and after the other one. */
const OWN = [
  'git status >/dev/null; git log >/dev/null',
  'echo own > own; git add own; git commit -qm own; git branch own$1; git tag own$1; echo more >> own; git stash -q',
];

/** Runs `act` in the middle of a turn whose git does `script` before and after. */
async function beside(t: ExecutionContext, place: Scratch, script: string, act: () => void): Promise<Seen[]> {
  const agent = ['sh', '-c', `own() { ${script}; }; own 1; echo open; read -r go; own 2`];
  const running = startDurable(t, place, ['run', '--', ...agent]);
  if ((await running.line()) !== 'open') throw new Error(running.said);
  act();
  running.child.stdin.end('go\n');
  await running.ended;
  return observed(place);
}

interface Foreign {
  readonly words: string;
  /** Those of one group are done in one turn, one after another. Default 'refs'. */
  readonly group?: string;
  readonly modes?: readonly Mode[];
  /** Relative to the work tree. */
  readonly cwd?: string;
  /** The event's ref, or how its text begins. */
  readonly thing: string;
  /** Whether a hook of ours ran. */
  readonly isWitnessed: boolean;
}

const linked = { cwd: '../linked', isWitnessed: true };
const hooks = { modes: ['hooks'], isWitnessed: true } as const;
const unhooked = '-c core.hooksPath=/dev/null ';

const FOREIGN: readonly Foreign[] = [
  { ...linked, words: 'stash -q', thing: 'refs/stash' },
  { ...linked, words: 'branch made', thing: 'refs/heads/made' },
  { ...linked, words: 'tag made', thing: 'refs/tags/made' },
  { ...linked, words: 'tag -d v1', thing: 'refs/tags/v1' },
  { ...linked, words: 'commit -q --allow-empty -m x', thing: 'refs/heads/apart' },
  { ...linked, words: 'worktree add -q --detach ../third', thing: 'work tree third' },
  { words: 'worktree add -q --detach ../fourth', thing: 'work tree fourth', isWitnessed: true },
  { words: 'worktree remove ../away', thing: 'work tree away', isWitnessed: false },
  { words: `${unhooked}branch unseen`, thing: 'refs/heads/unseen', isWitnessed: false },
  { words: `${unhooked}tag unseen`, thing: 'refs/tags/unseen', isWitnessed: false },
  { words: 'fetch -q origin', thing: 'refs/remotes/origin/main', isWitnessed: true },
  { words: 'push -q --no-verify origin main:up', thing: 'refs/remotes/origin/up', isWitnessed: true },
  { ...hooks, words: 'add theirs', thing: 'index' },
  { group: 'HEAD', words: 'symbolic-ref HEAD refs/heads/other', thing: 'HEAD', isWitnessed: false },
  { ...hooks, group: 'a checkout', words: 'checkout -q other', thing: 'HEAD' },
  { group: 'a drop', words: 'stash drop -q stash@{1}', thing: 'refs/stash', isWitnessed: false },
  { ...linked, group: 'a stash', words: `${unhooked}stash -q`, thing: 'refs/stash', isWitnessed: false },
];

for (const group of new Set(FOREIGN.map((one) => one.group ?? 'refs'))) {
  for (const mode of ['strict', 'hooks'] as const) {
    const all = FOREIGN.filter(
      (one) => (one.group ?? 'refs') === group && one.modes?.includes(mode) !== false,
    );
    if (all.length === 0) continue;
    const words = all.map((one) => (one.cwd === undefined ? '' : `${one.cwd}: `) + one.words).join(' · ');
    test(`named, and with its process where a hook of ours runs, whatever the turn's git does; mode ${mode}: ${words}`, async (t) => {
      for (const script of OWN) {
        const place = prepared(t, mode);
        const seen = await beside(t, place, script, () => {
          for (const one of all) {
            const ran = place.run('git', one.words.split(' '), { cwd: join(place.dir, one.cwd ?? '.') });
            t.is(ran.code, 0, ran.stderr);
          }
        });
        for (const { words: given, thing, isWitnessed } of all) {
          const found = seen.filter(({ what, ref }) => ref === thing || what.startsWith(`${thing} `));
          t.is(found.length, 1, `${given} beside ${script}: ${JSON.stringify(seen)}`);
          t.is(found[0]?.process?.command, isWitnessed ? `git ${given}` : undefined);
        }
        const known = new Set([...all.map(({ thing }) => thing), 'ORIG_HEAD', 'HEAD', 'index']);
        const isKnown = ({ what, ref }: Seen): boolean =>
          [...known].some((thing) => ref === thing || what.startsWith(`${thing} `));
        t.deepEqual(
          seen.filter((one) => !isKnown(one)),
          [],
        );
      }
    });
  }
}

test('a write of an index of its own is no write of the index', async (t) => {
  const place = prepared(t, 'hooks');
  const env = { GIT_INDEX_FILE: join(place.top, 'elsewhere') };
  const seen = await beside(t, place, 'true', () => {
    t.is(place.run('git', ['add', 'theirs'], { env }).code, 0);
  });
  t.deepEqual(seen, []);
  t.is(place.run('git', ['ls-files'], { env }).stdout, 'theirs\n');
});

test('a branch that is made unseen and one that the turn makes by its name are told apart: what it was made at is looked at', async (t) => {
  const place = prepared(t, 'strict');
  const seen = await beside(t, place, 'git branch own$1', () => {
    place.git('-c', 'core.hooksPath=/dev/null', 'branch', '-f', 'own1', 'HEAD^{/first}');
    place.git(
      '-c',
      'core.hooksPath=/dev/null',
      'update-ref',
      'refs/heads/own1',
      place.git('rev-parse', 'stash'),
    );
  });
  t.deepEqual(
    seen.map(({ what, process }) => [what.split(',')[0], process]),
    [['refs/heads/own1 changed', null]],
  );
});
