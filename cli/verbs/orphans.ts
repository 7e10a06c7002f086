/** `orphans`: what a dead or a finished turn of this work tree left running. `orphans --stop`: end exactly that. */
import type { Orphan } from '../../lib/orphans/orphan.js';
import type { Repository } from '../../lib/repository.js';
import { EXIT } from '../exit.js';
import { noteForeign } from '../left-alone.js';
import { noteDamage, withRepository } from '../open.js';
import { clean, type Cell, type Output } from '../output.js';
import type { VerbContext } from '../verb.js';

export async function run(context: VerbContext): Promise<number> {
  return withRepository(context, async (repository) => {
    const none = (await noteDamage(context, repository.storage)) ? NONE_READABLE : NONE;
    return context.arguments.flag('stop') ? stop(context, repository, none) : list(context, repository, none);
  });
}

const NONE = 'nothing was left running';
/** Beside a ledger or a lease that cannot be read. */
const NONE_READABLE = 'no turn that can be read has left anything running';

async function list({ output }: VerbContext, repository: Repository, none: string): Promise<number> {
  const { orphans, silent, foreign } = await output.progress('looking', () => repository.orphans());
  output.result(orphans.map(documentOf), () => {
    output.table(orphans.map((one) => rowOf(one)));
    saySilent(output, silent);
    output.line(orphans.length === 0 ? none : 'next: git durable orphans --stop');
  });
  noteForeign(output, foreign);
  return EXIT.done;
}

/** Prints what was ended; what did not end is named on standard error, and the code is 1. */
async function stop({ output }: VerbContext, repository: Repository, none: string): Promise<number> {
  const { stopped, remaining, silent, foreign } = await output.progress('ending', () =>
    repository.stopOrphans(),
  );
  output.result(stopped.map(documentOf), () => {
    output.table(stopped.map((one) => [{ text: 'stopped', style: 'green' }, ...rowOf(one)]));
    saySilent(output, silent);
    if (stopped.length + remaining.length === 0) output.line(none);
  });
  for (const { kind, pid, id, command } of remaining) {
    const named = kind === 'process' ? `process ${String(pid)}` : `container ${id.slice(0, 12)}`;
    output.note(
      `${named} (${clean(command)}) does not end, or is started again; end what starts it, and try again`,
    );
  }
  noteForeign(output, foreign);
  return remaining.length === 0 ? EXIT.done : EXIT.failed;
}

/** The field names are a contract. */
function documentOf({ pid, startedAt, command, turn, kind, id }: Orphan): unknown {
  return { pid, startedAt, command, turn, kind, id };
}

function rowOf({ kind, pid, id, startedAt, command, turn }: Orphan): (Cell | string)[] {
  return [kind === 'process' ? String(pid) : id.slice(0, 12), startedAt ?? '-', turn ?? 'op', command];
}

/** A client without a daemon is no trouble of the caller's, and no document's; here it is worth a line. */
function saySilent(output: Output, silent: readonly string[]): void {
  for (const why of silent) output.line(output.paint('dim', `${why}; its containers are not looked at`));
}
