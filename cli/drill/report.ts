/** A drill for people: the answers of one round in plain words, a table of all rounds, and what to type when one failed. */
import type { Cell, Output } from '../output.js';
import type { Interrupted, ReportedFile } from './answers.js';
import type { Ending } from './ending.js';
import { CHECKS, type Check, type Round } from './round.js';
import { complaintsOf, type Counts, type DrillDocument, type Played, type RoundDocument } from './series.js';

const ABBREVIATED = 60;

/** The questions of somebody whose agent was just killed, and what the product answered. */
export function tellRound(output: Output, round: Round): void {
  const [report] = round.answers.recover.document.interrupted;
  const killed = round.plan.keeperToo ? 'The agent and its keeper were' : 'The agent was';
  output.line(`${killed} killed (SIGKILL) after '${round.killedAfter}'.`);
  output.line(
    'Fresh processes answer; each answer is held against a record that the drill keeps outside of them:',
  );
  output.line();
  if (report === undefined) output.line('  nothing: no interrupted turn is known');
  else
    output.table(
      QUESTIONS.flatMap((question) => answerRows(round, report, question)),
      '  ',
    );
  output.line();
}

interface Question {
  readonly check: Check;
  readonly text: string;
  readonly answer: (report: Interrupted, round: Round) => readonly string[];
}

const QUESTIONS: readonly Question[] = [
  {
    check: 'knowsInterrupted',
    text: 'Was a turn interrupted?',
    answer: (report) => [`yes: ${report.agent}, '${report.objective}'`, tally(report.invocations, 'calls')],
  },
  {
    check: 'reportsFiles',
    text: 'Which files were written?',
    answer: (report) => [tally(report.files, 'files'), ...inFlight(report.files)],
  },
  {
    check: 'approvalIntact',
    text: 'Is the approval still there?',
    answer: ({ approvals: [asked] }, { answered }) =>
      asked === undefined
        ? ['none had been asked for']
        : [`yes: ${asked.tool} ${shortened(JSON.stringify(asked.args))}`, BECAME[answered.decision]],
  },
  {
    check: 'conflictIntact',
    text: 'Is the conflict still open?',
    answer: (_, { answers }) =>
      answers.conflicts.document.open.length === 0
        ? ['none had been met']
        : answers.conflicts.document.open.map(
            ({ path }) => `yes: ${path}, with both sides; no other path waits`,
          ),
  },
  {
    check: 'gitStatusMatches',
    text: 'Does git status match?',
    answer: ({ drift }) =>
      drift.length === 0 ? ['yes'] : [`no: ${drift.join(', ')} (not of this turn, planted by the drill)`],
  },
  {
    check: 'orphanFound',
    text: 'Did anything outlive it?',
    answer: ({ orphans }, { ending }) =>
      orphans.length === 0
        ? ['no']
        : [...orphans.map((one) => `yes: pid ${String(one.pid)}, ${one.command}`), endedBy(ending)],
  },
  {
    check: 'rolledBackExactly',
    text: 'Rolled back?',
    answer: (_, { checks }) => repaired(checks.rolledBackExactly, 'every byte as before the turn'),
  },
  {
    check: 'rolledForwardExactly',
    text: 'Rolled forward instead?',
    answer: (_, { checks }) => repaired(checks.rolledForwardExactly, 'every byte as it was intended'),
  },
];

const BECAME = {
  approved: 'approved while the agent was dead, and used once by the one that came after',
  rejected: 'rejected while the agent was dead, and told to the one that came after',
  pending: 'it waits for the one that came after',
} as const;

function endedBy({ when, left }: Ending): string {
  if (left.length > 0) return 'it still runs';
  return when === 'before the repairs'
    ? 'ended by orphans --stop, and nothing else was'
    : 'ended by the repair, and nothing else was';
}

function repaired(complaints: readonly string[], passed: string): readonly string[] {
  return complaints.length === 0 ? [passed] : complaints;
}

function answerRows(round: Round, report: Interrupted, question: Question): (Cell | string)[][] {
  const right = round.checks[question.check].length === 0;
  const mark: Cell = right ? { text: 'right', style: 'green' } : { text: 'WRONG', style: 'red' };
  const [first = '', ...more] = question.answer(report, round);
  return [[question.text, mark, first], ...more.map((line) => ['', '', line])];
}

function tally(items: readonly { readonly state: string }[], what: string): string {
  const counts = new Map<string, number>();
  for (const { state } of items) counts.set(state, (counts.get(state) ?? 0) + 1);
  const parts = [...counts].map(([state, count]) => `${String(count)} ${state}`);
  return parts.length === 0 ? `no ${what}` : `${what}: ${parts.join(', ')}`;
}

function inFlight(files: readonly ReportedFile[]): string[] {
  return files
    .filter((file) => file.state === 'partial')
    .map((file) => `in flight, written in part: ${file.path}`);
}

function shortened(text: string): string {
  return text.length <= ABBREVIATED ? text : `${text.slice(0, ABBREVIATED)}…`;
}

const HEADINGS: { readonly [C in Check]: string } = {
  knowsInterrupted: 'turn',
  reportsFiles: 'files',
  approvalIntact: 'approval',
  conflictIntact: 'conflict',
  gitStatusMatches: 'status',
  orphanFound: 'orphan',
  rolledBackExactly: 'back',
  rolledForwardExactly: 'forward',
};

export function tellSeries(output: Output, document: DrillDocument): void {
  const heading = ['seed', ...CHECKS.map((check) => HEADINGS[check]), 'killed after'];
  output.table([
    heading.map((text): Cell => ({ text, style: 'bold' })),
    ...document.rounds.map((round) => seriesRow(round)),
  ]);
  output.line();
  output.line(`file states seen: ${counted(document.seen, 'files')}`);
  output.line(`call states seen: ${counted(document.seen, 'invocations')}`);
  const total = document.passed + document.failed;
  const verdict = `${String(document.passed)} of ${String(total)} rounds passed`;
  output.line(output.paint(document.failed === 0 ? 'green' : 'red', verdict));
}

function seriesRow(round: RoundDocument): Cell[] {
  const marks = CHECKS.map((check): Cell =>
    round[check] ? { text: 'yes', style: 'green' } : { text: 'NO', style: 'red' },
  );
  const where = `${shortened(round.killedAfter)}${round.keeperKilled ? ' (keeper too)' : ''}`;
  return [{ text: String(round.seed) }, ...marks, { text: where }];
}

function counted(seen: Counts, what: keyof Counts): string {
  return Object.entries(seen[what])
    .map(([state, count]) => `${state} ${String(count)}`)
    .join(', ');
}

/** What is wrong with a round, on standard error, with the command that plays it again. */
export function tellFailure(output: Output, played: Played): void {
  const complaints = complaintsOf(played);
  if (complaints.length === 0) return;
  output.note(
    `round ${String(played.seed)} failed; to play it again: git-durable drill --rounds 1 --seed ${String(played.seed)}`,
  );
  for (const complaint of complaints) output.note(`  ${complaint}`);
}
