/**
 * What a verb says: results on standard output, messages on standard error.
 *
 * With `--json` standard output carries one JSON document (or one a line) and nothing else. Colours only where a
 * terminal reads and NO_COLOR is empty. A reader that has gone away (`durable log | head`) is no failure: `closed`
 * turns true, later output goes nowhere, and the verb may stop early. Any other trouble with the output, a full disk
 * for one, is kept in `failure` and makes the program fail.
 *
 * Text that comes from a ledger or a file name passes `clean` before a terminal sees it: an objective may hold
 * escape sequences that would move the cursor or retitle the window.
 */
import type { Writable } from 'node:stream';
import { ExactJson } from '../lib/exact-json.js';
import { displayPath } from '../lib/git/path.js';
import { width } from './width.js';

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

export interface Terminal {
  readonly isTTY?: boolean;
}

export interface OutputOptions {
  readonly json: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A table cell: text that is cleaned, measured and then perhaps coloured. */
export interface Cell {
  readonly text: string;
  readonly style?: Style;
}

const SGR: Readonly<Record<Style, string>> = {
  bold: '1',
  dim: '2',
  red: '31',
  green: '32',
  yellow: '33',
  cyan: '36',
};

const PROGRESS_AFTER_MS = 1000;

export class Output {
  readonly json: boolean;
  readonly #stdout: Writable & Terminal;
  readonly #stderr: Writable & Terminal;
  readonly #colour: boolean;
  #closed = false;
  #failure: Error | null = null;
  #noted = '';

  constructor(stdout: Writable & Terminal, stderr: Writable & Terminal, options: OutputOptions) {
    this.json = options.json;
    this.#stdout = stdout;
    this.#stderr = stderr;
    const refused = (options.env['NO_COLOR'] ?? '') !== '' || options.env['TERM'] === 'dumb';
    this.#colour = stdout.isTTY === true && !refused && !options.json;
    stdout.on('error', (error: Error) => {
      this.#broken(error);
    });
    // Nobody can be told that standard error is gone.
    stderr.on('error', () => undefined);
  }

  /** True once nobody reads standard output any more. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Why output was lost, null while none was. */
  get failure(): Error | null {
    return this.#failure;
  }

  /** The verb's result: the document for programs, or what `human` prints. */
  result(document: unknown, human: () => void): void {
    if (this.json) this.document(document);
    else human();
  }

  document(value: unknown): void {
    this.raw(`${documentText(value)}\n`);
  }

  line(text = ''): void {
    this.raw(`${text}\n`);
  }

  /** Bytes as they are, for contents and for text that must come out verbatim. */
  raw(bytes: string | Uint8Array): void {
    if (!this.#closed) this.#stdout.write(bytes);
  }

  /**
   * One message on standard error, whatever the mode: one line, whatever is in it. What has just been said is not said again:
   * damage that a verb names first may be what ends it.
   */
  note(text: string): void {
    if (text === this.#noted) return;
    this.#noted = text;
    this.#stderr.write(`git-durable: ${clean(text)}\n`);
  }

  paint(style: Style, text: string): string {
    return this.#colour ? `\u001b[${SGR[style]}m${text}\u001b[0m` : text;
  }

  /** Rows with their columns aligned; the last column is not padded. */
  table(rows: readonly (readonly (Cell | string)[])[], indent = ''): void {
    const cells = rows.map((row) => row.map((cell) => (typeof cell === 'string' ? { text: cell } : cell)));
    const cleaned = cells.map((row) => row.map((cell) => ({ ...cell, text: clean(cell.text) })));
    const widths: number[] = [];
    for (const row of cleaned) {
      row.forEach((cell, column) => {
        widths[column] = Math.max(widths[column] ?? 0, width(cell.text));
      });
    }
    for (const row of cleaned) this.line(`${indent}${this.#aligned(row, widths)}`);
  }

  /** Shows on a terminal's standard error what takes longer than a second, and clears it at the end. */
  async progress<T>(what: string, work: () => Promise<T>): Promise<T> {
    if (this.#stderr.isTTY !== true) return work();
    const started = performance.now();
    const tick = (): void => {
      const seconds = Math.round((performance.now() - started) / 1000);
      if (seconds >= 1) this.#stderr.write(`\rgit-durable: ${what}, ${String(seconds)} s `);
    };
    const timer = setInterval(tick, PROGRESS_AFTER_MS);
    try {
      return await work();
    } finally {
      clearInterval(timer);
      if (performance.now() - started >= PROGRESS_AFTER_MS) this.#stderr.write('\r\u001b[K');
    }
  }

  #aligned(row: readonly Cell[], widths: readonly number[]): string {
    return row
      .map((cell, column) => {
        const gap = column === row.length - 1 ? 0 : (widths[column] ?? 0) - width(cell.text);
        const text = cell.style === undefined ? cell.text : this.paint(cell.style, cell.text);
        return `${text}${' '.repeat(gap)}`;
      })
      .join('  ')
      .trimEnd();
  }

  #broken(error: Error): void {
    this.#closed = true;
    if (!('code' in error && error.code === 'EPIPE')) this.#failure ??= error;
  }
}

/** Text without control characters: each becomes a visible escape. */
export function clean(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, (character) => {
    if (character === '\n') return '\\n';
    if (character === '\t') return '\\t';
    return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`;
  });
}

/**
 * A document as one line. Exact JSON stands in it as its recorded text, which JSON.stringify alone cannot do. A path that is
 * not valid UTF-8 stands as git quotes it, so a lone surrogate is free to mark the places that the texts go to.
 */
function documentText(value: unknown): string {
  const exact: string[] = [];
  const text = JSON.stringify(
    value,
    function (this: Readonly<Record<string, unknown>>, key, member: unknown) {
      const held = this[key];
      if (held instanceof ExactJson) return `\ud800${String(exact.push(held.line) - 1)}`;
      return typeof member === 'string' && !member.isWellFormed() ? displayPath(member) : member;
    },
  );
  return text.replace(/"\\ud800(\d+)"/gu, (_mark, at: string) => exact[Number(at)] ?? 'null');
}

/** Exact arguments for people, as they were recorded; `null` when their bytes were purged. */
export function argumentsText(args: ExactJson | string | null): string {
  return args instanceof ExactJson ? args.text : JSON.stringify(args);
}
