/**
 * Signals that reach this process while its command runs: passed on at once, never acted on. The command decides; its
 * answer is ours.
 *
 * INT and QUIT from the terminal have reached the command already and are not doubled (terminal.ts). Stopping: once the
 * command has stopped, by Ctrl-Z or by itself, we stop as well, so that the shell above gets its terminal back; SIGCONT
 * to us is passed on. Never before the command: it would still be reading when the shell is, and took the first letter
 * typed there (seen under load: a reader that is woken by the signal takes what has come before it stops).
 * A signal that comes before the command has begun is kept: the command then never begins.
 */
import { isStopped, Terminal } from './terminal.js';

const PASSED = ['SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH', 'SIGCONT'] as const;
const FROM_TERMINAL = ['SIGINT', 'SIGQUIT'] as const;
/** What ends a program that has no handler, so a command that has not begun. */
const ENDING: readonly string[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];

/** Between two looks at a command that may have stopped itself. */
const LOOK_MS = 250;
/** Between two looks at a command that was told to stop, and how many: one that goes on is left to the looks above. */
const STOPPING_MS = 5;
const STOPPING_LOOKS = 200;

export interface Target {
  readonly pid: number;
  readonly kill: (signal: NodeJS.Signals) => void;
}

export class Signals {
  readonly #pid: number;
  readonly #listeners = new Map<NodeJS.Signals, () => void>();
  #target: Target | null = null;
  #terminal: Terminal | null = null;
  #look: NodeJS.Timeout | null = null;
  #early: NodeJS.Signals | null = null;
  #warn: (() => void) | null = null;

  /** Listens from here on; `pid` is this process. */
  constructor(pid: number) {
    this.#pid = pid;
    for (const signal of PASSED) {
      this.#listen(signal, () => {
        this.#pass(signal);
      });
    }
    for (const signal of FROM_TERMINAL) this.#listen(signal, () => void this.#passOnce(signal));
  }

  /** An ending signal that came before there was a command, null if none came. */
  get early(): NodeJS.Signals | null {
    return this.#early;
  }

  /** The command that gets them from now on. */
  passTo(target: Target): void {
    this.#terminal = new Terminal(this.#pid);
    this.#target = target;
    this.#listen('SIGTSTP', () => {
      void this.#stopWith(target);
    });
    if (!this.#terminal.hasTerminal()) return;
    this.#look = setInterval(() => {
      if (this.#terminal?.inForeground() === true && isStopped(target.pid)) this.#stop();
    }, LOOK_MS);
  }

  /** The command has ended and its end is being recorded: the first ending signal warns, the second one ends this process. */
  settle(warn: () => void): void {
    this.#leave();
    this.#warn = warn;
  }

  /** Signals act on this process again, as on any other. */
  close(): void {
    this.#leave();
    for (const [signal, listener] of this.#listeners) process.off(signal, listener);
    this.#listeners.clear();
  }

  #leave(): void {
    if (this.#look !== null) clearInterval(this.#look);
    this.#terminal?.close();
    this.#terminal = null;
    this.#target = null;
  }

  #listen(signal: NodeJS.Signals, listener: () => void): void {
    this.#listeners.set(signal, listener);
    process.on(signal, listener);
  }

  #pass(signal: NodeJS.Signals): void {
    if (this.#target !== null) {
      this.#target.kill(signal);
      return;
    }
    if (!ENDING.includes(signal)) return;
    const warned = this.#warn !== null && this.#early !== null;
    this.#early ??= signal;
    this.#warn?.();
    if (!warned) return;
    this.close();
    process.kill(this.#pid, signal);
  }

  async #passOnce(signal: NodeJS.Signals): Promise<void> {
    if ((await this.#terminal?.reachedAll(signal)) !== true) this.#pass(signal);
  }

  async #stopWith(target: Target): Promise<void> {
    if ((await this.#terminal?.stoppedAll()) !== true && this.#target === target) target.kill('SIGTSTP');
    this.#stopAfter(target, STOPPING_LOOKS);
  }

  #stopAfter(target: Target, looks: number): void {
    if (this.#target !== target || looks === 0) return;
    if (isStopped(target.pid)) this.#stop();
    else
      setTimeout(() => {
        this.#stopAfter(target, looks - 1);
      }, STOPPING_MS);
  }

  /**
   * Stops this process the way a terminal does, by the default action of SIGTSTP: with no shell above that could continue
   * it (an orphaned process group) the kernel ignores that, and so nobody hangs.
   */
  #stop(): void {
    const listener = this.#listeners.get('SIGTSTP');
    if (listener === undefined) return;
    process.off('SIGTSTP', listener);
    process.kill(this.#pid, 'SIGTSTP');
    setTimeout(() => {
      if (this.#listeners.get('SIGTSTP') === listener) process.on('SIGTSTP', listener);
    }, LOOK_MS / 2);
  }
}
