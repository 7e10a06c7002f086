/** `log --usage`: what turns have used, a row for each day, task and agent. */
import type { UsageRow } from '../lib/ledger/usage.js';
import type { Output } from './output.js';

const TASK_CHARACTERS = 6;

/** One JSON line a row, as `log` prints one an event; a table for people. */
export function printUsage(output: Output, rows: readonly UsageRow[]): void {
  if (output.json) {
    for (const row of rows) output.document(documentOf(row));
    return;
  }
  if (rows.length === 0) {
    output.line('no turn and no usage is recorded');
    return;
  }
  const heading = ['day', 'task', 'agent', 'turns', 'time', 'in', 'out', 'cache', 'cost', 'models'];
  output.table([heading.map((text) => ({ text, style: 'bold' as const })), ...rows.map(cellsOf)]);
}

/** The field names are a contract. */
function documentOf(row: UsageRow): unknown {
  const { day, task, agent, turns, turnMs, models } = row;
  const { inputTokens, outputTokens, cacheTokens, costUsd, wallMs } = row;
  return { day, task, agent, turns, turnMs, models, inputTokens, outputTokens, cacheTokens, costUsd, wallMs };
}

function cellsOf(row: UsageRow): string[] {
  const { costUsd } = row;
  return [
    row.day,
    row.task.slice(0, TASK_CHARACTERS),
    row.agent,
    String(row.turns),
    duration(row.turnMs),
    counted(row.inputTokens),
    counted(row.outputTokens),
    counted(row.cacheTokens),
    costUsd === null ? '-' : `$${costUsd.toFixed(costUsd < 1 ? 4 : 2)}`,
    row.models.join(', '),
  ];
}

const counted = (count: number | null): string => (count === null ? '-' : String(count));

function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${String(seconds)}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${String(minutes)}m${String(seconds % 60).padStart(2, '0')}s`;
  return `${String(Math.floor(minutes / 60))}h${String(minutes % 60).padStart(2, '0')}m`;
}
