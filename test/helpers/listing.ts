/** Everything below a folder, for saying that nothing changed: each path with its kind, mode and digest. */
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** `without`: paths left out, with all below them. */
export function listing(root: string, without: readonly string[] = [], at = ''): string[] {
  return readdirSync(join(root, at), { encoding: 'latin1' })
    .sort()
    .filter((name) => !without.includes(join(at, name)))
    .flatMap((name) => {
      const path = join(at, name);
      const place = Buffer.from(`${Buffer.from(root).toString('latin1')}/${path}`, 'latin1');
      const stat = lstatSync(place);
      const mode = (stat.mode & 0o777).toString(8);
      if (stat.isDirectory()) return [`${path}/ ${mode}`, ...listing(root, without, path)];
      const bytes = stat.isSymbolicLink() ? readlinkSync(place, 'buffer') : readFileSync(place);
      return [`${path} ${mode} ${createHash('sha256').update(bytes).digest('hex')}`];
    });
}

/** The lines that only one of two listings has. */
export function differences(before: readonly string[], after: readonly string[]): string[] {
  const [old, now] = [new Set(before), new Set(after)];
  return [
    ...before.filter((line) => !now.has(line)).map((line) => `- ${line}`),
    ...after.filter((line) => !old.has(line)).map((line) => `+ ${line}`),
  ];
}
