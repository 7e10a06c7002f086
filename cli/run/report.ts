/** `--report FILE`: what a script must know that the exit code alone does not tell. */
import { messageOf } from '../../lib/errors.js';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { usage } from '../arguments.js';
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

/** Asked before the command runs: a caller that cannot be told afterwards is told now. Errors: 'usage'. */
export function checkReport(context: VerbContext): void {
  const file = context.arguments.text('report');
  if (file === null) return;
  try {
    closeSync(openSync(callersFile(context, file), 'a'));
  } catch (error) {
    throw usage(
      `the report '${file}' cannot be written (${messageOf(error)}); nothing was run: name another file`,
    );
  }
}

/** A report that cannot be written is said and changes no code: the command has run. */
export function writeReport(context: VerbContext, report: Report): void {
  const file = context.arguments.text('report');
  if (file === null) return;
  try {
    writeFileSync(callersFile(context, file), `${JSON.stringify(report)}\n`);
  } catch (error) {
    context.output.note(`the report '${file}' cannot be written: ${messageOf(error)}`);
  }
}
