/**
 * Starting a turn where work may have been interrupted: never passed over. `--recover` decides; without it a person at a
 * terminal is asked; anything else leaves with 3.
 */
import { createInterface } from 'node:readline/promises';
import { hasCode, type DurableError } from '../../lib/errors.js';
import type { RepairAction } from '../../lib/recovery/document.js';
import type { Repository } from '../../lib/repository.js';
import type { StartTurn } from '../../lib/turn/start.js';
import type { Turn } from '../../lib/turn/turn.js';
import { noteLeftAlone } from '../left-alone.js';
import type { VerbContext } from '../verb.js';

const ACTIONS: readonly RepairAction[] = ['keep', 'roll-back', 'roll-forward'];

/** The turn goes on in the interrupted one's task unless another was asked for. Errors: those of `startTurn` and `recover`. */
export async function startOrRecover(
  context: VerbContext,
  repository: Repository,
  options: StartTurn,
): Promise<Turn> {
  const { output } = context;
  try {
    return await output.progress('starting the turn', () => repository.startTurn(options));
  } catch (error) {
    if (!hasCode(error, 'recovery-needed')) throw error;
    const given = context.arguments.text('recover');
    const action = ACTIONS.find((one) => one === given) ?? (await askPerson(context, error));
    if (action === null) throw error;
    const { task, turn } = error.fields;
    const done = await output.progress('repairing', () => repository.recover({ action, turn }));
    noteLeftAlone(output, done);
    output.note(`turn ${turn} is recovered (${action}); undo: git durable restore ${done.checkpoint ?? '-'}`);
    // A restore that was cut short belongs to no task that a turn could go on in.
    const isStanding = task.startsWith('standing-');
    return repository.startTurn({ ...(isStanding ? {} : { task }), ...options });
  }
}

/** Null: nobody to ask, or no answer. */
async function askPerson(
  context: VerbContext,
  error: DurableError<'recovery-needed'>,
): Promise<RepairAction | null> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return null;
  const { turn, objective } = error.fields;
  context.output.note(`turn ${turn} was interrupted: ${objective}`);
  const left = new AbortController();
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  for (const event of ['SIGINT', 'close'] as const) {
    terminal.once(event, () => {
      left.abort();
    });
  }
  try {
    const question = 'keep its files, roll them back or roll them forward? [keep/back/forward, else quit] ';
    return answered(await terminal.question(question, { signal: left.signal }));
  } catch (error) {
    if (left.signal.aborted) return null;
    throw error;
  } finally {
    terminal.close();
  }
}

function answered(typed: string): RepairAction | null {
  const answer = typed.trim().toLowerCase();
  if (answer === '') return null;
  if ('keep'.startsWith(answer)) return 'keep';
  if ('back'.startsWith(answer) || answer === 'roll-back') return 'roll-back';
  if ('forward'.startsWith(answer) || answer === 'roll-forward') return 'roll-forward';
  return null;
}
