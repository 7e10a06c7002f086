/**
 * Who of this process and its command a terminal's signal reached.
 *
 * Both are in one process group, so Ctrl-C reaches both at once, while `kill -INT <pid>` reaches only the process it names.
 * A program that leaves at the second Ctrl-C must not get each of them twice, and the signal does not say where it came
 * from. So a **witness** stands in the group: a process that does nothing and has no handler. What the terminal
 * sends stops or ends the witness as well; what was sent to us alone does not. The kernel signals the members of a
 * group newest first (Linux), and the witness is newer than we are, so it was reached before us or not at all. Reached is not
 * yet acted on: a witness that was reached is awake until it stops or ends, one that was not sleeps on, and so its
 * state tells without a limit of time (on a busy machine it acted more than 100 ms later).
 *
 * No controlling terminal, or another group in its foreground: no signal of ours comes from a terminal, no witness is asked.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

/** Between two looks at a witness that is awake, and how many: longer than any machine leaves a process unscheduled. */
const WITNESS_MS = 5;
const WITNESS_LOOKS = 2000;

/** Asleep (S, or I in ps of macOS) or stopped; a dead one (Z) is settled only when its end is known here. */
const SETTLED = ['S', 'I', 'T'];

interface ProcessState {
  /** One letter as in proc(5): T is stopped. */
  readonly state: string;
  readonly group: number;
  /** The terminal's foreground process group, -1 without a terminal. */
  readonly foreground: number;
}

export class Terminal {
  readonly #pid: number;
  #witness: ChildProcess | null = null;
  #testimony: NodeJS.Signals | null = null;

  constructor(pid: number) {
    this.#pid = pid;
    if (this.hasTerminal()) this.#call();
  }

  hasTerminal(): boolean {
    return (processState(this.#pid)?.foreground ?? -1) > 0;
  }

  /** True while the terminal sends its signals to our group. */
  inForeground(): boolean {
    const own = processState(this.#pid);
    return own !== null && own.foreground > 0 && own.foreground === own.group;
  }

  /** True when the terminal sent this INT or QUIT to the whole group, the command included. */
  async reachedAll(signal: NodeJS.Signals): Promise<boolean> {
    if (this.#witness === null || !this.inForeground()) return false;
    await this.#settled();
    const reached = this.#testimony === signal;
    this.#testimony = null;
    return reached;
  }

  /** True when the terminal's Ctrl-Z stopped the whole group. */
  async stoppedAll(): Promise<boolean> {
    return (await this.#settled()) === 'T';
  }

  /** Dismisses the witness. */
  close(): void {
    this.#witness?.removeAllListeners('exit');
    this.#witness?.kill('SIGKILL');
    this.#witness = null;
  }

  #call(): void {
    const witness = spawn('/bin/sh', ['-c', 'read -r _'], { stdio: ['pipe', 'ignore', 'ignore'] });
    // Without a witness every signal is passed on, which is never less than the command should get.
    witness.on('error', () => {
      this.#witness = null;
    });
    witness.stdin.on('error', () => undefined);
    witness.on('exit', (_code, signal) => {
      if (signal === 'SIGINT' || signal === 'SIGQUIT') this.#testimony = signal;
      this.#call();
    });
    witness.unref();
    this.#witness = witness;
  }

  /** The witness's state once it has acted on what reached it, null when it has ended or there is none. */
  async #settled(): Promise<string | null> {
    for (let looks = WITNESS_LOOKS; looks > 0; looks -= 1) {
      if (this.#testimony !== null || this.#witness?.pid === undefined) return null;
      const state = processState(this.#witness.pid)?.state ?? 'Z';
      if (SETTLED.includes(state)) return state;
      await setTimeout(WITNESS_MS);
    }
    return null;
  }
}

export function isStopped(pid: number): boolean {
  return processState(pid)?.state === 'T';
}

/** Null when there is no such process. */
function processState(pid: number): ProcessState | null {
  return process.platform === 'linux' ? fromProc(pid) : fromPs(pid);
}

/** proc(5): pid (comm) state ppid pgrp session tty_nr tpgid …; the name in brackets may hold anything. */
function fromProc(pid: number): ProcessState | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${String(pid)}/stat`, 'latin1');
  } catch {
    return null;
  }
  const [state = '', , group = '', , , foreground = ''] = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state, group: Number(group), foreground: Number(foreground) };
}

function fromPs(pid: number): ProcessState | null {
  const { stdout } = spawnSync('ps', ['-o', 'state=,pgid=,tpgid=', '-p', String(pid)], { encoding: 'utf8' });
  const [state, group, foreground] = stdout.trim().split(/\s+/);
  if (state === undefined || group === undefined) return null;
  return { state: state.charAt(0), group: Number(group), foreground: Number(foreground ?? -1) };
}
