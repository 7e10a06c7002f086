/** Objects of a place as files of their own, so that a test can lose or tear one. */
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Scratch } from './scratch.js';

/** Unpacks every pack; git sees the same objects as before. */
export function unpack(at: Scratch): void {
  const packs = join(at.dir, '.git/objects/pack');
  const bodies = readdirSync(packs).filter((name) => name.endsWith('.pack'));
  const bytes = bodies.map((name) => readFileSync(join(packs, name)));
  for (const name of readdirSync(packs)) rmSync(join(packs, name));
  for (const input of bytes) at.run('git', ['unpack-objects', '-q'], { input });
}

/** Where an object lies, by any name that git knows it by; `unpack` comes first. */
export function objectFile(at: Scratch, name: string): string {
  const oid = at.git('rev-parse', '--verify', name);
  return join(at.dir, '.git/objects', oid.slice(0, 2), oid.slice(2));
}

/** Takes it from the store and from our journal. */
export function lose(at: Scratch, name: string): void {
  rmSync(join(at.dir, '.git/durable/journal', at.git('rev-parse', '--verify', name)), { force: true });
  rmSync(objectFile(at, name));
}

/** Leaves a file that is no object; the journal's copy goes. */
export function tear(at: Scratch, name: string): void {
  const file = objectFile(at, name);
  rmSync(join(at.dir, '.git/durable/journal', at.git('rev-parse', '--verify', name)), { force: true });
  chmodSync(file, 0o644);
  writeFileSync(file, 'torn');
}
