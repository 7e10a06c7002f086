/**
 * `recover`: the report, which reads only, or one of three repairs.
 *
 * `--take-over` alone takes a live but stuck holder's work tree over and changes no file (action keep), since a takeover
 * is always a recovery.
 */
import type {
  InterruptedTurn,
  ReportedFile,
  RecoverReport,
  RepairAction,
  RepairResult,
} from '../../lib/recovery/document.js';
import { deliverAll } from '../../lib/agents/gate.js';
import type { Original, TurnsAround } from '../../lib/recovery/report.js';
import type { Repository } from '../../lib/repository.js';
import { openConflicts } from '../../lib/decisions/conflict.js';
import { displayPath } from '../../lib/git/path.js';
import { pick } from '../address.js';
import { usage, type Arguments } from '../arguments.js';
import { noteForeign, noteLeftAlone, uncoveredRows } from '../left-alone.js';
import { EXIT } from '../exit.js';
import { LOOKING, noteDamage, withRepository } from '../open.js';
import { argumentsText, type Cell, type Output, type Style } from '../output.js';
import { shellWord } from '../shell-word.js';
import type { VerbContext } from '../verb.js';

const ACTIONS = ['roll-back', 'roll-forward', 'keep'] as const;

export async function run(context: VerbContext): Promise<number> {
  const action = actionOf(context.arguments);
  if (action === null) return withRepository(context, (repository) => report(context, repository), LOOKING);
  return withRepository(context, (repository) => mend(context, repository, action));
}

function actionOf(words: Arguments): RepairAction | null {
  const given = ACTIONS.filter((action) => words.flag(action));
  const [action] = given;
  if (given.length > 1)
    throw usage(`choose one: ${given.map((one) => `git durable recover --${one}`).join(', or ')}`);
  const wanted = action ?? (words.flag('take-over') ? 'keep' : null);
  if (wanted !== null && words.flag('all'))
    throw usage("--all only reports; repair in the work tree it was in, with 'git durable -C DIR recover'");
  return wanted;
}

async function report(context: VerbContext, repository: Repository): Promise<number> {
  const { output } = context;
  await noteDamage(context, repository.storage);
  const all = context.arguments.flag('all');
  const found = await output.progress('looking', () => repository.recoveryReport({ all, containers: true }));
  const interrupted = ofTurn(found, context.arguments.text('turn'));
  const around = interrupted.length > 0 ? null : await repository.turnsAround();
  const conflicts = await conflictsOf(repository);
  output.result({ interrupted: interrupted.map(documentOf), conflicts }, () => {
    if (around !== null) nothing(output, around, conflicts);
    else describeConflicts(output, conflicts);
    for (const turn of interrupted) describe(output, turn, interrupted.length === 1);
  });
  noteForeign(output, found.foreign);
  return interrupted.length === 0 ? EXIT.done : EXIT.attention;
}

/** Of the whole repository, as `status` counts them: a repair decides none that was there before it. */
async function conflictsOf({ storage }: Repository): Promise<OpenConflict[]> {
  const open = await openConflicts(storage);
  return open.map(({ task, conflict: { id, detected } }) => ({
    id,
    task,
    turn: detected.event.turn,
    path: detected.event.path,
  }));
}

/** The field names are a contract. */
interface OpenConflict {
  readonly id: string;
  readonly task: string;
  readonly turn: string | null;
  readonly path: string;
}

function describeConflicts(output: Output, conflicts: readonly OpenConflict[]): void {
  section(
    output,
    'open conflicts, each path waits for a decision',
    conflicts.map(({ id, path }) => [id, displayPath(path)]),
    'compare and decide: git durable conflicts',
  );
}

function ofTurn(report: RecoverReport, prefix: string | null): readonly InterruptedTurn[] {
  if (prefix === null) return report.interrupted;
  const wanted = pick(
    'interrupted turn',
    prefix,
    report.interrupted.map((turn) => turn.turn),
  );
  return report.interrupted.filter((turn) => turn.turn === wanted);
}

