/** One command as one recorded call of a turn: at its gate, running, ended. */
import { constants } from 'node:os';
import type { Repository } from '../../lib/repository.js';
import type { CallEnd, Call } from '../../lib/turn/call.js';
import type { OpenCall } from '../../lib/turn/open-call.js';
import type { Turn } from '../../lib/turn/turn.js';
import { shellWord } from '../shell-word.js';
import type { VerbContext } from '../verb.js';
import { startAtGate, type Ending, type Gated } from './gate.js';
import { findProgram } from './program.js';
import type { Signals } from './signals.js';

export interface CommandRun {
  readonly context: VerbContext;
  readonly repository: Repository;
  readonly turn: Turn;
  readonly call: Call;
  readonly command: readonly string[];
  readonly signals: Signals;
}

export interface Ended {
  /** False when it never began. */
  readonly started: boolean;
  /** As a shell gives it: 127 not found, 126 cannot be run, 128+n death by signal n. */
  readonly code: number;
  readonly signal: NodeJS.Signals | null;
  readonly summary: string;
  /** Records the end of the call; to be called once. */
  readonly record: () => Promise<void>;
}

/** The command's words as a person would type them. */
export function commandLine(command: readonly string[]): string {
  return command.map(shellWord).join(' ');
}

/**
 * Runs it as a new call of the turn. Errors: 'lease-lost', 'io-failed' when no process can be started, the disk's: the
 * command has not begun then.
 */
export async function runCommand(run: CommandRun): Promise<Ended> {
  const { context, turn, call } = run;
  const missing = missingProgram(run);
  if (missing === null) return atGate(run, await turn.begin(call));
  context.output.note(missing.summary);
  return { ...missing, record: () => turn.deny(call, missing.summary) };
}

/** Runs it as a call that is open already. Errors as `runCommand`. */
export async function runOpen(run: CommandRun, open: OpenCall): Promise<Ended> {
  const missing = missingProgram(run);
  if (missing === null) return atGate(run, open);
  run.context.output.note(missing.summary);
  return {
    ...missing,
    record: () => open.end({ state: 'failed', summary: missing.summary, exit: missing.code }),
  };
}

type Unstarted = Omit<Ended, 'record'>;

function missingProgram({ context, command }: CommandRun): Unstarted | null {
  const program = findProgram(command[0] ?? '', context.dir, context.host.env['PATH']);
  return program.found ? null : { started: false, code: program.exit, signal: null, summary: program.why };
}

async function atGate(run: CommandRun, open: OpenCall): Promise<Ended> {
  const { context, turn, command, signals } = run;
  const env = { ...context.host.env, ...turn.environment() };
  const gated = await startAtGate(command, { cwd: context.dir, env });
  try {
    await recordProcess(run, open, gated);
  } catch (error) {
    gated.dismiss();
    throw error;
  }
  if (signals.early !== null) return dismissed(open, gated, signals.early);
  signals.passTo(gated);
  gated.open();
  return endedWith(open, await gated.ended);
}

/** A process is findable before it may write (PROTOCOL.md 13). */
async function recordProcess(run: CommandRun, open: OpenCall, gated: Gated): Promise<void> {
  const start = run.repository.storage.identity.startOf(gated.pid) ?? '';
  const process = { pid: gated.pid, start, command: commandLine(run.command) };
  await run.turn.spawned(process, { invocation: open.invocation });
}

async function dismissed(open: OpenCall, gated: Gated, signal: NodeJS.Signals): Promise<Ended> {
  gated.dismiss();
  await gated.ended;
  const summary = `${signal} came before the command began`;
  const record = (): Promise<void> => open.end({ state: 'denied', summary });
  return { started: false, code: signalCode(signal), signal, summary, record };
}

function endedWith(open: OpenCall, { code, signal }: Ending): Ended {
  const exit = signal === null ? (code ?? 1) : signalCode(signal);
  const summary = signal === null ? `exit ${String(exit)}` : `ended by ${signal}`;
  const end: CallEnd = {
    state: exit === 0 ? 'finished' : 'failed',
    summary: signal === null ? '' : summary,
    exit,
  };
  return { started: true, code: exit, signal, summary, record: () => open.end(end) };
}

/** As a shell gives death by a signal. */
export const signalCode = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];
