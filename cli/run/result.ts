/**
 * `run --result FILE`: where the command leaves its final text, such as `codex exec -o FILE` or a script's own `> FILE`.
 *
 * Only a text of this very run counts: the file must be another than before the command began. What cannot be read is said and
 * changes no code, since the command has run.
 */
import { readFileSync, statSync } from 'node:fs';
import { messageOf } from '../../lib/errors.js';
import { callersFile } from '../paths.js';
import type { VerbContext } from '../verb.js';

export interface ResultFile {
  /** To be called when the command has ended; null when it left no text. */
  readonly read: () => string | null;
}

/** Looks at the file as it is before the command; null when none is asked for. */
export function resultFile(context: VerbContext): ResultFile | null {
  const name = context.arguments.text('result');
  if (name === null) return null;
  const file = callersFile(context, name);
  const before = stampOf(file);
  return {
    read: () => {
      try {
        if (stampOf(file) !== before) return readText(context, file, name);
        context.output.note(`the command left no final text in '${name}'; there is no claim to check`);
      } catch (error) {
        context.output.note(`the final text in '${name}' cannot be read: ${messageOf(error)}`);
      }
      return null;
    },
  };
}

/** A final text is words, not a log. */
const LARGEST = 4 * 1024 * 1024;

function readText(context: VerbContext, file: string, name: string): string | null {
  const { size } = statSync(file);
  if (size <= LARGEST) return readFileSync(file, 'utf8');
  context.output.note(`'${name}' has ${String(size)} bytes, too many for a final text; it is not recorded`);
  return null;
}

/** What tells one content from another without reading it; null where nothing is. */
function stampOf(file: string): string | null {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
  if (stat === undefined) return null;
  return [stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs].join(' ');
}