async function mend(context: VerbContext, repository: Repository, action: RepairAction): Promise<number> {
  const { output } = context;
  const turn = context.arguments.text('turn');
  const takeOver = context.arguments.flag('take-over');
  const found = await repository.recoveryReport();
  const isAsked = takeOver && (turn !== null || (await repository.turnsAround()).isOpen);
  if (found.interrupted.length === 0 && !isAsked) {
    ofTurn(found, turn);
    const none = { restored: [], removed: [], checkpoint: null, kept: [], uncovered: [], uncoveredCount: 0 };
    const around = await repository.turnsAround();
    const conflicts = await conflictsOf(repository);
    output.result({ turn: null, action, ...none }, () => {
      nothing(output, around, conflicts);
    });
    return EXIT.done;
  }
  const done = await output.progress('repairing', () =>
    repository.recover({ action, takeOver, ...(turn === null ? {} : { turn }) }),
  );
  // What came too late for the turn is said in its record.
  await deliverAll(repository.storage);
  noteLeftAlone(output, done);
  const { restored, removed, checkpoint, kept, uncovered, uncoveredCount } = done;
  output.result(
    { turn: done.turn, action, restored, removed, checkpoint, kept, uncovered, uncoveredCount },
    () => {
      describeRepair(output, done);
    },
  );
  return EXIT.done;
}

function describeRepair(output: Output, done: RepairResult): void {
  output.table([
    ...done.restored.map((path) => ['restored', displayPath(path)]),
    ...done.removed.map((path) => ['removed', displayPath(path)]),
  ]);
  if (done.action === 'roll-forward' && done.restored.length + done.removed.length === 0)
    output.line('no file had an intended content left to go to: all are as they were');
  output.line(`turn ${done.turn} is recovered (${done.action})`);
  if (done.checkpoint !== null) output.line(`undo: git durable restore ${done.checkpoint}`);
  output.line(`next: git durable show ${done.turn}`);
}

function nothing(
  output: Output,
  { isOpen, elsewhere, original }: TurnsAround,
  conflicts: readonly OpenConflict[],
): void {
  output.line(
    isOpen ? 'nothing was interrupted: the turn is open, and who holds it lives' : 'nothing was interrupted',
  );
  if (original !== null) describeOriginal(output, original);
  else if (elsewhere > 0) output.line('in another work tree a turn was: git durable recover --all');
  describeConflicts(output, conflicts);
  output.line(`next: git durable ${conflicts.length > 0 ? 'conflicts' : 'status'}`);
}

/** Its turn is not this copy's, so that nobody repairs it twice. */
function describeOriginal(output: Output, { workTree, checkpoint }: Original): void {
  output.line(`this is a copy of '${workTree}', where a turn was interrupted`);
  output.line(`repair it there: git durable -C ${shellWord(workTree)} recover`);
  if (checkpoint !== null)
    output.line(`put this copy's files back to before that turn: git durable restore ${checkpoint}`);
}

/** The field names are a contract. */
function documentOf(turn: InterruptedTurn): unknown {
  return {
    turn: turn.turn,
    task: turn.task,
    objective: turn.objective,
    agent: turn.agent,
    startedAt: turn.startedAt,
    lastEventAt: turn.lastEventAt,
    detectedBy: turn.detectedBy,
    invocations: turn.invocations.map(({ id, tool, state, summary }) => ({ id, tool, state, summary })),
    files: turn.files.map(({ path, state, before, expected, now }) => ({
      path: path,
      state,
      before,
      expected,
      now,
    })),
    approvals: turn.approvals.map(({ id, tool, args, fingerprint, requestedAt }) => ({
      id,
      tool,
      args,
      fingerprint,
      requestedAt,
    })),
    orphans: turn.orphans.map(({ pid, command, startedAt }) => ({ pid, command, startedAt })),
    gitStatusMatches: turn.gitStatusMatches,
    drift: turn.drift,
    uncovered: turn.uncovered,
    uncoveredCount: turn.uncoveredCount,
    lost: turn.lost,
  };
}

const COPY = 'this is a copy of that work tree, or it was moved here; a repair has to name the turn';

