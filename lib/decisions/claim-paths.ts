/**
 * What a path in a final text means in the tree: the files that were there before the turn, after it, or that its calls named.
 *
 *     const known = new KnownPaths({ files, links, workTree });
 *     known.resolve('./lib/parse.ts:12')      // ['lib/parse.ts']
 *     known.resolve('parse.ts')               // every file of that name
 *     known.resolve('lib/')                   // ['lib/'], a folder
 *
 * Pure. Nothing is guessed that the tree does not hold: no patterns, no `..`, no absolute path elsewhere, no other case. A path
 * through a symbolic link is what it leads to; a link itself is the link or its target, whichever changed.
 */
export interface KnownFiles {
  /** Relative to the work tree, `/`-separated. */
  readonly files: Iterable<string>;
  /** Symbolic links among them, to their targets as they stand in the link. */
  readonly links: ReadonlyMap<string, string>;
  /** Absolute path of the work tree. */
  readonly workTree: string;
}

/** A name that so many files have means none of them. */
const MOST_NAMESAKES = 20;
const MOST_LINKS = 10;

export class KnownPaths {
  readonly #files: ReadonlySet<string>;
  readonly #folders = new Set<string>();
  readonly #links: ReadonlyMap<string, string>;
  readonly #workTree: string;
  readonly #byName = new Map<string, string[]>();

  constructor({ files, links, workTree }: KnownFiles) {
    this.#files = new Set(files);
    this.#links = links;
    this.#workTree = workTree;
    for (const path of this.#files) this.#index(path);
  }

  /** The files it may mean, or one folder (with a slash at its end); [] when it means nothing here. */
  resolve(written: string): readonly string[] {
    for (const word of spellings(written, this.#workTree)) {
      const found = this.#find(word);
      if (found.length > 0) return found;
    }
    return [];
  }

  #find(word: string): readonly string[] {
    const plain = plainPath(word);
    if (plain === null) return [];
    const path = this.#throughLinks(plain);
    if (this.#files.has(path)) return this.#withTarget(path);
    if (word.includes('/') && this.#folders.has(path)) return [`${path}/`];
    return word.endsWith('/') ? [] : this.#namesakes(plain);
  }

  #index(path: string): void {
    const name = path.slice(path.lastIndexOf('/') + 1);
    const same = this.#byName.get(name);
    if (same === undefined) this.#byName.set(name, [path]);
    else same.push(path);
    for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
      const folder = path.slice(0, end);
      if (this.#folders.has(folder)) return;
      this.#folders.add(folder);
    }
  }

  /** `parse.ts`, or `src/parse.ts`, of a file deeper in the tree. A word without a dot or slash is too little for that. */
  #namesakes(path: string): readonly string[] {
    if (!/[./]/.test(path)) return [];
    const same = this.#byName.get(path.slice(path.lastIndexOf('/') + 1)) ?? [];
    const found = same.filter((one) => one.endsWith(`/${path}`));
    return found.length > MOST_NAMESAKES ? [] : found;
  }

  #withTarget(path: string): readonly string[] {
    const target = this.#links.get(path);
    const led = target === undefined ? null : joined(path, target);
    if (led === null) return [path];
    if (this.#files.has(led)) return [path, led];
    return this.#folders.has(led) ? [path, `${led}/`] : [path];
  }

  /** The same path with each folder that is a link replaced by where it leads. */
  #throughLinks(path: string): string {
    let at = path;
    for (let hops = 0; hops < MOST_LINKS; hops += 1) {
      const link = foldersOf(at).find((folder) => this.#links.has(folder));
      const led = link === undefined ? null : joined(link, this.#links.get(link) ?? '');
      if (link === undefined || led === null) return at;
      at = `${led}${at.slice(link.length)}`;
    }
    return path;
  }
}

/** True when a claimed path, or a folder's name with its slash, covers a changed one. */
export function covers(claimed: string, path: string): boolean {
  return claimed.endsWith('/') ? path.startsWith(claimed) : claimed === path;
}

/** As written, and without what texts put around a path: quotes of git, line numbers, Windows' separators and drive. */
function* spellings(written: string, workTree: string): Generator<string> {
  const word = unquoted(written.trim());
  yield word;
  const bare = word.replace(/(?::\d+(?:[-:]\d+)?|#L\d+(?:-L?\d+)?)$/, '');
  if (bare !== word) yield bare;
  if (bare.startsWith(`${workTree}/`)) yield bare.slice(workTree.length + 1);
  if (!bare.includes('\\')) return;
  const slashed = bare.replaceAll('\\', '/');
  const drive = /^[A-Za-z]:\//.test(slashed);
  if (!drive) yield slashed;
  // Of a drive's path the end that is in this tree, a folder and a name at least.
  const parts = slashed.split('/');
  for (let from = 1; drive && from < parts.length - 1; from += 1) yield parts.slice(from).join('/');
}

/** Null for what is no path of this tree: absolute, out of it, a pattern. */
function plainPath(word: string): string | null {
  if (word.startsWith('/') || word.startsWith('~') || /[*?\0]/.test(word)) return null;
  const parts = word.split('/').filter((part) => part !== '' && part !== '.');
  return parts.length === 0 || parts.includes('..') ? null : parts.join('/');
}

const ESCAPED: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '"': '"', '\\': '\\' };

/** `"a\nb"`, as git quotes a name (core.quotePath); octal escapes are bytes of UTF-8. */
function unquoted(word: string): string {
  const inner = /^"(.+)"$/s.exec(word)?.[1];
  if (inner === undefined) return word;
  const bytes: Buffer[] = [];
  for (const [piece, octal, letter] of inner.matchAll(/\\([0-7]{3})|\\(.)|[^\\]+/gs)) {
    if (octal !== undefined) bytes.push(Buffer.of(Number.parseInt(octal, 8) & 255));
    else bytes.push(Buffer.from(letter === undefined ? piece : (ESCAPED[letter] ?? piece), 'utf8'));
  }
  return Buffer.concat(bytes).toString('utf8');
}

/** Where a link leads, as a path of the tree; null when that is elsewhere. */
function joined(link: string, target: string): string | null {
  if (target === '' || target.startsWith('/')) return null;
  const parts = link.split('/').slice(0, -1);
  for (const part of target.split('/')) {
    if (part === '' || part === '.') continue;
    if (part !== '..') parts.push(part);
    else if (parts.pop() === undefined) return null;
  }
  return parts.length === 0 ? null : parts.join('/');
}

function foldersOf(path: string): string[] {
  const parts = path.split('/');
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'));
}
