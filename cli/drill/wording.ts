/** What the scripted agent says and asks: known to the agent and to the judge, and to nothing of the product. */
import { Chance } from './chance.js';
import { OLD_SYMBOL } from './scratch.js';
import type { Act } from './script.js';

export const OBJECTIVE = `Rename ${OLD_SYMBOL} everywhere, then ask before pushing`;

/** A longer name, a shorter one, and one of the same length: a rewriting in place must grow, shrink or keep the file. */
export function newSymbol(seed: string): string {
  return new Chance(seed).split('symbol').pick(['readSettings', 'settings', 'loadOptions']);
}

/** Arguments with everything that a careless copy changes: Unicode, controls, line ends, numbers, nesting, order. */
export const APPROVAL = {
  tool: 'shell',
  args: {
    command: 'git push origin \'HEAD:refs/heads/überprüfung\' # \u{1F680} "now"\n\tand then\r\n',
    zeta: [1e21, -1.5, 0.1, 9007199254740991, true, null, '', ' '],
    alpha: {
      '': 'empty name',
      'e\u0301': 'decomposed',
      '\u00e9': 'composed',
      '\u2028': '\u2029',
      nul: '\u0000\u0007\u007f',
    },
    long: 'Zeile \\ "quoted" $HOME `id` %s\n'.repeat(200),
  },
} as const;

/** What a person says who refuses it: comes back to the agent byte for byte. */
export const REFUSAL = ' not today:\n\tfirst \u201ctest\u201d it \u{1f9ea}\r\n';

/** Written by who comes after the kill, and by nobody before. */
export const FREE_PATH = 'notes/of the successor.txt';

/** A server that outlives its agent: it ends by itself within the hour, and its number tells it from any other. */
export function background(seed: string): { readonly program: string; readonly args: readonly string[] } {
  return {
    program: 'sleep',
    args: [(600 + new Chance(seed).split('background').below(3_000_000) / 1000).toFixed(3)],
  };
}

export function backgroundCommand(seed: string): string {
  const { program, args } = background(seed);
  return [program, ...args].join(' ');
}

export const DENIED = { path: 'src/keep.ts', content: 'overwritten\n' } as const;

/** What the shell call that names its path writes. */
export const DECLARED_OUTPUT = 'docs/report.txt';

/** `$1`: the path it writes. */
export const SHELL_SCRIPT =
  'printf "half of it " >> "$1"; echo ready; read -r go || exit 1; printf "and the rest\\n" >> "$1"';

/** One line, unique in the turn. */
export function summaryOf(at: number, act: Act): string {
  const what = 'path' in act ? ` ${act.path}` : 'paths' in act ? ` ${act.paths.join(', ')}` : '';
  return `act ${String(at)}: ${act.kind}${what}`.slice(0, 180);
}
