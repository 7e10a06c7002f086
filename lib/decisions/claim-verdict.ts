/**
 * A claim held against what is known of the turn: each file and command claimed, what became of it, and the findings that make
 * the claim false. Pure.
 *
 * A finding needs proof. A file that a text says was changed is found false only when both checkpoints of the turn hold all of
 * the tree that matters, and when no earlier turn of the task changed it either (final texts sum up a whole session). A command
 * that was never run is found only where the turn's own calls are on record (`run` records one call, the agent itself), and a text's
 * only when no call could have run it. A structured claim is held to the letter.
 */
import { covers } from './claim-paths.js';
import {
  holds,
  isOpaque,
  mayTest,
  outcomeOf,
  testOutcomeOf,
  type RecordedCommand,
} from './claim-commands.js';
import type { PathToken } from './claim-tokens.js';

/** What is to be judged, from a text or from a structured claim. */
export interface Claimed {
  readonly isStructured: boolean;
  readonly changed: readonly PathToken[];
  readonly unchanged: readonly PathToken[];
  /** `exit`: of a structured claim; undefined: any. */
  readonly commands: readonly {
    readonly command: string;
    readonly as: 'ran' | 'passed';
    readonly exit?: number;
  }[];
  readonly testsPass: boolean;
  /** `changed` is said to name every file. */
  readonly complete: boolean;
}

export interface TurnFacts {
  /** What differs between the turn's first and last checkpoint; where one is missing, what its calls say they changed. */
  readonly changed: ReadonlySet<string>;
  /** True when `changed` comes from two checkpoints. */
  readonly isWhole: boolean;
  /** Changed by earlier turns of the task and not by this one. */
  readonly earlier: ReadonlySet<string>;
  /** What a checkpoint leaves out: too large, nested, ignored. */
  readonly isLeftOut: (path: string) => boolean;
  /** Who changed a path is known only when every call says what it writes: then these are the ones. */
  readonly byCalls: ReadonlySet<string> | null;
  /** Of the turn, in the order of the calls. */
  readonly commands: readonly RecordedCommand[];
  /** False under `run`, where one call stands for all that the agent did. */
  readonly hasCalls: boolean;
}

export type FileResult = 'changed' | 'unchanged' | 'earlier' | 'not-judged';
export type CommandResult = 'passed' | 'failed' | 'ran' | 'never-run' | 'not-judged';

export interface FileEvidence {
  /** What the words meant; a folder ends in a slash. */
  readonly path: string;
  readonly said: string;
  readonly as: 'changed' | 'unchanged';
  readonly result: FileResult;
}

export interface CommandEvidence {
  readonly command: string;
  readonly as: 'ran' | 'passed';
  readonly result: CommandResult;
  /** Of the last time it ran; null where nobody knows. */
  readonly exit: number | null;
  readonly invocation: string | null;
}

export type FindingCode =
  | 'claimed-not-changed'
  | 'changed-though-denied'
  | 'changed-not-claimed'
  | 'command-failed'
  | 'command-exit'
  | 'command-never-run'
  | 'tests-failed'
  | 'tests-never-run';

export interface ClaimFinding {
  readonly code: FindingCode;
  /** The path or the command. */
  readonly subject: string;
}

export interface Judged {
  readonly files: readonly FileEvidence[];
  readonly commands: readonly CommandEvidence[];
  /** "All tests pass", where a text says so; else null. */
  readonly tests: CommandResult | null;
  /** Changed, and not among the files claimed or named. */
  readonly unclaimed: readonly string[];
  readonly findings: readonly ClaimFinding[];
}

export function judge(claimed: Claimed, facts: TurnFacts, named: readonly PathToken[] = []): Judged {
  const files = [
    ...claimed.changed.map((token) => changedFile(token, claimed, facts)),
    ...claimed.unchanged.map((token) => unchangedFile(token, facts)),
  ];
  const commands = claimed.commands.map((one) => commandEvidence(one, claimed, facts));
  const tests = claimed.testsPass ? testsResult(facts) : null;
  const spoken = [...claimed.changed, ...named].flatMap(({ paths }) => paths);
  const exact = new Set(spoken);
  const folders = spoken.filter((path) => path.endsWith('/'));
  const unclaimed = [...facts.changed].filter(
    (path) => !exact.has(path) && !folders.some((folder) => path.startsWith(folder)),
  );
  const findings = [
    ...files.flatMap(fileFinding),
    ...(claimed.complete && facts.isWhole
      ? unclaimed.map((subject) => finding('changed-not-claimed', subject))
      : []),
    ...commands.flatMap((one) => commandFinding(one)),
    ...testsFinding(tests),
  ];
  return { files, commands, tests, unclaimed: unclaimed.sort(), findings };
}

