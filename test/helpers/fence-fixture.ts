/**
 * The repository that the fence's table is run in, and what of it is compared before and after a command.
 *
 * A row runs in a copy of a repository in which a turn is open: a copied `index.lock`, hooks and state name the same living
 * holder, so that one turn serves every row. The holder is another process, of which the row's git does not descend.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { listing } from './listing.js';
import type { Scratch } from './scratch.js';

export type Tree = 'dirty' | 'clean';

/** Fixed, so that two runs of a command make the same commits and reflog lines. */
export const DATES = {
  GIT_AUTHOR_DATE: '2026-01-02T03:04:05Z',
  GIT_COMMITTER_DATE: '2026-01-02T03:04:05Z',
  GIT_EDITOR: 'true',
  GIT_SEQUENCE_EDITOR: 'true',
};

/** Fills `place.dir`; its remote is `../up`, patches are `../mail.patch` and `../diff.patch`, a submodule's origin `../sub`. */
export function build(place: Scratch, tree: Tree): void {
  const git = (...args: string[]): string => {
    const ran = place.run('git', args, { env: DATES });
    if (ran.code !== 0) throw new Error(`git ${args.join(' ')}: ${ran.stderr}`);
    return ran.stdout;
  };
  const commit = (path: string, text: string): void => {
    place.write(path, text);
    git('add', '--', path);
    git('commit', '-qm', `${path} ${text.trim()}`);
  };
  for (const name of ['README', 'a.txt', 'b.txt', 'del.txt', 'rest.txt']) commit(name, `${name} one\n`);
  git('branch', 'merged');
  git('checkout', '-qb', 'feature');
  commit('feat.txt', 'feat\n');
  git('checkout', '-qb', 'conflict', 'main');
  commit('rest.txt', 'conflict\n');
  git('checkout', '-q', 'main');
  commit('rest.txt', 'rest two\n');
  git('branch', 'other', 'HEAD~1');
  git('checkout', '-qb', 'ahead');
  commit('ahead.txt', 'ahead\n');
  writeFileSync(join(place.top, 'mail.patch'), git('format-patch', '-1', '--stdout'));
  git('checkout', '-q', 'main');
  place.run('git', ['init', '-q', '--bare', '../up']);
  place.run('git', ['init', '-q', '../sub']);
  place.run('git', ['-C', '../sub', 'commit', '-q', '--allow-empty', '-m', 'sub'], { env: DATES });
  git('remote', 'add', 'origin', '../up');
  git('push', '-q', 'origin', 'main', 'other');
  git('fetch', '-q', 'origin');
  git('branch', '-q', '-u', 'origin/main');
  git('push', '-q', 'origin', 'ahead:main', 'feature:fresh');
  git('update-ref', 'refs/remotes/origin/main', 'main');
  git('update-ref', '-d', 'refs/remotes/origin/fresh');
  git('tag', 'v1', 'main~1');
  place.write('a.txt', 'stashed\n');
  git('stash', '-q');
  writeFileSync(join(place.top, 'diff.patch'), git('diff', 'main', 'ahead'));
  if (tree === 'clean') return;
  place.write('a.txt', 'a changed and longer\n');
  place.write('b.txt', 'B.TXT ONE\n');
  place.write('new.txt', 'new\n');
  place.write('staged.txt', 'staged\n');
  git('add', 'staged.txt');
  place.run('rm', ['del.txt']);
}

/** A copy of the whole place, remote and patches included, in a folder of its own. */
export function copyOf(place: Scratch, name: string): string {
  const top = join(place.top, 'rows', name);
  mkdirSync(top, { recursive: true });
  for (const entry of ['work', 'up', 'sub', 'home', 'mail.patch', 'diff.patch'])
    cpSync(join(place.top, entry), join(top, entry), {
      recursive: true,
      verbatimSymlinks: true,
      preserveTimestamps: true,
    });
  return join(top, 'work');
}

/** By aspect, as FENCE.md's legend has them; equal texts mean that nothing changed. */
export function aspects(place: Scratch, dir: string): Record<string, string> {
  const ask = (...args: string[]): string =>
    place.run('git', ['--no-optional-locks', '-c', 'core.hooksPath=/dev/null', ...args], { cwd: dir }).stdout;
  const git = join(dir, '.git');
  const here = (text: string): string => text.replaceAll(dir, 'DIR').replaceAll(join(dir, '..'), 'TOP');
  const text = (path: string): string =>
    existsSync(join(git, path)) ? readFileSync(join(git, path), 'utf8') : '';
  const refs = ask('for-each-ref', '--format=%(refname) %(objectname)').split('\n');
  const is = (prefix: string) => (line: string) => line.startsWith(prefix);
  const pseudo = readdirSync(git).filter((name) =>
    /^[A-Z_]+_HEAD$|^(?:MERGE|SQUASH)_MSG$|^rebase-|^sequencer$|^BISECT/.test(name),
  );
  return {
    idx: ask('ls-files', '-s', '-v'),
    wt: listing(dir, ['.git']).join('\n'),
    refs: refs.filter((line) => !/^refs\/(?:durable|remotes)\//.test(line)).join('\n'),
    rtrk: refs.filter(is('refs/remotes/')).join('\n'),
    HEAD: text('HEAD'),
    pseudo: pseudo.filter((name) => name !== 'FETCH_HEAD').join(),
    reflog: here(ask('reflog', 'show', '--all') + ask('stash', 'list')),
    cfg: text('config'),
    wtadm: existsSync(join(git, 'worktrees')) ? readdirSync(join(git, 'worktrees')).join() : '',
    up: place.run('git', ['-C', '../up', 'for-each-ref'], { cwd: dir }).stdout,
    packs:
      readdirSync(join(git, 'objects/pack'))
        .filter((name) => name.endsWith('.pack'))
        .join() + text('packed-refs'),
  };
}

export function changed(before: Record<string, string>, after: Record<string, string>): string[] {
  return Object.keys(before).filter((name) => before[name] !== after[name]);
}
