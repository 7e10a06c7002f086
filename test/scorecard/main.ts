/**
 * `npm run scorecard [ROUNDS [SEED]]`: the drill with each agent that is tested, with git-durable and without, as one table; in each
 * field how many rounds of how many answered the question. Exit 1 when a round with git-durable did not answer all four.
 */
import { dirname } from 'node:path';
import { AGENT_CHECKS } from '../../cli/drill/agents/judge.js';
import { needsOf } from '../../cli/drill/agents/needs.js';
import { HEADINGS, playAgentSeries, type AgentDocument } from '../../cli/drill/agents/series.js';
import { AGENTS, type AgentName } from '../../lib/agents/step.js';
import { PROGRAMS } from '../../lib/package.js';
import { agentProgram, versionOf } from '../helpers/agents/pinned.js';

const [rounds = 1, first = 1] = process.argv.slice(2).map(Number);
const seeds = Array.from({ length: rounds }, (_, index) => first + index);

const note = (text: string): void => {
  process.stderr.write(`${text}\n`);
};

async function drilled(name: AgentName, isBare: boolean): Promise<AgentDocument> {
  const agent = agentProgram(name);
  const { missing } = needsOf(name, {
    dir: dirname(agent),
    path: `${dirname(agent)}:${process.env['PATH'] ?? ''}`,
  });
  if (missing !== null) throw new Error(missing);
  const drill = { name, agent, product: PROGRAMS.main, isBare, log: note };
  return playAgentSeries(drill, seeds, ({ seed, complaints }) => {
    for (const complaint of complaints)
      note(`${name}${isBare ? ' by itself' : ''}, seed ${String(seed)}: ${complaint}`);
  });
}

function row(columns: readonly string[]): string {
  const [what = '', ...rest] = columns;
  return `${what.padEnd(42)}${rest.map((column) => column.padEnd(26)).join('')}`.trimEnd() + '\n';
}

process.stdout.write(row(['', ...AGENT_CHECKS.map((check) => HEADINGS[check])]));
let failed = 0;
for (const name of AGENTS) {
  for (const isBare of [true, false]) {
    const document = await drilled(name, isBare);
    if (!isBare) failed += document.failed;
    const counts = AGENT_CHECKS.map((check) => document.rounds.filter((round) => round[check]).length);
    const fields = counts.map((count) => `${String(count)} of ${String(rounds)}`);
    process.stdout.write(row([`${name} ${versionOf(name)}${isBare ? '' : ' with git-durable'}`, ...fields]));
  }
}
process.exitCode = failed === 0 ? 0 : 1;