const finding = (code: FindingCode, subject: string): ClaimFinding => ({ code, subject });

function changedFile({ said, paths }: PathToken, { isStructured }: Claimed, facts: TurnFacts): FileEvidence {
  const changed = paths.find((path) => touches(facts.changed, path));
  const as = 'changed' as const;
  if (changed !== undefined) return { path: changed, said, as, result: 'changed' };
  const path = paths[0] ?? said;
  const isUnsure = !facts.isWhole || paths.length > 1 || paths.some((one) => facts.isLeftOut(one));
  if (isUnsure) return { path, said, as, result: 'not-judged' };
  const isEarlier = !isStructured && touches(facts.earlier, path);
  return { path, said, as, result: isEarlier ? 'earlier' : 'unchanged' };
}

function unchangedFile({ said, paths }: PathToken, facts: TurnFacts): FileEvidence {
  const path = paths[0] ?? said;
  const as = 'unchanged' as const;
  if (paths.length !== 1) return { path, said, as, result: 'not-judged' };
  if (!touches(facts.changed, path))
    return { path, said, as, result: facts.isWhole ? 'unchanged' : 'not-judged' };
  // Somebody else's change makes nobody's word false.
  const isOwn = facts.byCalls === null || touches(facts.byCalls, path);
  return { path, said, as, result: isOwn ? 'changed' : 'not-judged' };
}

function touches(changed: ReadonlySet<string>, path: string): boolean {
  if (!path.endsWith('/')) return changed.has(path);
  for (const one of changed) if (covers(path, one)) return true;
  return false;
}

function fileFinding({ path, as, result }: FileEvidence): ClaimFinding[] {
  if (as === 'changed' && result === 'unchanged') return [finding('claimed-not-changed', path)];
  return as === 'unchanged' && result === 'changed' ? [finding('changed-though-denied', path)] : [];
}

function commandEvidence(
  { command, as, exit }: Claimed['commands'][number],
  { isStructured }: Claimed,
  facts: TurnFacts,
): CommandEvidence {
  const runs = facts.commands.filter((one) => outcomeOf(one, command) !== null);
  const last = runs.at(-1);
  if (last === undefined) {
    const isProven = isStructured || isNeverRun(command, facts);
    return { command, as, result: isProven ? 'never-run' : 'not-judged', exit: null, invocation: null };
  }
  const outcome = outcomeOf(last, command) ?? 'unclear';
  const found = { command, as, exit: last.exit, invocation: last.invocation };
  if (exit !== undefined && exit !== 0 && outcome !== 'unclear')
    return { ...found, result: last.exit === exit ? 'ran' : 'failed' };
  if (exit !== undefined && last.exit === null && outcome === 'passed')
    return { ...found, result: 'not-judged' };
  if (as === 'ran') return { ...found, result: 'ran' };
  return { ...found, result: outcome === 'unclear' ? 'not-judged' : outcome };
}

/** No call ran it, and none could have under another name. */
function isNeverRun(command: string, { hasCalls, commands }: TurnFacts): boolean {
  if (!hasCalls) return false;
  const lines = commands.flatMap(({ line, state }) => (line === null || state === 'denied' ? [] : [line]));
  if (lines.some((line) => holds(line, command) || isOpaque(line))) return false;
  return !mayTest(command) || !lines.some((line) => mayTest(line));
}

function commandFinding({ command, as, result }: CommandEvidence): ClaimFinding[] {
  if (result === 'never-run') return [finding('command-never-run', command)];
  return result === 'failed' ? [finding(as === 'passed' ? 'command-failed' : 'command-exit', command)] : [];
}

/** Of the runs of test runners the last one decides, when it says anything. */
function testsResult({ hasCalls, commands }: TurnFacts): CommandResult {
  const last = commands.map((one) => testOutcomeOf(one)).findLast((outcome) => outcome !== null);
  if (last !== undefined) return last === 'unclear' ? 'not-judged' : last;
  const lines = commands.flatMap(({ line, state }) => (line === null || state === 'denied' ? [] : [line]));
  return hasCalls && !lines.some((line) => mayTest(line) || isOpaque(line)) ? 'never-run' : 'not-judged';
}

function testsFinding(tests: CommandResult | null): ClaimFinding[] {
  if (tests === 'failed') return [finding('tests-failed', 'the tests')];
  return tests === 'never-run' ? [finding('tests-never-run', 'the tests')] : [];
}