const INVOCATION_STYLE: Readonly<Record<string, Style>> = {
  'in-doubt': 'red',
  failed: 'yellow',
  'not-started': 'dim',
};
const FILE_STYLE: Readonly<Record<string, Style>> = {
  partial: 'red',
  foreign: 'yellow',
  changed: 'yellow',
  untouched: 'dim',
};

function describe(output: Output, turn: InterruptedTurn, isOnly: boolean): void {
  output.table([
    ['turn', { text: turn.turn, style: 'bold' }],
    ['objective', turn.objective],
    ['agent', turn.agent],
    ['started', turn.startedAt],
    ['last event', turn.lastEventAt],
    ...(turn.origin === null
      ? []
      : [['begun in', `${turn.origin === '' ? '' : `'${turn.origin}': `}${COPY}`]]),
  ]);
  section(
    output,
    'calls',
    turn.invocations.map((one) => [styled(one.state, INVOCATION_STYLE), one.tool, one.summary]),
  );
  section(
    output,
    'files',
    turn.files.map((one) => [styled(one.state, FILE_STYLE), displayPath(one.path), remark(one)]),
  );
  explain(output, turn);
  section(
    output,
    'pending approvals',
    turn.approvals.map((one) => [one.id, one.tool, argumentsText(one.args)]),
    'answer: git durable approve ID, or git durable reject ID --feedback TEXT',
  );
  section(
    output,
    'still running',
    turn.orphans.map(({ kind, pid, id, command }) => [
      kind === 'process' ? String(pid) : id.slice(0, 12),
      command,
    ]),
    `a repair ends the processes first; without one: ${['git durable', ...at(turn.workTree), 'orphans', '--stop'].join(' ')}`,
  );
  section(
    output,
    'git status says otherwise',
    turn.drift.map((path) => [displayPath(path)]),
    'look: git status',
  );
  section(output, 'in no checkpoint, no repair touches them', uncoveredRows(turn));
  section(
    output,
    'lost',
    turn.lost.map(({ what, oid, state }) => [state, what, `object ${oid}`]),
    'so nobody can tell all that was changed, and no repair moves a file; what else is lost: git durable verify',
  );
  const call = ['git durable', ...at(turn.workTree), 'recover'].join(' ');
  const which = isOnly && turn.origin === null ? '' : ` --turn ${turn.turn}`;
  output.line();
  output.table([
    ['next:', `${call} --keep${which}`, 'leave every file as it is'],
    ...(turn.lost.length === 0 ? [['', `${call} --roll-back${which}`, 'every file to where it was']] : []),
    ...(turn.rollsForward
      ? [['', `${call} --roll-forward${which}`, 'every file to its intended content']]
      : []),
  ]);
}

const at = (workTree: string | null): string[] => (workTree === null ? [] : ['-C', shellWord(workTree)]);

/** What a state cannot say in one word. */
function explain(output: Output, { files, isSceneMissing, detectedBy }: InterruptedTurn): void {
  const has = (state: string): boolean => files.some((file) => file.state === state);
  if (has('foreign'))
    output.line(
      '  foreign: by somebody else, or by a process that the turn left running; no repair touches it',
    );
  // The keeper looks within a second; whoever else looked first came later, and somebody may have been there before.
  if (has('changed') && (isSceneMissing || detectedBy !== 'keeper'))
    output.line(
      "  changed: by the turn, or by somebody between its death and the first look. A repair takes it for the turn's",
    );
}

/** Which files a roll-back would delete, which it would bring back, and why a path is not there though a look finds a file. */
function remark({ state, before, now, beyond }: ReportedFile): string {
  if (beyond !== null) return `beyond the symbolic link '${displayPath(beyond)}'`;
  if (state !== 'changed') return '';
  return before === null ? 'new' : now === null ? 'gone' : '';
}

const styled = (text: string, styles: Readonly<Record<string, Style>>): Cell => {
  const style = styles[text];
  return style === undefined ? { text } : { text, style };
};

/** `hint`: what can be done about the rows. */
function section(
  output: Output,
  title: string,
  rows: readonly (readonly (Cell | string)[])[],
  hint?: string,
): void {
  if (rows.length === 0) return;
  output.line(output.paint('bold', title));
  output.table(rows, '  ');
  if (hint !== undefined) output.line(`  ${hint}`);
}
