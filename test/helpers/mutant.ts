/** A copy of this build with one thing changed: what a test of the tests runs. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

export interface Patch {
  /** Compiled file, from `dist`: `lib/files/transaction.js`. */
  readonly file: string;
  /** Must occur exactly once, so that a patch that no longer fits fails its test. */
  readonly find: string | RegExp;
  readonly replace: string;
}

/** Returns the program of the changed build. */
export function mutant(t: Pick<ExecutionContext, 'teardown'>, patches: readonly Patch[]): string {
  const top = mkdtempSync(join(tmpdir(), 'durable-mutant-'));
  t.teardown(() => {
    rmSync(top, { recursive: true, force: true });
  });
  for (const folder of ['lib', 'cli', 'hooks']) {
    cpSync(join(ROOT, 'dist', folder), join(top, 'dist', folder), { recursive: true, force: true });
  }
  for (const name of ['package.json', 'package-lock.json']) cpSync(join(ROOT, name), join(top, name));
  symlinkSync(realpathSync(join(ROOT, 'node_modules')), join(top, 'node_modules'));
  for (const patch of patches) apply(join(top, 'dist', patch.file), patch);
  cpSync(join(ROOT, '.build.mjs'), join(top, '.build.mjs'));
  execFileSync(process.execPath, [join(top, '.build.mjs')]);
  return join(top, 'dist/program/cli/main.js');
}

/** How often what a patch replaces occurs in this build. */
export function occurrences({ file, find }: Patch): number {
  return readFileSync(join(ROOT, 'dist', file), 'utf8').split(find).length - 1;
}

function apply(path: string, patch: Patch): void {
  if (occurrences(patch) !== 1)
    throw new Error(`${String(patch.find)} occurs ${String(occurrences(patch))} times in ${patch.file}`);
  writeFileSync(path, readFileSync(path, 'utf8').split(patch.find).join(patch.replace));
}
