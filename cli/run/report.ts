/** `--report FILE`: what a script must know that the exit code alone does not tell. */
import { writeFileSync } from 'node:fs';
import { callersFile } from '../paths.js';
import type { VerbContext } from '../verb.js';

/** The field names are a contract. */
export interface Report {
  turn: string | null;
  /** False when the command never ran: the code is then ours. */
  started: boolean;
  /** What `run` ends with. */
  exit: number;
  signal: string | null;
}

export const emptyReport = (): Report => ({ turn: null, started: false, exit: 0, signal: null });

/** A report that cannot be written is said and changes no code: the command has run. */
export function writeReport(context: VerbContext, report: Report): void {
  const file = context.arguments.text('report');
  if (file === null) return;
  try {
    writeFileSync(callersFile(context, file), `${JSON.stringify(report)}\n`);
  } catch (error) {
    context.output.note(
      `the report '${file}' cannot be written: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}
