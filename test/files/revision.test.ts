/** What is at a path, by its image: against git's own answer. */
import { join } from 'node:path';
import test from 'ava';
import { hashInPieces } from '../../lib/files/revision.js';
import { scratch } from '../helpers/scratch.js';

for (const objectFormat of ['sha1', 'sha256'] as const) {
  test(`a file that is read in pieces has the id that git gives it (${objectFormat})`, (t) => {
    const at = scratch(t, { objectFormat });
    for (const size of [0, 1, 6, 7, 8, 13, 14, 15, 1000]) {
      const name = `file-${String(size)}`;
      at.write(name, Buffer.alloc(size, 'not only one letter'));
      const place = join(at.dir, name);
      t.is(hashInPieces(objectFormat, place, { size, piece: 7 }), at.git('hash-object', name), name);
    }
  });
}
