/** `shell-init`: a shell function that says who holds the work tree when git was refused by the fence. */
import { readFileSync } from 'node:fs';
import { packageFile } from '../../lib/package.js';
import { EXIT } from '../exit.js';
import type { VerbContext } from '../verb.js';

export function run(context: VerbContext): Promise<number> {
  const script = readFileSync(packageFile('hooks/git/shell-init.sh'), 'utf8');
  context.output.result({ script }, () => {
    context.output.raw(script);
  });
  return Promise.resolve(EXIT.done);
}
