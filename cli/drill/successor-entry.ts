/**
 * The agent that comes after the killed one: it goes on in the same task, asks for what the first one had asked for, and for it
 * again, and writes the path that has a conflict and one that has none.
 *
 * `node successor-entry.js <work tree> <record file> <task>`; what it was told is a JSON line each in the record file.
 */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDurableError, openRepository, type Turn } from '../../lib/index.js';
import { CONTESTED } from './scratch.js';
import type { Told } from './successor.js';
import { APPROVAL, FREE_PATH } from './wording.js';

async function main(dir: string, record: string, task: string): Promise<void> {
  const say = (told: Told): void => {
    appendFileSync(record, `${JSON.stringify(told)}\n`);
  };
  const repository = await openRepository(dir);
  const objective = 'Go on after the kill';
  const turn = await repository.startTurn({ objective, task, agent: 'scripted', keeper: false });
  say(await ask(turn, dir));
  say(await ask(turn, dir));
  for (const path of [CONTESTED.path, FREE_PATH]) say(await write(turn, path));
  await turn.finish({ outcome: 'completed' });
  await repository.close();
}

async function ask(turn: Turn, dir: string): Promise<Told> {
  const gated = await turn.gate({ ...APPROVAL, cwd: join(dir, 'src'), mutates: false });
  if (gated.state === 'approved') await gated.call.end({ state: 'finished' });
  const feedback = gated.state === 'rejected' ? gated.feedback : null;
  return { what: 'asked', state: gated.state, approval: gated.approval, feedback };
}

async function write(turn: Turn, path: string): Promise<Told> {
  try {
    await turn.transaction([{ kind: 'write', path, bytes: Buffer.from('written by the successor\n') }]);
    return { what: 'wrote', path, refused: null };
  } catch (error) {
    if (!isDurableError(error)) throw error;
    return { what: 'wrote', path, refused: error.code };
  }
}

const [, , dir, record, task] = process.argv;
if (dir === undefined || record === undefined || task === undefined) {
  process.stderr.write('usage: successor-entry.js <work tree> <record file> <task>\n');
  process.exitCode = 2;
} else {
  await main(dir, record, task);
}
