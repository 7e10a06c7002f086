/** What an agent must know when it begins after interrupted work, in sentences for its model. */
import type { InterruptedTurn, RepairResult } from '../recovery/document.js';

const MOST = 40;

/** `kept`: the repairs that recorded the verdicts; no byte was changed by them. */
export function interruptedText(turns: readonly InterruptedTurn[], kept: readonly RepairResult[]): string {
  const undo = kept.map(({ checkpoint }) => checkpoint).find((checkpoint) => checkpoint !== null);
  return [
    'git-durable: earlier work in this repository was interrupted before it ended. No file was changed by recovery.',
    ...turns.flatMap(turnLines),
    ...(undo === undefined
      ? []
      : [`The work tree as it was found is checkpoint ${undo} (git durable restore ${undo.slice(0, 12)}).`]),
    'Look at these files before you go on, and do not repeat a call that is in doubt without checking whether it took effect.',
  ].join('\n');
}

function turnLines(turn: InterruptedTurn): string[] {
  const calls = turn.invocations.filter(({ state }) => state !== 'finished');
  return [
    `Interrupted turn ${turn.turn} of ${turn.agent}, begun ${turn.startedAt}: ${turn.objective}`,
    ...listed(turn.files, ({ path, state }) => `file ${path}: ${state}`),
    ...listed(calls, ({ tool, state, summary }) => `call ${tool} (${state}): ${summary}`),
    ...listed(
      turn.approvals,
      ({ id, tool, args }) => `approval ${id} is pending: ${tool} ${JSON.stringify(args)}`,
    ),
    ...listed(turn.orphans, ({ pid, command }) => `process ${String(pid)} still runs: ${command}`),
    ...(turn.gitStatusMatches
      ? []
      : [`git status does not agree on: ${turn.drift.slice(0, MOST).join(', ')}`]),
  ];
}

function listed<T>(all: readonly T[], line: (one: T) => string): string[] {
  const more = all.length - MOST;
  const lines = all.slice(0, MOST).map((one) => `- ${line(one)}`);
  return more > 0 ? [...lines, `- and ${String(more)} more: git durable recover --json`] : lines;
}
