/**
 * `run -- CMD`: any command as one turn under the lease.
 *
 * Order: the turn is started (lease, checkpoint, keeper) · the command stands at its gate · its pid is in the ledger ·
 * the gate opens · it ends · its end is recorded, with a checkpoint · the lease is given back. Killed anywhere, `recover` knows
 * the turn. The command has the terminal, the signals and the exit code to itself; standard output is never written to.
 */
import { basename } from 'node:path';
import type { Repository } from '../../lib/repository.js';
import type { Turn } from '../../lib/turn/turn.js';
import { findTask } from '../address.js';
import { usage } from '../arguments.js';
import { exitCodeOf, sentenceOf } from '../exit.js';
import { withRepository } from '../open.js';
import { clean } from '../output.js';
import { commandLine, runCommand, type Ended } from '../run/command.js';
import { startOrRecover } from '../run/interrupted.js';
import { linkedFolder } from '../run/linked.js';
import { checkReport, emptyReport, writeReport, type Report } from '../run/report.js';
import { resultFile } from '../run/result.js';
import { Signals } from '../run/signals.js';
import type { VerbContext } from '../verb.js';

export async function run(context: VerbContext): Promise<number> {
  const command = commandOf(context);
  checkReport(context);
  const report = emptyReport();
  const signals = new Signals(context.host.pid);
  try {
    const isApart = context.arguments.flag('worktree');
    const placed = isApart ? { ...context, dir: await linkedFolder(context) } : context;
    report.exit = await withRepository(placed, (repository) =>
      runTurn({ context: placed, repository, command, signals, report }),
    );
  } catch (error) {
    context.output.note(sentenceOf(error));
    report.exit = exitCodeOf(error);
  } finally {
    signals.close();
  }
  writeReport(context, report);
  return report.exit;
}

function commandOf(context: VerbContext): readonly string[] {
  const { command, output } = context;
  if (command === null || command.length === 0)
    throw usage("'run' takes a command after '--': git durable run -- CMD");
  if (output.json)
    throw usage("'run' leaves standard output to its command; use --report FILE in place of --json");
  return command;
}

interface Running {
  readonly context: VerbContext;
  readonly repository: Repository;
  readonly command: readonly string[];
  readonly signals: Signals;
  readonly report: Report;
}

async function runTurn({ report, ...running }: Running): Promise<number> {
  const { context, repository, command, signals } = running;
  const { storage } = repository;
  const line = commandLine(command);
  const task = context.arguments.text('task');
  const turn = await startOrRecover(context, repository, {
    objective: context.arguments.text('objective') ?? line,
    agent: storage.config.get('durable.agent') ?? basename(command[0] ?? ''),
    ...(task === null ? {} : { task: task === 'new' ? task : findTask(storage, task) }),
  });
  report.turn = turn.id;
  sayForeign(context, turn);
  const result = resultFile(context);
  const call = { tool: 'run', args: command, cwd: context.dir, summary: line };
  const ended = await runCommand({ ...running, turn, call });
  report.started = ended.started;
  report.signal = ended.signal;
  signals.settle(() => {
    context.output.note('recording the end of the turn; the same again leaves it interrupted');
  });
  return finish({ context, turn, ended, result: result === null ? null : result.read() });
}

interface Finishing {
  readonly context: VerbContext;
  readonly turn: Turn;
  readonly ended: Ended;
  readonly result: string | null;
}

const MOST_NAMED = 3;

/** What earlier turns left running may write beside this one, and nobody would look for it. */
function sayForeign({ output }: VerbContext, { leftRunning }: Turn): void {
  if (leftRunning.length === 0) return;
  const named = leftRunning.slice(0, MOST_NAMED).map(({ pid, command }) => `${String(pid)} ${command}`);
  const more = leftRunning.length > MOST_NAMED ? `, and ${String(leftRunning.length - MOST_NAMED)} more` : '';
  output.note(
    `earlier turns left running: ${clean(named.join(', '))}${more}; they may write beside this turn: see 'git durable orphans'`,
  );
}

/**
 * The command's code is this program's, whatever became of the record: a caller's script acts on what the command said. An
 * end that could not be recorded is said here, and met by the next `run` as interrupted work.
 */
async function finish({ context, turn, ended, result }: Finishing): Promise<number> {
  const { code, summary } = ended;
  const outcome = ended.started ? (code === 0 ? 'completed' : 'failed') : 'abandoned';
  try {
    await ended.record();
    await turn.finish({ outcome, summary, exit: code, ...(result === null ? {} : { result }) });
  } catch (error) {
    // What to do next is not the same as after a verb that did nothing: the command must not be typed again.
    const [why] = sentenceOf(error).split('; ', 1);
    context.output.note(
      `the command has ended (${summary}), its end is not recorded: ${why ?? ''}; what it did is there: look at 'git durable recover', then decide`,
    );
  }
  return code;
}
