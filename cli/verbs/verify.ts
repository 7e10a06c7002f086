/** `verify`: the chain, the objects and the epochs of one ledger, or of all and every lease; 5 names the first bad event. */
import { damagedLeases } from '../../lib/doctor.js';
import { Ledger, listTasks } from '../../lib/ledger/ledger.js';
import { EXIT } from '../exit.js';
import { findTask } from '../address.js';
import { withStorage } from '../open.js';
import type { VerbContext } from '../verb.js';
import { quantity } from '../../lib/quantity.js';

export async function run(context: VerbContext): Promise<number> {
  const { output } = context;
  const prefix = context.arguments.text('task');
  const contents = context.arguments.flag('contents');
  return withStorage(context, async (storage) => {
    const tasks = prefix === null ? listTasks(storage) : [findTask(storage, prefix)];
    const verified = await output.progress('verifying', async () => {
      const results = [];
      for (const task of tasks)
        results.push({ task, ...(await Ledger.open(storage, task).verify({ contents })) });
      return results;
    });
    const leases = prefix === null ? await damagedLeases(storage) : [];
    const findings = [
      ...verified.flatMap((one) => one.findings),
      ...leases.map(({ code, detail }) => ({ task: null, seq: null, code, detail })),
    ];
    const ok = findings.length === 0;
    output.result(
      {
        ok,
        tasks: verified.map(({ task, events, head, chain }) => ({ task, events, head, chain })),
        findings,
      },
      () => {
        output.table(
          verified.map((one) => [
            one.ok ? { text: 'ok', style: 'green' } : { text: 'bad', style: 'red' },
            one.task,
            quantity(one.events, 'event'),
            one.chain === null ? '' : `sha256:${one.chain}`,
          ]),
        );
        if (verified.length === 0) output.line('no ledger yet');
      },
    );
    for (const { task, seq, code, detail } of findings)
      output.note(`${place(task, seq)}: ${code}, ${detail}`);
    return ok ? EXIT.done : EXIT.unverified;
  });
}

/** A lease is no task's: its ref stands in what is said of it. */
function place(task: string | null, seq: number | null): string {
  return task === null ? 'a lease' : `task ${task}, event ${seq === null ? '?' : String(seq)}`;
}
