/**
 * The shape of the repository: who may import whom, who may write, what stands at the top level. Read from the source
 * text, since a linter's configuration can be switched off by a comment and a rule of the design can not.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../../..');

interface Source {
  readonly path: string;
  readonly text: string;
  /** Module names, relative ones as a path from the root; with `types` those of `import type` as well. */
  readonly imports: readonly string[];
}

const IMPORT =
  /^(?:import|export)\s+(?!type\b)[^;]*?from\s+'([^']+)'|^import\s+'([^']+)'|\bimport\('([^']+)'\)/gm;

function sources(folder: string): Source[] {
  return tracked()
    .filter((path) => path.startsWith(`${folder}/`) && path.endsWith('.ts'))
    .map((path) => {
      const text = readFileSync(join(ROOT, path), 'utf8');
      const imports = [...text.matchAll(IMPORT)].map((match) => match[1] ?? match[2] ?? match[3] ?? '');
      return {
        path,
        text,
        imports: imports.map((name) => (name.startsWith('.') ? join(dirname(path), name) : name)),
      };
    });
}

/** The files git would commit; a package without its repository has no top level to judge but the published one. */
function tracked(): string[] {
  return execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
    .split('\0')
    .filter((path) => path !== '' && existsSync(join(ROOT, path)));
}

function offenders(folder: string, wrong: (source: Source) => boolean): string[] {
  return sources(folder)
    .filter(wrong)
    .map(({ path }) => path);
}

const WRITES =
  /\b(?:appendFile|chmod|chown|copyFile|cp|createWriteStream|fchmod|fdatasync|fsync|ftruncate|link|mkdir|mkdtemp|rename|rm|rmdir|symlink|truncate|unlink|utimes|write|writeFile|writev)(?:Sync)?\b/;

test('only lib/git/disk.ts imports what changes a file system', (t) => {
  const found = offenders('lib', ({ text }) =>
    [...text.matchAll(/import\s+(?:\{([^}]*)\}|\*\s+as\s+\w+|\w+)\s+from\s+'node:fs(?:\/promises)?'/g)].some(
      ([whole, names]) => names === undefined || WRITES.test(names) || whole.includes('promises'),
    ),
  );
  t.deepEqual(found, ['lib/git/disk.ts']);
});

