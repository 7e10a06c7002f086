/** The folder that the caller stands in, after `-C`. */
import { realpathSync, statSync } from 'node:fs';
import { DurableError } from '../lib/errors.js';

/** Absolute, links resolved. Errors: 'usage' for what is no folder, or has a name that is not UTF-8. */
export function callersFolder(given: string | null): string {
  const name = given ?? '.';
  const found = realFolder(name);
  // A link may lead to a name that could not be written here; git's answers about such a folder could not be read either.
  const text = found.toString('utf8');
  if (!Buffer.from(text).equals(found) || !name.isWellFormed()) throw notText(name);
  if (!statSync(text).isDirectory())
    throw new DurableError('usage', { detail: `'${name}' is no folder; give one with -C DIR` });
  return text;
}

/** By its bytes. What is relative is resolved by the system: Node gives the name of the current folder as UTF-8 only. */
function realFolder(name: string): Buffer {
  try {
    return realpathSync.native(name === '' ? '.' : name, { encoding: 'buffer' });
  } catch (error) {
    if (!name.isWellFormed()) throw notText(name);
    throw new DurableError(
      'usage',
      { detail: `cannot change to '${name}'; give a folder that is there, with -C DIR` },
      error,
    );
  }
}

function notText(name: string): DurableError {
  const which = name === '.' ? 'the current folder' : `'${name}'`;
  return new DurableError('usage', {
    detail: `${which} lies at a path that is not valid UTF-8, where no turn can be recorded; rename it, or give another folder with -C DIR`,
  });
}
