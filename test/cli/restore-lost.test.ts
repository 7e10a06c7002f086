/** Restoring a checkpoint of which a file is lost or torn in the object store, through the real program. */
import test from 'ava';
import { document } from '../helpers/events.js';
import { differences, listing } from '../helpers/listing.js';
import { lose, tear, unpack } from '../helpers/loose-objects.js';
import { durable } from '../helpers/program.js';
import { scratch } from '../helpers/scratch.js';

for (const [what, harm] of [
  ['missing', lose],
  ['damaged', tear],
] as const) {
  test(`a restore that needs an object that is ${what} says so, names the file, and changes none`, (t) => {
    const at = scratch(t);
    for (const name of ['a', 'folder/b', 'z']) at.write(name, `${name}\n`);
    const { checkpoint } = document<{ checkpoint: string }>(at, ['checkpoint']);
    unpack(at);
    const oid = at.git('rev-parse', `${checkpoint}:worktree/folder/b`);
    harm(at, oid);
    for (const name of ['a', 'folder/b', 'z']) at.write(name, 'changed\n');
    const files = listing(at.dir, ['.git']);
    const { code, stderr } = durable(at, ['restore', checkpoint]);
    t.is(code, 1);
    t.regex(stderr, new RegExp(`^git-durable: object ${oid} is ${what} [^\n]*'folder/b' of checkpoint`));
    t.deepEqual(differences(files, listing(at.dir, ['.git'])), []);
    t.is(durable(at, ['restore', checkpoint, 'a', 'z']).code, 0);
  });
}
