/**
 * The independent record: what the scripted agent did, in its own words, in a file outside repository and product.
 *
 * One JSON object a line, appended and flushed with fsync(2) before the agent goes on. Each act has a line before it
 * ('before': what it is about to ask the product for) and one after ('after': the product's receipt); a tool that the
 * product runs adds 'entered' when it is called, 'piece' for each small write, and 'wrote' when its work is done. So
 * at a kill the last line brackets the moment, and what the product must know follows:
 *
 * - no 'before': the product was never told, and must not report the act;
 * - 'before' only: the product may know, and must if any byte has changed;
 * - 'entered' or 'after': the product must know.
 *
 * A kill may tear the last line; the reader drops what has no newline.
 */
import { fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import * as v from 'valibot';

/** What an act is going to do to one path, hashed by the agent itself; null where no file is. */
const intention = v.strictObject({
  path: v.string(),
  /** SHA-256 of what is there. */
  before: v.nullable(v.string()),
  /** SHA-256 of what will be, 'unknown' for a shell call. */
  after: v.nullable(v.string()),
  /** Git's mode of what will be. */
  mode: v.picklist(['100644', '100755', '120000']),
  /** What will be, base64. */
  bytes: v.nullable(v.string()),
});

const line = v.strictObject({
  /** Position of the act in the script, from 0. */
  act: v.number(),
  kind: v.string(),
  phase: v.picklist(['before', 'entered', 'piece', 'wrote', 'after']),
  /** The call's summary: one line, unique in the turn. */
  detail: v.string(),
  paths: v.optional(v.array(intention)),
  /** What the product was asked, and what its receipt said. */
  facts: v.optional(
    v.strictObject({
      turn: v.optional(v.string()),
      task: v.optional(v.string()),
      approval: v.optional(v.string()),
      conflict: v.optional(v.string()),
      fingerprint: v.optional(v.string()),
      tool: v.optional(v.string()),
      /** Exact arguments as JSON text. */
      args: v.optional(v.string()),
      cwd: v.optional(v.string()),
      pid: v.optional(v.number()),
      start: v.optional(v.string()),
    }),
  ),
});

export type Intention = v.InferOutput<typeof intention>;
export type Line = v.InferOutput<typeof line>;
export type Phase = Line['phase'];

export class Recorder {
  readonly #fd: number;
  readonly #tell: () => void;

  /** `tell` is called after each flushed line. */
  constructor(path: string, tell: () => void) {
    this.#fd = openSync(path, 'a', 0o600);
    this.#tell = tell;
  }

  add(entry: Line): void {
    writeSync(this.#fd, `${JSON.stringify(entry)}\n`);
    fsyncSync(this.#fd);
    this.#tell();
  }
}

/** All complete lines, oldest first. */
export function readRecord(path: string): Line[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.slice(0, -1).map((text) => v.parse(line, JSON.parse(text)));
}
