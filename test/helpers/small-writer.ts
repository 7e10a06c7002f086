/**
 * A program with a known fault, for the engine's own test: writes ten files the atomic way and says so after each.
 * Arguments: folder, and what it leaves out: `nothing`, `file-flush`, `folder-flush`, `order` (says so before it flushed).
 */
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';

const [dir = '', leftOut = 'nothing'] = process.argv.slice(2);

function flush(path: string): void {
  const fd = openSync(path, 'r');
  fsyncSync(fd);
  closeSync(fd);
}

writeSync(1, 'begin writing\n');
const folder = join(dir, 'some é', 'folder');
mkdirSync(join(dir, 'some é'));
mkdirSync(folder);
flush(dir);
flush(join(dir, 'some é'));
for (let number = 0; number < 10; number += 1) {
  const target = join(folder, `file ${String(number)}`);
  const fd = openSync(`${target}.temp`, 'wx');
  for (const part of ['first ', 'second ', `third ${String(number)}\n`]) writeSync(fd, part);
  closeSync(fd);
  if (leftOut !== 'file-flush') flush(`${target}.temp`);
  renameSync(`${target}.temp`, target);
  if (leftOut === 'order') writeSync(1, `ack file ${String(number)}\n`);
  if (leftOut !== 'folder-flush') flush(folder);
  if (leftOut !== 'order') writeSync(1, `ack file ${String(number)}\n`);
}
// A child in another folder, with a file handed on as its standard output and a relative path.
spawnSync('sh', ['-c', 'cd folder; printf "from a child" > ../child; mv ../child ../kept'], {
  cwd: join(dir, 'some é'),
});
writeSync(1, 'end writing\n');
