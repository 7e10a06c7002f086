/**
 * Whether `git status` agrees with a recovery report, and on which paths it does not.
 *
 * `git status` should list exactly: the paths that were dirty at the turn's baseline and that the turn did not touch,
 * and those touched paths whose bytes now differ from HEAD (or whose staged half already did at the baseline). Whatever
 * is listed beyond that, or missing from it, is drift: somebody changed it, staged it or committed it meanwhile.
 *
 * "Differs" is what git calls different: a file is compared as git would store it, after the user's own filters and
 * end-of-line rules (`git hash-object` on the path), and a difference in the execute bit counts unless core.fileMode is
 * off. An ignored file is never listed. Where git's answer depends on what the index remembers, either answer counts as
 * agreement: a file that is stored as HEAD has it but has another size than git remembers (CRLF become LF: `git status` says
 * modified, `git diff` shows nothing), one that has HEAD's bytes though its filters would change them, and a path the user told git not
 * to look at.
 *
 * Only reads, with git's optional locks off. Costs one status, and for the touched paths at most one hash-object and one
 * check-ignore, and the tree objects of the folders above them.
 */
import type { Image } from '../event.js';
import { displayPath, encodePath, splitPaths } from '../git/path.js';
import type { Storage } from '../git/storage.js';
import { STATUS_ARGS } from '../turn/grounding.js';
import { TreeView, type TreeLeaf } from './tree-view.js';

export interface Status {
  /** Every path listed. */
  readonly dirty: ReadonlySet<string>;
  /** Those whose staged half differs from HEAD (or is unmerged). */
  readonly staged: ReadonlySet<string>;
  /** Those of which only the work tree's half is modified. */
  readonly modified: ReadonlySet<string>;
}

/** A path the turn touched, as it is now; null where no file is. */
export interface TouchedNow {
  readonly path: string;
  readonly now: Image;
}

/** Sorted; empty when `git status` and the report agree. */
export async function findDrift(
  storage: Storage,
  baseline: Status,
  touched: readonly TouchedNow[],
): Promise<string[]> {
  const status = parseStatus(await storage.git.output(STATUS_ARGS));
  // An untracked nested repository is listed as a folder, never by what is in it.
  const nested = [...status.dirty, ...baseline.dirty].filter((path) => path.endsWith('/'));
  const compared = await comparedWithHead(storage, touched, nested);
  const names = new Set(touched.map(({ path }) => path));
  const expected = new Set([...baseline.dirty].filter((path) => !names.has(path)));
  for (const { path } of touched) {
    const likeness = compared.get(path) ?? 'either';
    const isTolerated = likeness === 'same' ? status.modified.has(path) : status.dirty.has(path);
    if (baseline.staged.has(path) || likeness === 'differs' || isTolerated) expected.add(path);
  }
  // A submodule with a touched path in it is listed by its own name.
  const isAbove = (path: string): boolean => touched.some((one) => one.path.startsWith(`${path}/`));
  const extra = [...status.dirty].filter((path) => !expected.has(path) && !isAbove(path));
  const missing = [...expected].filter((path) => !status.dirty.has(path));
  const hidden = await flagged(storage, missing);
  return [...extra, ...missing.filter((path) => !hidden.has(path))].sort();
}

/** Reads porcelain v1 with `-z`: `XY path`, and for a rename or copy the old path as a further field. */
export function parseStatus(bytes: Buffer): Status {
  const dirty = new Set<string>();
  const staged = new Set<string>();
  const modified = new Set<string>();
  const fields = splitPaths(bytes);
  for (let at = 0; at < fields.length; at += 1) {
    const field = fields[at] ?? '';
    const [x = ' ', path] = [field.at(0), field.slice(3)];
    dirty.add(path);
    if (field.startsWith(' M')) modified.add(path);
    if (x !== ' ' && x !== '?' && x !== '!') staged.add(path);
    if (!/[RC]/.test(field.slice(0, 2))) continue;
    at += 1;
    const old = fields[at];
    if (old !== undefined && field.slice(0, 2).includes('R')) dirty.add(old);
    if (old !== undefined && x === 'R') staged.add(old);
  }
  return { dirty, staged, modified };
}

type Likeness = 'same' | 'differs' | 'either';

