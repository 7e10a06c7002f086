/** The report of the one turn that a test has interrupted, and edits for it to report. */
import type { Storage } from '../../lib/git/storage.js';
import type { InterruptedTurn } from '../../lib/recovery/document.js';
import { recoveryReport } from '../../lib/recovery/report.js';
import type { Scratch } from './scratch.js';
import { beginCall, endCall, type Says, type TurnPlace } from './turn-place.js';

export async function only(storage: Storage): Promise<InterruptedTurn> {
  const [turn, ...others] = (await recoveryReport(storage)).interrupted;
  if (turn === undefined || others.length > 0) throw new Error('not one interrupted turn');
  return turn;
}

export const say = (path: string, expected: string): Says => ({ path, expected: Buffer.from(expected) });

/** An edit that went through: call, write, end. */
export async function edit(turn: TurnPlace, place: Scratch, path: string, content: string): Promise<void> {
  const call = await beginCall(turn, { paths: [say(path, content)] });
  place.write(path, content);
  await endCall(turn, call);
}
