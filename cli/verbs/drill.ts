/**
 * `drill`: does this program keep its promise here, on this machine? A scripted agent works in a scratch repository and
 * is killed at a random moment; what fresh processes then answer is held against a record kept outside the product. With
 * `--agent NAME` it is a real agent beside a scripted model (cli/drill/agents/).
 *
 * Nothing outside the system's temporary folder is touched; it needs no repository. Exit 1 when one round fails.
 */
import { AGENTS, type AgentName } from '../../lib/agents/step.js';
import { packageFile, PROGRAMS } from '../../lib/package.js';
import { usage } from '../arguments.js';
import { needsOf } from '../drill/agents/needs.js';
import { playAgentSeries, tellAgentFailure, tellAgentSeries } from '../drill/agents/series.js';
import { tellFailure, tellRound, tellSeries } from '../drill/report.js';
import { documentOf, playSeries } from '../drill/series.js';
import { EXIT } from '../exit.js';
import type { VerbContext } from '../verb.js';

const ROUNDS = 5;
/** Of a real agent, which takes its time to start. */
const AGENT_ROUNDS = 3;
const SEEDS = 1_000_000;
const BAR = 30;

const BUILD = {
  program: PROGRAMS.main,
  agent: packageFile('dist/program/cli/drill/agent-entry.js'),
};

export async function run(context: VerbContext): Promise<number> {
  const { output } = context;
  const agent = context.arguments.text('agent') ?? 'scripted';
  const isBare = context.arguments.flag('bare');
  if (agent !== 'scripted') return realAgent(context, { name: agentNamed(agent), isBare });
  if (isBare)
    throw usage(
      `--bare shows what a real agent knows by itself: git durable drill --bare --agent NAME, of ${AGENTS.join(', ')}`,
    );
  const rounds = context.arguments.count('rounds', 1) ?? ROUNDS;
  const seeds = seedsOf(context, rounds);

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

function agentNamed(name: string): AgentName {
  const known = AGENTS.find((one) => one === name);
  if (known !== undefined) return known;
  throw usage(`no agent is called '${name}' here; there are scripted, ${AGENTS.join(', ')}`);
}

/** What the agent alone does not know is no failure: with `isBare` only a drill that could not go on is one. */
async function realAgent(
  context: VerbContext,
  { name, isBare }: { name: AgentName; isBare: boolean },
): Promise<number> {
  const { output } = context;
  const needs = needsOf(name, { dir: context.dir, path: context.host.env['PATH'] });
  if (needs.missing !== null) {
    output.note(needs.missing);
    return EXIT.failed;
  }
  const rounds = context.arguments.count('rounds', 1) ?? AGENT_ROUNDS;
  const log = (line: string): void => {
    output.note(line);
  };
  const drill = { name, agent: needs.program, product: PROGRAMS.main, isBare, log };
  const bar = progressBar(rounds);
  const document = await playAgentSeries(drill, seedsOf(context, rounds), (round) => {
    bar.clear();
    tellAgentFailure(output, drill, round);
    bar.step();
  });
  bar.clear();
  output.result(document, () => {
    tellAgentSeries(output, document);
  });
  const failed = isBare ? document.rounds.some(({ error }) => error !== null) : document.failed > 0;
  return failed ? EXIT.failed : EXIT.done;
}

function seedsOf(context: VerbContext, rounds: number): number[] {
  const first = context.arguments.count('seed') ?? randomSeed(context);
  return Array.from({ length: rounds }, (_, index) => first + index);
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