/** How each touched path compares with HEAD, in git's eyes. A path in a submodule answers for the submodule. */
async function comparedWithHead(
  storage: Storage,
  touched: readonly TouchedNow[],
  nested: readonly string[],
): Promise<ReadonlyMap<string, Likeness>> {
  const answers = new Map<string, Likeness>();
  const head = await entriesOfHead(storage, touched);
  const trusted = await trustsFileMode(storage);
  const ignored = await ignoredOf(storage, touched, head);
  const asked = touched.filter(({ path, now }) => now?.mode.startsWith('100') === true && head.has(path));
  const stored = await storedForms(storage, asked);
  for (const { path, now } of touched) {
    const entry = head.get(path) ?? null;
    const isHidden = ignored.has(path) || nested.some((folder) => path.startsWith(folder));
    if (entry?.mode === '160000' || (isHidden && entry === null)) answers.set(path, 'either');
    else if (now === null || entry === null) answers.set(path, now === entry ? 'same' : 'differs');
    else if (kindOf(now.mode, trusted) !== kindOf(entry.mode, trusted)) answers.set(path, 'differs');
    else answers.set(path, likeness(entry.oid, now.oid, stored.get(path) ?? now.oid));
  }
  return answers;
}

function likeness(head: string, raw: string, stored: string): Likeness {
  if (stored === head) return 'same';
  return raw === head ? 'either' : 'differs';
}

function kindOf(mode: string, bits: boolean): string {
  return bits || mode === '120000' ? mode : 'file';
}

async function entriesOfHead(
  storage: Storage,
  touched: readonly TouchedNow[],
): Promise<ReadonlyMap<string, TreeLeaf>> {
  const head = await TreeView.open(storage, 'HEAD^{tree}');
  const entries = new Map<string, TreeLeaf>();
  for (const { path } of touched) {
    const entry = await head.leaf(path);
    if (entry !== null) entries.set(path, entry);
  }
  return entries;
}

async function trustsFileMode(storage: Storage): Promise<boolean> {
  const answer = await storage.git.run(['config', '--type=bool', '--get', 'core.fileMode']);
  return answer.stdout.toString('utf8').trim() !== 'false';
}

/** Those that git status leaves out: neither in HEAD nor in the index, and ignored (check-ignore knows the index). */
async function ignoredOf(
  storage: Storage,
  touched: readonly TouchedNow[],
  head: ReadonlyMap<string, unknown>,
): Promise<ReadonlySet<string>> {
  const asked = touched.filter(({ path, now }) => now !== null && !head.has(path));
  if (asked.length === 0) return new Set();
  const input = Buffer.concat(asked.flatMap(({ path }) => [encodePath(path), Buffer.of(0)]));
  const answer = await storage.git.run(['check-ignore', '-z', '--stdin'], { input });
  return new Set(splitPaths(answer.stdout));
}

/** Blob id of each file as git would store it: with the user's clean filters and end-of-line conversion. */
async function storedForms(
  storage: Storage,
  files: readonly TouchedNow[],
): Promise<ReadonlyMap<string, string>> {
  const forms = new Map<string, string>();
  if (files.length === 0) return forms;
  const input = Buffer.from(files.map(({ path }) => `${displayPath(path)}\n`).join(''), 'utf8');
  const answer = await storage.git.run(['hash-object', '--stdin-paths'], {
    input,
    cwd: storage.layout.workTree,
  });
  const oids = answer.stdout.toString('utf8').trim().split('\n');
  for (const [index, { path }] of files.entries()) {
    const oid = oids[index];
    if (oid !== undefined && oid !== '') forms.set(path, oid);
  }
  return forms;
}

/** Of these, the ones the user told git not to look at (assume-unchanged: lower-case tag; skip-worktree: S). */
async function flagged(storage: Storage, paths: readonly string[]): Promise<ReadonlySet<string>> {
  const hidden = new Set<string>();
  for (const group of argumentGroups(paths.filter((path) => path.isWellFormed()))) {
    const listed = await storage.git.output(['--literal-pathspecs', 'ls-files', '-v', '-z', '--', ...group]);
    for (const line of splitPaths(listed)) if (/^[a-zS] /.test(line)) hidden.add(line.slice(2));
  }
  return hidden;
}

/** A command line has a length; most reports need one group. */
function* argumentGroups(paths: readonly string[]): Generator<string[]> {
  const most = 500;
  for (let at = 0; at < paths.length; at += most) yield paths.slice(at, at + most);
}
