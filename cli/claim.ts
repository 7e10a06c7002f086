/** A checked claim for people: the verdict, what makes it false, and the evidence, each list cut at 20. */
import type { Check } from '../lib/decisions/check.js';
import type { ClaimVerdict } from '../lib/decisions/claim.js';
import type { ClaimFinding, CommandEvidence, FileEvidence } from '../lib/decisions/claim-verdict.js';
import { displayPath } from '../lib/git/path.js';
import type { Cell, Output, Style } from './output.js';
import { quantity } from '../lib/quantity.js';

const VERDICTS: Readonly<Record<ClaimVerdict, { readonly text: string; readonly style: Style }>> = {
  holds: { text: 'holds', style: 'green' },
  'does-not-hold': { text: 'does not hold', style: 'red' },
  'nothing-claimed': { text: 'nothing that can be checked', style: 'yellow' },
  'not-judged': { text: 'cannot be told from the record', style: 'yellow' },
};

const FINDINGS: Readonly<Record<ClaimFinding['code'], string>> = {
  'claimed-not-changed': 'claimed as changed, and the same as at the start of the turn',
  'changed-though-denied': 'claimed as untouched, and changed by the turn',
  'changed-not-claimed': 'changed, and not in the list that claims to have every file',
  'command-failed': 'claimed to pass, and failed the last time it ran',
  'command-exit': 'ended with another code than is claimed',
  'command-never-run': 'claimed to have been run, and no call of the turn ran it',
  'tests-failed': 'claimed to pass, and the last test run failed',
  'tests-never-run': 'claimed to pass, and no call of the turn ran any',
};

const RESULTS: Readonly<Record<FileEvidence['result'] | CommandEvidence['result'], string>> = {
  changed: 'changed',
  unchanged: 'not changed',
  earlier: 'by an earlier turn',
  'not-judged': 'not known',
  passed: 'passed',
  failed: 'failed',
  ran: 'ran',
  'never-run': 'never run',
};

const MOST = 20;

export function describeCheck(output: Output, check: Check): void {
  head(output, check);
  list(
    output,
    'does not hold',
    check.findings.map(({ code, subject }) => [shown(code, subject), FINDINGS[code]]),
  );
  const files = check.files.map(({ path, as, result }) => [
    RESULTS[result],
    displayPath(path),
    `claimed as ${as}`,
  ]);
  list(output, 'files', files);
  list(
    output,
    'commands',
    check.commands.map((one) => [RESULTS[one.result], one.command, codeOf(one)]),
  );
  if (check.tests !== null) list(output, 'tests', [[RESULTS[check.tests], 'claimed to pass']]);
  list(
    output,
    'claimed, and in no tree of this turn: not checked',
    check.missing.map((said) => [displayPath(said)]),
  );
  const unclaimed = check.unclaimed.map((path) => [displayPath(path)]);
  list(output, 'changed and not claimed', unclaimed, check.unclaimedCount);
  next(output, check);
}

function head(output: Output, check: Check): void {
  const { text, style } = VERDICTS[check.verdict];
  const source =
    check.source === null ? '' : ` (${check.source === 'text' ? 'final text' : 'structured claim'})`;
  const rows: [string, Cell | string][] = [
    ['claim', { text: `${text}${source}`, style }],
    ['turn', `${check.turn}  ${check.state}${check.outcome === null ? '' : `, ${check.outcome}`}`],
    ['agent', check.agent],
    ['objective', check.objective],
    ['tree', treeText(check)],
  ];
  if (check.note.commit !== null)
    rows.push([
      'commit',
      `${check.note.commit}  ${check.note.written ? 'with its note' : 'without its note'}`,
    ]);
  if (check.ranCount > 0) rows.push(['calls', `${String(check.ranCount)} ran a command`]);
  output.table(rows.map(([name, cell]) => [{ text: name, style: 'dim' }, cell]));
}

function treeText({ tree: { changed }, changedSince: since }: Check): string {
  const own =
    changed === null
      ? 'a checkpoint of the turn is not there'
      : `${quantity(changed, 'file')} changed by its end`;
  if (since === null) return own;
  return `${own}, ${since === 0 ? 'the same since' : `${quantity(since, 'file')} changed since`}`;
}

function list(
  output: Output,
  title: string,
  rows: readonly (readonly string[])[],
  count = rows.length,
): void {
  if (rows.length === 0) return;
  output.line();
  output.line(output.paint('bold', title));
  output.table(rows.slice(0, MOST), '  ');
  if (count > MOST)
    output.line(`  and ${String(count - MOST)} more; --json has ${count > 1000 ? '1,000 of them' : 'all'}`);
}

const shown = (code: ClaimFinding['code'], subject: string): string =>
  code.startsWith('command') || code.startsWith('tests') ? subject : displayPath(subject);

const codeOf = ({ exit, as }: CommandEvidence): string =>
  `claimed to ${as === 'ran' ? 'have been run' : 'pass'}${exit === null ? '' : `, exit ${String(exit)}`}`;

function next(output: Output, { tree, verdict, turn, note }: Check): void {
  output.line();
  if (verdict === 'does-not-hold' && tree.baseline !== null && tree.after !== null)
    output.line(`next: git durable diff ${tree.baseline.slice(0, 12)} ${tree.after.slice(0, 12)}`);
  else if (note.commit !== null && !note.written)
    output.line(`next: git durable check ${turn.slice(0, 12)} --note`);
  else if (note.commit !== null) output.line(`next: git log -1 --notes=durable ${note.commit.slice(0, 12)}`);
  else output.line(`next: git durable show ${turn.slice(0, 12)}`);
}
