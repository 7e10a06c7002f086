/** `uninstall`: exactly what `init` and the turns since have added goes, and it is proven that nothing stays. */
import { uninstall } from '../../hooks/install.js';
import { DurableError } from '../../lib/errors.js';
import { openStorage, type Storage } from '../../lib/git/storage.js';
import { recoveryReport } from '../../lib/recovery/report.js';
import { EXIT } from '../exit.js';
import type { VerbContext } from '../verb.js';
import { quantity } from '../../lib/quantity.js';

export async function run(context: VerbContext): Promise<number> {
  const { output } = context;
  const purge = context.arguments.flag('purge');
  const storage = await openStorage(context.dir, context.host);
  try {
    if (purge && !context.arguments.flag('interrupted')) await refuseInterrupted(storage);
    const done = await uninstall(storage, { purge });
    output.result({ ...done, purged: purge }, () => {
      output.table(done.removed.map((name) => ['removed', name]));
      output.table(done.restored.map((name) => ['restored', name]));
      output.table(done.others.map((dir) => ['kept for', dir]));
      output.table(done.residue.map((name) => [{ text: 'still there', style: 'red' }, name]));
      if (done.removed.length + done.restored.length === 0) output.line('nothing of ours was here');
      if (!purge) output.line("the refs under refs/durable stay; 'durable uninstall --purge' takes them too");
    });
    if (done.residue.length === 0) return EXIT.done;
    output.note(`${quantity(done.residue.length, 'path')} could not be removed; type the same again`);
    return EXIT.failed;
  } finally {
    await storage.close();
  }
}

/** What it takes is all that could repair them, in whichever work tree. Throws 'recovery-needed', 'version-unsupported'. */
async function refuseInterrupted(storage: Storage): Promise<void> {
  const [oldest] = (await recoveryReport(storage, { all: true })).interrupted;
  if (oldest === undefined) return;
  const { task, turn, objective } = oldest;
  throw new DurableError('recovery-needed', { task, turn, objective });
}
