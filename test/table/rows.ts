/**
 * The commands of the fence's table, and what each mode does to a git that is not the turn's.
 *
 * R: refused, nothing changed · R0: nothing changed, exit 0 · P:x refused after changing x · -: not refused (a command that
 * changes refs, HEAD, index or stash is then observed). x as in `aspects` of fence-fixture.ts.
 *
 * Weaker than all mechanisms at once, and why: `prune` and `repack -a -d`, which only `extensions.preciousObjects` stops, and with that
 * libgit2 opens the repository no more (what the turn recorded survives both: test/race) · `worktree add` without a new branch,
 * which touches nothing of the turn and is the way out for a second session.
 */
import type { Tree } from '../helpers/fence-fixture.js';

export interface Row {
  readonly words: string;
  readonly tree: Tree;
  readonly strict: string;
  readonly hooks: string;
  /** The turn's own git does what an unfenced one does, unless said otherwise. */
  readonly agent?: string;
}

const row =
  (tree: Tree) =>
  (words: string, strict: string, hooks: string, agent?: string): Row => ({
    words,
    tree,
    strict,
    hooks,
    ...(agent === undefined ? {} : { agent }),
  });
const d = row('dirty');
const c = row('clean');

export const ROWS: readonly Row[] = [
  d('add new.txt', 'R', '-'),
  d('add a.txt', 'R', '-'),
  d('add b.txt', 'R', '-'),
  d('add del.txt', 'R', '-'),
  d('add -u', 'R', '-'),
  d('add -A', 'R', '-'),
  d('add -N new.txt', 'R', '-'),
  c('add --renormalize .', 'R', '-'),
  d('add --chmod=+x rest.txt', 'R', '-'),
  d('stage new.txt', 'R', '-'),
  d('commit -m x', 'R', 'R'),
  d('commit -am x', 'R', 'R'),
  d('commit -m x a.txt', 'R', 'R'),
  d('commit --no-verify -m x', 'R', 'R'),
  d('commit -a --no-verify -m x', 'R', 'R'),
  d('commit --amend -m x', 'R', 'R'),
  d('commit --allow-empty -m x', 'R', 'R'),
  d('-c core.hooksPath=/dev/null commit -m x', 'R', '-'),
  d('reset -q', 'R', 'P:idx'),
  d('reset -q staged.txt', 'R', '-'),
  d('reset --soft HEAD~1', 'R', 'R'),
  d('reset -q --mixed HEAD~1', 'R', 'P:idx'),
  d('reset -q --hard', 'R', 'P:idx'),
  d('reset -q --hard HEAD~1', 'R', 'P:idx'),
  c('reset -q --keep HEAD~1', 'R', 'P:idx'),
  c('checkout -q other', 'R', '-'),
  d('checkout -qb made', 'R', 'R'),
  d('checkout -q --detach', 'R', 'R'),
  d('checkout -qf other', 'R', '-'),
  d('checkout -q -- a.txt', 'R', '-'),
  d('checkout -q HEAD~1 -- rest.txt', 'R', '-'),
  c('switch -q other', 'R', '-'),
  d('switch -qc made', 'R', 'R'),
  c('switch -q --orphan lone', 'R', '-'),
  d('restore a.txt', 'R', '-'),
  d('restore --staged staged.txt', 'R', '-'),
  d('restore -S -W --source HEAD~1 rest.txt', 'R', '-'),
  d('stash push', 'R', 'R'),
  d('stash push -u', 'R', 'R'),
  d('stash push --keep-index', 'R', 'R'),
  d('stash push --staged', 'R', 'R'),
  d('stash create', 'R', '-'),
  c('stash pop', 'R', 'P:wt'),
  c('stash apply', 'R', '-'),
  d('stash drop', 'R', 'R'),
  d('stash clear', 'R', 'R'),
  c('stash branch made', 'R', 'R'),
  d('rm -q rest.txt', 'R', '-'),
  d('rm -q --cached a.txt', 'R', '-'),
  d('mv rest.txt moved.txt', 'R', '-'),
  c('merge -q ahead', 'R', 'R'),
  c('merge -q feature', 'R', 'R'),
  c('merge -q --no-verify feature', 'R', 'R'),
  c('merge -q --no-commit feature', 'R', 'R'),
  c('merge -q --squash feature', 'R', 'R'),
  c('merge -q conflict', 'R', 'R'),
  c('rebase -q feature', 'R', 'R'),
  c('rebase -q ahead', 'R', 'R'),
  c('rebase -q -i -f HEAD~1', 'R', 'R'),
  d('rebase -q --autostash feature', 'R', 'P:wt'),
  c('cherry-pick feature', 'R', 'P:idx'),
  c('cherry-pick -n feature', 'R', '-'),
  c('revert --no-edit HEAD', 'R', 'P:idx'),
  c('revert -n HEAD', 'R', 'P:idx'),
  c('am -q ../mail.patch', 'P:pseudo', 'P:pseudo'),
  c('am -q -3 ../mail.patch', 'P:pseudo', 'P:pseudo'),
  c('apply ../diff.patch', '-', '-'),
  c('apply --index ../diff.patch', 'R', '-'),
  c('apply --cached ../diff.patch', 'R', '-'),
  c('apply -3 ../diff.patch', 'R', '-'),
  d('update-index --add new.txt', 'R', '-'),
  d('update-index a.txt', 'R', '-'),
  d('update-index --remove del.txt', 'R', '-'),
  d('update-index --assume-unchanged rest.txt', 'R', '-'),
  d('update-index --refresh', 'R', 'R'),
  d('read-tree HEAD~1', 'R', '-'),
  d('read-tree -u --reset HEAD', 'R', '-'),
  d('checkout-index -f a.txt', '-', '-'),
  c('pull -q --ff-only', 'P:rtrk', 'P:rtrk'),
  c('pull -q --rebase', 'P:rtrk', 'P:rtrk'),
  d('clean -fdq', '-', '-'),
  d('branch made', 'R', 'R'),
  d('branch -f other main', 'R', 'R'),
  d('branch -q -d merged', 'R', 'R'),
  d('branch -m renamed', 'R', 'R'),
  d('branch -q -u origin/other', '-', '-'),
  d('tag made', 'R', 'R'),
  d('tag -d v1', 'R', 'R'),
  d('update-ref HEAD HEAD~1', 'R', 'R'),
  d('update-ref refs/durable/made HEAD', 'R', 'R'),
  d('symbolic-ref HEAD refs/heads/other', '-', '-'),
  d('notes add -m x', 'R', 'R'),
  d('replace HEAD HEAD~1', 'R', 'R'),
  d('reflog expire --expire=now --all', '-', '-'),
  d('gc -q', 'R', 'R', 'R'),
  d('gc -q --prune=now', 'R', 'R', 'R'),
  d('prune', '-', '-'),
  d('repack -q -a -d', '-', '-'),
  d('prune-packed -q', '-', '-'),
  d('pack-refs --all', 'R', 'R'),
  d('worktree add -q -b made ../linked', 'R', 'R'),
  d('worktree add -q --detach ../linked', '-', '-'),
  d('worktree add -q ../linked other', '-', '-'),
  c('sparse-checkout set --no-cone a.txt', 'P:cfg', '-'),
  d('bisect start', 'R', 'R'),
  d('-c protocol.file.allow=always submodule -q add ../sub made', 'R', '-'),
  c('push -q origin main:made', 'R', 'R'),
  c('push -q --no-verify origin main:made', '-', '-'),
  d('write-tree', 'R', '-'),
  d('config user.nickname x', '-', '-'),
  d('remote add more ../up', '-', '-'),
];

