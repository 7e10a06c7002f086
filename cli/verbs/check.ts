/** `check [TURN]`: what a turn claims at its end, held against its baseline and its events; 5 when it does not hold. */
import type { Check } from '../../lib/decisions/check.js';
import { DurableError } from '../../lib/errors.js';
import { displayPath } from '../../lib/git/path.js';
import type { Storage } from '../../lib/git/storage.js';
import { Ledger } from '../../lib/ledger/ledger.js';
import { describeCheck } from '../claim.js';
import { EXIT } from '../exit.js';
import { locate } from '../locate.js';
import { withRepository } from '../open.js';
import type { VerbContext } from '../verb.js';

export async function run(context: VerbContext): Promise<number> {
  const { output } = context;
  const word = context.arguments.text('turn');
  return withRepository(context, async (repository) => {
    const turn = word === null ? null : await turnOf(context, repository.storage, word);
    const check = await output.progress('checking', () =>
      repository.check({ note: context.arguments.flag('note'), ...(turn === null ? {} : { turn }) }),
    );
    output.result(documentOf(check), () => {
      describeCheck(output, check);
    });
    return check.verdict === 'does-not-hold' ? EXIT.unverified : EXIT.done;
  });
}

/** Any id of which a turn is told: its own, of its calls, its checkpoints, its events; of a task its newest turn. */
async function turnOf({ output }: VerbContext, storage: Storage, word: string): Promise<string> {
  const { kind, task, recorded } = await locate(storage, word, (error) => {
    output.note(error.message);
  });
  const newest = kind === 'task' ? (await Ledger.open(storage, task).readable()).state.turn : null;
  const turn = newest?.id ?? recorded.event.turn;
  if (turn === null) throw new DurableError('not-found', { what: 'turn behind', id: word });
  return turn;
}

/** The field names are a contract. */
function documentOf(check: Check): unknown {
  const { ran, changedSince, tree, ...more } = check;
  return {
    ...more,
    tree: { ...tree, since: changedSince },
    missing: check.missing.map((said) => displayPath(said)),
    ran: ran.map(({ invocation, line, state, exit }) => ({ invocation, command: line, state, exit })),
  };
}