test('every import of node:fs is named: a namespace would hide which calls are made', (t) => {
  const found = offenders('lib', ({ text }) => /import\s+(?:\*\s+as\s+)?\w+\s+from\s+'node:fs/.test(text));
  t.deepEqual(found, []);
});

test('the library knows neither the command line nor the hooks nor the tests', (t) => {
  t.deepEqual(
    offenders('lib', ({ imports }) => imports.some((name) => /^(?:cli|hooks|test)\//.test(name))),
    [],
  );
});

test('hooks know the library, not the command line', (t) => {
  t.deepEqual(
    offenders('hooks', ({ imports }) => imports.some((name) => /^(?:cli|test)\//.test(name))),
    [],
  );
});

test('the command line takes from the hooks their installers, and the program that an agent calls through it', (t) => {
  const found = sources('cli').flatMap(({ path, imports }) =>
    imports
      .filter((name) => name.startsWith('hooks/') && !/install|^hooks\/hook-entry\.js$/.test(name))
      .map((name) => `${path}: ${name}`),
  );
  t.deepEqual(found, []);
});

test('storage does not know the domain above it', (t) => {
  const found = sources('lib/git').flatMap(({ path, imports }) =>
    imports
      .filter((name) => name.startsWith('lib/') && !/^lib\/(?:git\/|errors|host|canonical|event)/.test(name))
      .map((name) => `${path}: ${name}`),
  );
  t.deepEqual(found, []);
});

const HEAVY: Readonly<Record<string, RegExp>> = {
  yargs: /^cli\/help\.ts$/,
  'fs-extra': /^(?:cli|hooks)\/.*install|^cli\/verbs\/(?:un)?init|^cli\/drill\//,
  'isomorphic-git': /^lib\/git\//,
  'jsonc-parser': /^hooks\/agents\//,
};

for (const [name, place] of Object.entries(HEAVY)) {
  test(`${name} is imported only where its load time is not on a hook's path`, (t) => {
    const found = ['lib', 'cli', 'hooks'].flatMap((folder) =>
      offenders(
        folder,
        ({ path, imports }) =>
          imports.some((found) => found === name || found.startsWith(`${name}/`)) && !place.test(path),
      ),
    );
    t.deepEqual(found, []);
  });
}

test('isomorphic-git is loaded on demand, never by an import at the top of a file', (t) => {
  t.deepEqual(
    offenders('lib', ({ text }) => /^import\s+(?!type\b)[^;]*'isomorphic-git/m.test(text)),
    [],
  );
});

/** Where the outside is handed in, and the entry points of programs of their own. */
const OUTSIDE = /^lib\/(?:host|git\/fault-actions|.*-entry)\.ts$/;

const IMPURE: Readonly<Record<string, RegExp>> = {
  'prints nothing': /\bconsole\.|process\.std(?:out|err)\b/,
  'never ends the program': /process\.(?:exit|abort)\b/,
  'reads no clock': /\bDate\.now\b|new Date\(\)|performance\.now\b|process\.hrtime/,
  'draws no random number': /Math\.random\b|randomBytes\b|randomUUID\b|getRandomValues\b/,
  'reads no environment': /process\.env\b/,
  'asks not where it runs': /process\.cwd\b/,
};

for (const [rule, pattern] of Object.entries(IMPURE)) {
  test(`the library ${rule} by itself`, (t) => {
    t.deepEqual(
      offenders('lib', ({ path, text }) => !OUTSIDE.test(path) && pattern.test(withoutComments(text))),
      [],
    );
  });
}

test('a module that runs by itself is an entry point by name', (t) => {
  t.deepEqual(
    offenders('lib', ({ path, text }) => !OUTSIDE.test(path) && /process\.(?:argv|on)\b/.test(text)),
    [],
  );
});

test('the top level holds what the design names and nothing else', (t) => {
  const allowed = ['lib', 'cli', 'hooks', 'test', 'package.json', 'package-lock.json', 'tsconfig.json'];
  allowed.push('README.md', 'LICENSE');
  const top = new Set(tracked().map((path) => path.split('/')[0] ?? ''));
  t.deepEqual(
    [...top].filter((name) => !name.startsWith('.') && !allowed.includes(name)),
    [],
  );
});

test('no committed file names a path of the machine it was written on', (t) => {
  const wrong = tracked().filter((path) => {
    if (path.endsWith('.png') || path.startsWith('test/structure/')) return false;
    const text = readFileSync(join(ROOT, path), 'utf8');
    return /\/(?:work|home|root|Users)\/[a-z]|\.\.\/shared\b|_authToken|\/\/registry\.(?!npmjs\.org)/.test(
      text,
    );
  });
  t.deepEqual(wrong, []);
});

test('no file is called after what it is not', (t) => {
  const wrong = tracked().filter((path) =>
    /(?:^|[/-])(?:utils?|helpers?|managers?|common|types)\.ts$/.test(path),
  );
  t.deepEqual(wrong, []);
});

test('no default exports, no any, no non-null assertions, no empty catch in the product', (t) => {
  const found = ['lib', 'cli', 'hooks'].flatMap((folder) =>
    offenders(folder, ({ text }) =>
      /^export default\b|:\s*any\b|\bas any\b|catch\s*(?:\([^)]*\))?\s*\{\s*\}|eslint-disable|@ts-(?:ignore|expect-error|nocheck)/m.test(
        withoutComments(text, /eslint-disable|@ts-/),
      ),
    ),
  );
  t.deepEqual(found, []);
});

test('every module of the library says at its head what it is for', (t) => {
  t.deepEqual(
    offenders('lib', ({ text }) => !text.startsWith('/**')),
    [],
  );
});

test('every test title and every test file runs: none is skipped, alone, or failing on purpose', (t) => {
  const wrong = sources('test').filter(({ text }) =>
    /\btest\.(?:skip|only|failing|todo)\b|\btest\.[a-z.]*\.(?:skip|only|failing)\b/.test(text),
  );
  t.deepEqual(
    wrong.map(({ path }) => path).filter((path) => !path.startsWith('test/structure/')),
    [],
  );
});

/** Comments may speak of what the code must not do. */
function withoutComments(text: string, except?: RegExp): string {
  return text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, (comment) =>
    except?.test(comment) === true ? comment : '',
  );
}
