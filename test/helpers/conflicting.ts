/** A turn that leaves a conflict open: `file` was read, somebody wrote 'theirs' meanwhile, and the turn wanted 'mine'. */
import type { Scratch } from './scratch.js';

const LIBRARY = new URL('../../lib/index.js', import.meta.url).href;

const TURN = `
import { writeFileSync } from 'node:fs';
import { openRepository } from ${JSON.stringify(LIBRARY)};
const repository = await openRepository('.');
const turn = await repository.startTurn({ objective: 'edit', keeper: false });
turn.read('file');
writeFileSync('file', 'theirs\\n');
await turn.transaction([{ kind: 'write', path: 'file', bytes: Buffer.from('mine\\n') }]).catch(() => undefined);
await turn.finish({ outcome: 'completed' });
await repository.close();
`;

/** In a process of its own, which is over when this returns: what this process starts may decide. */
export function leaveConflict(place: Scratch): void {
  place.write('file', 'read\n');
  const ran = place.run(process.execPath, ['--input-type=module', '-e', TURN]);
  if (ran.code !== 0) throw new Error(ran.stderr);
}
