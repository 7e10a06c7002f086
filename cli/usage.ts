/** `log --usage`: what was used, a row for each day, task and agent, for each turn, or for each call. */
import type { CallUsage, TurnUsage } from '../lib/ledger/usage-detail.js';
import type { Used } from '../lib/ledger/usage-sums.js';
import type { UsageRow } from '../lib/ledger/usage.js';
import type { Output } from './output.js';

const TASK_CHARACTERS = 6;
const ID_CHARACTERS = 10;

/** The field names, here and below, are a contract. */
export function printUsage(output: Output, rows: readonly UsageRow[]): void {
  print(output, rows, {
    document: ({ day, task, agent, turns, turnMs, ...used }) => ({
      day,
      task,
      agent,
      turns,
      turnMs,
      ...sums(used),
    }),
    heading: ['day', 'task', 'agent', 'turns', 'time'],
    cells: (row) => [row.day, short(row.task), row.agent, String(row.turns), duration(row.turnMs)],
  });
}

export function printTurns(output: Output, rows: readonly TurnUsage[]): void {
  print(output, rows, {
    document: ({ task, turn, agent, startedAt, turnMs, calls, ...used }) => {
      return { task, turn, agent, startedAt, turnMs, calls, ...sums(used) };
    },
    heading: ['started', 'task', 'turn', 'agent', 'calls', 'time'],
    cells: ({ task, turn, agent, startedAt, turnMs, calls }) => {
      const at = startedAt.replace(/\.\d+Z$/, 'Z');
      return [at, short(task), turn.slice(0, ID_CHARACTERS), agent, String(calls), duration(turnMs)];
    },
  });
}

export function printCalls(output: Output, rows: readonly CallUsage[]): void {
  print(output, rows, {
    document: ({ task, turn, invocation, tool, agent, durationMs, ...used }) => {
      return { task, turn, invocation, tool, agent, durationMs, ...sums(used) };
    },
    heading: ['task', 'turn', 'call', 'agent', 'tool', 'time'],
    cells: ({ task, turn, invocation, tool, agent, durationMs }) => {
      const ids = [short(task), turn.slice(0, ID_CHARACTERS), invocation.slice(0, ID_CHARACTERS)];
      return [...ids, agent, tool, durationMs === null ? '-' : duration(durationMs)];
    },
  });
}

interface Form<Row> {
  readonly document: (row: Row) => unknown;
  readonly heading: readonly string[];
  readonly cells: (row: Row) => readonly string[];
}

/** One JSON line a row, as `log` prints one an event; a table for people. */
function print<Row extends Used>(output: Output, rows: readonly Row[], form: Form<Row>): void {
  if (output.json) {
    for (const row of rows) output.document(form.document(row));
    return;
  }
  if (rows.length === 0) {
    output.line('no turn and no usage is recorded');
    return;
  }
  const heading = [...form.heading, 'in', 'out', 'cache', 'cost', 'models'];
  output.table([
    heading.map((text) => ({ text, style: 'bold' as const })),
    ...rows.map((row) => [...form.cells(row), ...usedCells(row)]),
  ]);
}

function sums({ models, inputTokens, outputTokens, cacheTokens, costUsd, wallMs }: Used): Used {
  return { models, inputTokens, outputTokens, cacheTokens, costUsd, wallMs };
}

function usedCells({ inputTokens, outputTokens, cacheTokens, costUsd, models }: Used): string[] {
  const cost = costUsd === null ? '-' : `$${costUsd.toFixed(costUsd < 1 ? 4 : 2)}`;
  return [counted(inputTokens), counted(outputTokens), counted(cacheTokens), cost, models.join(', ')];
}

const short = (task: string): string => task.slice(0, TASK_CHARACTERS);

const counted = (count: number | null): string => (count === null ? '-' : String(count));

function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${String(seconds)}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${String(minutes)}m${String(seconds % 60).padStart(2, '0')}s`;
  return `${String(Math.floor(minutes / 60))}h${String(minutes % 60).padStart(2, '0')}m`;
}
