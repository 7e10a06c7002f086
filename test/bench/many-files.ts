/**
 * `node many-files.js DIR`: 50,000 small files. A process of its own, so that the one that measures has the memory of a
 * program that has done nothing else: what a start of git costs grows with it.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDERS = 500;
const FILES = 100;
const own = fileURLToPath(import.meta.url);

/** Fills a work tree. */
export function manyFiles(dir: string): void {
  const child = spawnSync(process.execPath, [own, dir], { encoding: 'utf8' });
  if (child.status !== 0) throw new Error(child.stderr);
}

function fill(dir: string): void {
  for (let folder = 0; folder < FOLDERS; folder += 1) {
    const into = join(dir, `src/d${String(folder % 20)}/e${String(folder)}`);
    mkdirSync(into, { recursive: true });
    for (let file = 0; file < FILES; file += 1) {
      const line = `export const x${String(folder)} = ${String(file)};\n`;
      const text = `// ${String(folder)} ${String(file)}\n${line.repeat(1 + (file % 40))}`;
      writeFileSync(join(into, `f${String(file)}.ts`), text);
    }
  }
}

const [, program = '', dir] = process.argv;
if (program === own && dir !== undefined) fill(dir);
