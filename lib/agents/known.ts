/**
 * What an agent must know when it begins, in sentences for its model: interrupted work that came first, and decisions that wait
 * or were given meanwhile. Bounded, line by line and in all: a host cuts what is too long, or hides it in a file.
 */
import type { InterruptedTurn, RepairResult } from '../recovery/document.js';

export interface KnownApproval {
  readonly id: string;
  readonly state: string;
  /** Who answered. */
  readonly by: string | null;
  readonly tool: string;
  readonly args: string;
  readonly feedback: string | null;
}

const MOST = 40;
const LONGEST_LINE = 300;
const MOST_TEXT = 8000;

/**
 * `kept`: the repairs that recorded the verdicts; no byte was changed by them. `late`: files of the inbox whose turn is over.
 * Null when there is nothing to know.
 */
export function knownText(
  turns: readonly InterruptedTurn[],
  kept: readonly RepairResult[],
  { approvals, late }: { readonly approvals: readonly KnownApproval[]; readonly late: readonly string[] },
): string | null {
  const lines = [...interruptedLines(turns, kept), ...lateLines(late), ...approvalLines(approvals)];
  return lines.length === 0 ? null : bounded(lines);
}

function interruptedLines(turns: readonly InterruptedTurn[], kept: readonly RepairResult[]): string[] {
  if (turns.length === 0) return [];
  const undo = kept.map(({ checkpoint }) => checkpoint).find((checkpoint) => checkpoint !== null);
  return [
    'git-durable: earlier work in this repository was interrupted before it ended. No file was changed by recovery.',
    'Look at the files below before you go on, and do not repeat a call that is in doubt without checking whether it took effect.',
    ...(undo === undefined
      ? []
      : [`The work tree as it was found is checkpoint ${undo} (git durable restore ${undo.slice(0, 12)}).`]),
    ...turns.flatMap(turnLines),
  ];
}

function turnLines(turn: InterruptedTurn): string[] {
  const calls = turn.invocations.filter(({ state }) => state !== 'finished');
  return [
    `Interrupted turn ${turn.turn} of ${turn.agent}, begun ${turn.startedAt}: ${turn.objective}`,
    ...listed(turn.files, ({ path, state }) => `file ${path}: ${state}`),
    ...listed(calls, ({ tool, state, summary }) => `call ${tool} (${state}): ${summary}`),
    ...listed(turn.orphans, ({ pid, command }) => `process ${String(pid)} still runs: ${command}`),
    ...(turn.gitStatusMatches
      ? []
      : [`git status does not agree on: ${turn.drift.slice(0, MOST).join(', ')}`]),
  ];
}

function lateLines(late: readonly string[]): string[] {
  if (late.length === 0) return [];
  return [
    'git-durable: an agent told how a call or a turn ended, too late for its turn; its words are kept in the git dir:',
    ...listed(late, (name) => `durable/inbox/${name}`),
  ];
}

function approvalLines(approvals: readonly KnownApproval[]): string[] {
  const answered = approvals.filter(({ state }) => state !== 'pending');
  const pending = approvals.filter(({ state }) => state === 'pending');
  return [
    ...(answered.length === 0
      ? []
      : ['git-durable: answered meanwhile; the same call with exactly the same arguments goes by it, once:']),
    ...listed(answered, ({ id, state, by, tool, args, feedback }) => {
      const words = feedback === null || feedback === '' ? '' : `, saying: ${feedback}`;
      return `approval ${id} was ${state} by ${by ?? 'nobody'}${words}: ${tool} ${args}`;
    }),
    ...(pending.length === 0 ? [] : ['git-durable: not answered yet:']),
    ...listed(pending, ({ id, tool, args }) => `approval ${id} is pending: ${tool} ${args}`),
  ];
}

function listed<T>(all: readonly T[], line: (one: T) => string): string[] {
  const more = all.length - MOST;
  const lines = all.slice(0, MOST).map((one) => `- ${line(one)}`);
  return more > 0 ? [...lines, `- and ${String(more)} more`] : lines;
}

const REST = 'There is more: git durable recover --json, git durable approvals --json';

function bounded(lines: readonly string[]): string {
  let text = '';
  for (const whole of lines) {
    const line = whole.length > LONGEST_LINE ? `${whole.slice(0, LONGEST_LINE)}…` : whole;
    if (text.length + line.length > MOST_TEXT) return text + REST;
    text += `${line}\n`;
  }
  return text.slice(0, -1);
}
