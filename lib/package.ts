/** The files of this package, found alike from the modules as compiled and from the programs they are bundled into. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The nearest folder above this module that holds a package.json: bundled, it lies as deep as no source says. */
const ROOT = ((): string => {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json')) && dirname(folder) !== folder) folder = dirname(folder);
  return folder;
})();

/** Absolute path of a file of this package, given from its root: `hooks/git/hook.sh`. */
export const packageFile = (path: string): string => join(ROOT, path);

/** Absolute paths of the programs that others start; each is an entry of `.build.mjs`. */
export const PROGRAMS = {
  main: packageFile('dist/program/cli/main.js'),
  keeper: packageFile('dist/program/lib/lease/keeper-entry.js'),
  hook: packageFile('dist/program/hooks/hook-entry.js'),
} as const;

/** This package's version, as its package.json says; `unknown` where that says none. */
export function packageVersion(): string {
  const parsed: unknown = JSON.parse(readFileSync(packageFile('package.json'), 'utf8'));
  const isNamed = typeof parsed === 'object' && parsed !== null && 'version' in parsed;
  return isNamed ? String(parsed.version) : 'unknown';
}
