/**
 * The four questions after the kill of a real agent, judged from outside: by what its next request to the model contains, by the disk, by
 * git, and with this program by what that reports. Each check returns what is wrong with it; an empty list is a pass.
 *
 * What is said in the request are the lines that were in no request before the kill, and are not the model's own words.
 */
import { isDeepStrictEqual } from 'node:util';
import type { AgentName } from '../../../lib/agents/step.js';
import type { Answers } from '../answers.js';
import { blobId, type Tree } from '../tree.js';
import type { ModelRequest } from './script.js';
import { DEPLOYMENT } from './task.js';

export const AGENT_CHECKS = [
  'knowsInterrupted',
  'reportsFiles',
  'approvalIntact',
  'gitStatusMatches',
] as const;
export type AgentCheck = (typeof AGENT_CHECKS)[number];
export type AgentChecks = { readonly [C in AgentCheck]: readonly string[] };

type Pending = Answers['approvals']['document']['pending'];

/** What this program answered between the kill and the next start. */
export interface Asked {
  readonly recover: Answers['recover']['document'];
  readonly pending: Pending;
}

export interface AgentFacts {
  readonly name: AgentName;
  readonly objective: string;
  /** Paths that differ from before the agent came. */
  readonly changed: readonly string[];
  /** Those of them that the killed call changed. */
  readonly byKilledCall: readonly string[];
  readonly killed: Tree;
  /** Paths of `git status` before the agent came, and after the kill. */
  readonly dirtyBefore: ReadonlySet<string>;
  readonly dirtyNow: ReadonlySet<string>;
  readonly heardBefore: readonly ModelRequest[];
  /** The first one after the start. */
  readonly request: ModelRequest;
  /** Null without this program. */
  readonly asked: Asked | null;
  /** After the agent was started again. */
  readonly pendingAfter: Pending | null;
}

export function judge(facts: AgentFacts): AgentChecks {
  return {
    knowsInterrupted: knowsInterrupted(facts),
    reportsFiles: reportsFiles(facts),
    approvalIntact: approvalIntact(facts),
    gitStatusMatches: gitStatusMatches(facts),
  };
}

/** The lines that the request adds, whoever wraps them in whatever. */
export function news({ heardBefore, request }: Pick<AgentFacts, 'heardBefore' | 'request'>): string {
  const old = new Set(heardBefore.flatMap(({ heard }) => heard.flatMap(({ text }) => text.split('\n'))));
  return request.heard
    .filter(({ from }) => from !== 'model')
    .flatMap(({ text }) => text.split('\n'))
    .filter((line) => !old.has(line))
    .join('\n');
}

function knowsInterrupted(facts: AgentFacts): string[] {
  const { asked, objective, name } = facts;
  const said = news(facts);
  const complaints = /\binterrupt|\babort/i.test(said) ? [] : ['the model is not told of an interruption'];
  if (asked === null) return complaints;
  const [turn, ...more] = asked.recover.interrupted;
  if (turn === undefined) return [...complaints, 'recover knows of no interrupted turn'];
  if (more.length > 0) complaints.push('recover tells of more than one interrupted turn');
  if (turn.agent !== name || !turn.objective.includes(objective))
    complaints.push(`recover tells of ${turn.agent}, '${turn.objective}'`);
  if (!said.includes(turn.turn) || !said.includes(objective))
    complaints.push('the model is not told which turn was interrupted');
  return complaints;
}

function reportsFiles(facts: AgentFacts): string[] {
  const { changed, byKilledCall, request, asked, killed } = facts;
  const all = request.heard.map(({ text }) => text).join('\n');
  const said = news(facts);
  const complaints = [
    ...changed.filter((path) => !all.includes(path)).map((path) => `the model is not told of '${path}'`),
    ...byKilledCall
      .filter((path) => !said.includes(path))
      .map((path) => `the model is not told what became of '${path}', which the killed call changed`),
  ];
  if (asked === null) return complaints;
  const files = asked.recover.interrupted.flatMap((turn) => turn.files);
  const reported = files.filter(({ state }) => state !== 'untouched').map(({ path }) => path);
  const wrong = symmetric(new Set(changed), new Set(reported));
  const bytes = files.filter(({ path, now }) => {
    const leaf = killed.get(path);
    return now !== (leaf === undefined ? null : blobId('sha1', leaf.bytes));
  });
  return [
    ...complaints,
    ...wrong.map((path) => `recover and the disk do not agree on '${path}'`),
    ...bytes.map(({ path }) => `recover tells other bytes of '${path}' than are there`),
  ];
}

/** A call with these arguments that is merely listed is no request that waits. */
const WAITS = /approval|pending|waiting|not answered/i;

function approvalIntact(facts: AgentFacts): string[] {
  const { asked, pendingAfter } = facts;
  const lines = news(facts).split('\n');
  const complaints = lines.some((line) => line.includes(DEPLOYMENT.args) && WAITS.test(line))
    ? []
    : ['the model is not told of the request that waits, with its arguments'];
  if (asked === null) return complaints;
  const wanted = [[DEPLOYMENT.tool, JSON.parse(DEPLOYMENT.args)]];
  for (const [when, pending] of Object.entries({
    'after the kill': asked.pending,
    'at the end': pendingAfter,
  }))
    if (
      !isDeepStrictEqual(
        (pending ?? []).map(({ tool, args }) => [tool, args]),
        wanted,
      )
    )
      complaints.push(`${when} approvals does not show the request with its arguments`);
  return complaints;
}

function gitStatusMatches(facts: AgentFacts): string[] {
  const { asked, dirtyBefore, dirtyNow, request } = facts;
  if (asked === null) {
    const all = request.heard.map(({ text }) => text).join('\n');
    return [...dirtyNow]
      .filter((path) => !all.includes(path))
      .map((path) => `git status shows '${path}', of which the model is not told`);
  }
  const [turn] = asked.recover.interrupted;
  const files = turn?.files.filter(({ state }) => state !== 'untouched').map(({ path }) => path) ?? [];
  const wrong = symmetric(new Set([...dirtyBefore, ...files]), dirtyNow);
  return [
    ...wrong.map((path) => `recover and git status do not agree on '${path}'`),
    ...(turn?.gitStatusMatches === true ? [] : ['recover says that git status does not match']),
  ];
}

function symmetric(a: ReadonlySet<string>, b: ReadonlySet<string>): string[] {
  return [...[...a].filter((path) => !b.has(path)), ...[...b].filter((path) => !a.has(path))];
}
