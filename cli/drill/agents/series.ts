/** Rounds with a real agent one after the other, as a document and for people. */
import { messageOf } from '../../../lib/errors.js';
import type { Cell, Output } from '../../output.js';
import { AGENT_CHECKS, type AgentCheck } from './judge.js';
import { runAgentRound, type AgentDrill, type AgentRound } from './round.js';

/** The document of CLI.md; null is what this drill does not ask. */
export interface AgentDocument {
  readonly agent: string;
  readonly bare: boolean;
  readonly rounds: readonly AgentRoundDocument[];
  readonly passed: number;
  readonly failed: number;
}

export type AgentRoundDocument = { readonly [C in AgentCheck]: boolean } & {
  readonly seed: number;
  readonly killedAfter: string;
  readonly orphanFound: null;
  readonly rolledBackExactly: null;
  readonly rolledForwardExactly: null;
  readonly complaints: readonly string[];
  /** The drill itself could not go on. */
  readonly error: string | null;
};

export async function playAgentSeries(
  drill: AgentDrill,
  seeds: readonly number[],
  done: (round: AgentRoundDocument) => void,
): Promise<AgentDocument> {
  const rounds: AgentRoundDocument[] = [];
  for (const seed of seeds) {
    const round = await playOne(drill, seed);
    rounds.push(round);
    done(round);
  }
  const passed = rounds.filter(isPassed).length;
  return { agent: drill.name, bare: drill.isBare, rounds, passed, failed: rounds.length - passed };
}

const isPassed = (round: AgentRoundDocument): boolean => AGENT_CHECKS.every((check) => round[check]);

async function playOne(drill: AgentDrill, seed: number): Promise<AgentRoundDocument> {
  try {
    return roundDocument(seed, await runAgentRound(drill, seed));
  } catch (error) {
    return roundDocument(seed, messageOf(error));
  }
}

function roundDocument(seed: number, round: AgentRound | string): AgentRoundDocument {
  const failed = typeof round === 'string';
  const holds = (check: AgentCheck): boolean => !failed && round.checks[check].length === 0;
  return {
    seed,
    killedAfter: failed ? '' : round.killedAfter,
    knowsInterrupted: holds('knowsInterrupted'),
    reportsFiles: holds('reportsFiles'),
    approvalIntact: holds('approvalIntact'),
    gitStatusMatches: holds('gitStatusMatches'),
    orphanFound: null,
    rolledBackExactly: null,
    rolledForwardExactly: null,
    complaints: failed
      ? [round]
      : AGENT_CHECKS.flatMap((check) => round.checks[check].map((text) => `${check}: ${text}`)),
    error: failed ? round : null,
  };
}

export const HEADINGS: { readonly [C in AgentCheck]: string } = {
  knowsInterrupted: 'knows it was interrupted',
  reportsFiles: 'reports the files',
  approvalIntact: 'approval still there',
  gitStatusMatches: 'git status matches',
};

export function tellAgentSeries(output: Output, document: AgentDocument): void {
  const { agent, bare, rounds, passed } = document;
  const how = bare ? 'by itself, without git-durable' : 'with git-durable';
  output.line(`${agent} ${how}, killed (SIGKILL) and started again:`);
  output.line();
  const heading = ['seed', ...AGENT_CHECKS.map((check) => HEADINGS[check]), 'killed at'];
  output.table([
    heading.map((text): Cell => ({ text, style: 'bold' })),
    ...rounds.map((round): Cell[] => [
      { text: String(round.seed) },
      ...AGENT_CHECKS.map((check): Cell =>
        round[check] ? { text: 'yes', style: 'green' } : { text: 'NO', style: 'red' },
      ),
      { text: round.error === null ? round.killedAfter : 'the drill could not go on' },
    ]),
  ]);
  output.line();
  const verdict = `${String(passed)} of ${String(rounds.length)} rounds: all four`;
  output.line(output.paint(passed === rounds.length ? 'green' : 'red', verdict));
  if (bare)
    output.line(`the same with git-durable: git-durable drill --agent ${agent} --seed ${seedOf(rounds)}`);
}

const seedOf = ([first]: readonly AgentRoundDocument[]): string => String(first?.seed ?? 0);

/** What is wrong with a round, on standard error, with the command that plays it again. */
export function tellAgentFailure(output: Output, drill: AgentDrill, round: AgentRoundDocument): void {
  if (round.complaints.length === 0) return;
  const bare = drill.isBare ? ' --bare' : '';
  const again = `git-durable drill --agent ${drill.name}${bare} --rounds 1 --seed ${String(round.seed)}`;
  output.note(`round ${String(round.seed)}: not all four; to play it again: ${again}`);
  for (const complaint of round.complaints) output.note(`  ${complaint}`);
}
