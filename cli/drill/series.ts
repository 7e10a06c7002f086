/** Rounds one after the other, what each one showed, and how often each state occurred. */
import { messageOf } from '../../lib/errors.js';
import { planRound, type Build } from './kill.js';
import { CHECKS, runRound, type Check, type Round } from './round.js';

export interface Failed {
  readonly seed: number;
  /** The drill could not go on: the agent fell over by itself, a verb printed no document. */
  readonly error: string;
}

export type Played = { readonly seed: number; readonly round: Round } | Failed;

/** Every state of CLI.md, so that one that never occurred is shown as 0. */
const FILE_STATES = ['untouched', 'written', 'partial', 'foreign', 'deleted', 'changed'] as const;
const CALL_STATES = ['finished', 'failed', 'denied', 'in-doubt', 'not-started'] as const;

export interface Counts {
  readonly files: Readonly<Record<string, number>>;
  readonly invocations: Readonly<Record<string, number>>;
}

/** The stable document of CLI.md, and what was counted. */
export interface DrillDocument {
  readonly agent: string;
  readonly rounds: readonly RoundDocument[];
  readonly passed: number;
  readonly failed: number;
  readonly seen: Counts;
}

export type RoundDocument = { readonly [C in Check]: boolean } & {
  readonly seed: number;
  readonly killedAfter: string;
  readonly keeperKilled: boolean;
  readonly complaints: readonly string[];
};

/** `done` hears of each round as it ends. */
export async function playSeries(
  build: Build,
  seeds: readonly number[],
  done: (played: Played) => void,
): Promise<Played[]> {
  const all: Played[] = [];
  for (const seed of seeds) {
    const played = await playOne(build, seed);
    all.push(played);
    done(played);
  }
  return all;
}

async function playOne(build: Build, seed: number): Promise<Played> {
  try {
    return { seed, round: await runRound(build, planRound(seed)) };
  } catch (error) {
    return { seed, error: messageOf(error) };
  }
}

export function complaintsOf(played: Played): string[] {
  if ('error' in played) return [played.error];
  return CHECKS.flatMap((check) => played.round.checks[check].map((complaint) => `${check}: ${complaint}`));
}

export function documentOf(all: readonly Played[]): DrillDocument {
  const rounds = all.map(roundDocument);
  const passed = rounds.filter((round) => round.complaints.length === 0).length;
  return { agent: 'scripted', rounds, passed, failed: rounds.length - passed, seen: count(all) };
}

function roundDocument(played: Played): RoundDocument {
  const holds = (check: Check): boolean => !('error' in played) && played.round.checks[check].length === 0;
  return {
    seed: played.seed,
    killedAfter: 'error' in played ? '' : played.round.killedAfter,
    keeperKilled: planRound(played.seed).keeperToo,
    knowsInterrupted: holds('knowsInterrupted'),
    reportsFiles: holds('reportsFiles'),
    approvalIntact: holds('approvalIntact'),
    conflictIntact: holds('conflictIntact'),
    gitStatusMatches: holds('gitStatusMatches'),
    orphanFound: holds('orphanFound'),
    rolledBackExactly: holds('rolledBackExactly'),
    rolledForwardExactly: holds('rolledForwardExactly'),
    complaints: complaintsOf(played),
  };
}

/** As reported; a wrong report makes its round fail, so over passing rounds this is what really occurred. */
function count(all: readonly Played[]): Counts {
  const files: Record<string, number> = Object.fromEntries(FILE_STATES.map((state) => [state, 0]));
  const invocations: Record<string, number> = Object.fromEntries(CALL_STATES.map((state) => [state, 0]));
  for (const played of all) {
    const report = 'error' in played ? undefined : played.round.answers.recover.document.interrupted[0];
    for (const { state } of report?.files ?? []) files[state] = (files[state] ?? 0) + 1;
    for (const { state } of report?.invocations ?? []) invocations[state] = (invocations[state] ?? 0) + 1;
  }
  return { files, invocations };
}