/**
 * Not refused in mode hooks, and no hook of ours runs: what they change the observer finds by comparing, and cannot say which process it
 * was.
 */
export const UNSEEN: ReadonlySet<string> = new Set([
  'apply ../diff.patch',
  'branch -q -u origin/other',
  'checkout-index -f a.txt',
  'clean -fdq',
  'config user.nickname x',
  'reflog expire --expire=now --all',
  'remote add more ../up',
  'repack -q -a -d',
  'symbolic-ref HEAD refs/heads/other',
  '-c core.hooksPath=/dev/null commit -m x',
]);

/** Unchanged by the fence in every mode: same code, same output as without it. */
export const READING: readonly string[] = [
  'status',
  'status --porcelain=v2 --branch',
  'diff',
  'diff HEAD',
  'diff --cached',
  'diff --stat',
  'log --oneline',
  'show HEAD',
  'blame rest.txt',
  'describe --always --dirty',
  'grep one',
  'ls-files -m',
  'ls-files -s',
  'stash list',
  'stash show -p',
  'branch -a',
  'for-each-ref refs/heads',
  'rev-parse HEAD',
  'cat-file -p HEAD',
  'hash-object a.txt',
  'archive HEAD',
  'fsck --no-dangling',
  'fetch -q',
  'fetch -q --prune --tags',
  'clone -q . ../cloned',
  'merge-base main feature',
  'rev-list --count HEAD',
  'ls-tree -r HEAD',
  'reflog',
];
