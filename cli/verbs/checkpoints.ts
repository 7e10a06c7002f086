/** `checkpoints`: every snapshot of every task, oldest first. */
import { listCheckpoints } from '../../lib/files/checkpoint-read.js';
import { EXIT } from '../exit.js';
import { withStorage } from '../open.js';
import type { VerbContext } from '../verb.js';

export async function run(context: VerbContext): Promise<number> {
  const { output } = context;
  return withStorage(context, async (storage) => {
    const listed = await listCheckpoints(storage);
    const document = listed.map(({ checkpoint, task, turn, takenAt, message, files }) => {
      return { checkpoint, task, turn, takenAt, message, files };
    });
    output.result(document, () => {
      output.table(
        listed.map((one) => [
          one.checkpoint.slice(0, 12),
          one.takenAt,
          `${String(one.files)} files`,
          one.message,
        ]),
      );
      if (listed.length === 0) output.line('none yet; next: git durable checkpoint -m TEXT');
    });
    return EXIT.done;
  });
}
