/**
 * `drill`: does this program keep its promise here, on this machine? A scripted agent works in a scratch repository and
 * is killed at a random moment; what fresh processes then answer is held against a record kept outside the product.
 *
 * Nothing outside the system's temporary folder is touched; it needs no repository. Exit 1 when one round fails.
 */
import { packageFile, PROGRAMS } from '../../lib/package.js';
import { usage } from '../arguments.js';
import { tellFailure, tellRound, tellSeries } from '../drill/report.js';
import { documentOf, playSeries } from '../drill/series.js';
import { EXIT } from '../exit.js';
import type { VerbContext } from '../verb.js';

const ROUNDS = 5;
const SEEDS = 1_000_000;
const BAR = 30;

const BUILD = {
  program: PROGRAMS.main,
  agent: packageFile('dist/program/cli/drill/agent-entry.js'),
};

export async function run(context: VerbContext): Promise<number> {
  const { output } = context;
  const agent = context.arguments.text('agent') ?? 'scripted';
  if (agent !== 'scripted')
    throw usage(`this version drills the agent 'scripted' only, not '${agent}'; type 'git durable drill'`);
  if (context.arguments.flag('bare')) throw usage('--bare is not in this version: drill without it');
  const rounds = context.arguments.count('rounds', 1) ?? ROUNDS;
  const first = context.arguments.count('seed') ?? randomSeed(context);
  const seeds = Array.from({ length: rounds }, (_, index) => first + index);

  const bar = progressBar(rounds);
  const all = await playSeries(BUILD, seeds, (played) => {
    bar.clear();
    tellFailure(output, played);
    bar.step();
  });
  bar.clear();
  const document = documentOf(all);
  output.result(document, () => {
    const shown = all.find((played) => 'round' in played);
    if (shown !== undefined) tellRound(output, shown.round);
    tellSeries(output, document);
  });
  return document.failed === 0 ? EXIT.done : EXIT.failed;
}

function randomSeed(context: VerbContext): number {
  return Buffer.from(context.host.random(4)).readUInt32BE() % SEEDS;
}

/** On a terminal's standard error only. */
function progressBar(rounds: number): { readonly step: () => void; readonly clear: () => void } {
  const { stderr } = process;
  let done = 0;
  const draw = (): void => {
    const full = Math.round((done / rounds) * BAR);
    stderr.write(
      `\r[${'#'.repeat(full)}${'.'.repeat(BAR - full)}] ${String(done)} of ${String(rounds)} kills`,
    );
  };
  if (!stderr.isTTY) return { step: () => undefined, clear: () => undefined };
  draw();
  return {
    step: () => {
      done += 1;
      draw();
    },
    clear: () => {
      stderr.write('\r\u001b[K');
    },
  };
}
