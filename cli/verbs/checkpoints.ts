/** `checkpoints`: every snapshot of every task, oldest first. */
import type { Event } from '../../lib/event.js';
import type { Storage } from '../../lib/git/storage.js';
import { listTasks } from '../../lib/ledger/ledger.js';
import { mergedEvents } from '../events.js';
import { EXIT } from '../exit.js';
import { withStorage } from '../open.js';
import type { VerbContext } from '../verb.js';
import { quantity } from '../../lib/quantity.js';

export async function run(context: VerbContext): Promise<number> {
  const { output } = context;
  return withStorage(context, async (storage) => {
    const damage: Error[] = [];
    const listed = await taken(storage, (error) => void damage.push(error));
    output.result(listed.map(documentOf), () => {
      output.table(
        listed.map((one) => [one.checkpoint.slice(0, 12), one.at, quantity(one.files, 'file'), one.message]),
      );
      if (listed.length === 0) output.line('none yet; next: git durable checkpoint -m TEXT');
    });
    for (const error of damage) output.note(error.message);
    return damage.length > 0 ? EXIT.failed : EXIT.done;
  });
}

type Taken = Event<'checkpoint.taken'>;

async function taken(storage: Storage, onDamage: (error: Error) => void): Promise<Taken[]> {
  const found: Taken[] = [];
  for await (const { event } of mergedEvents(storage, listTasks(storage), { oldestFirst: true, onDamage }))
    if (event.type === 'checkpoint.taken') found.push(event);
  return found;
}

/** The field names are a contract. */
function documentOf({ checkpoint, task, turn, at, message, files }: Taken): unknown {
  return { checkpoint, task, turn, takenAt: at, message, files };
}
