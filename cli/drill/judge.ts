/**
 * The judge: the product's answers held against what really happened. Each check returns what is wrong with it, in
 * plain words; an empty list is a pass.
 *
 * It believes the independent record, the disk as node:fs shows it, /proc, and git; never the product.
 */
import type { Answers, Interrupted, ReportedFile } from './answers.js';
import {
  invocationStates,
  isCall,
  verdictOf,
  type ActRecord,
  type Intended,
  type Story,
  type Verdict,
} from './expectation.js';
import type { Seen } from './processes.js';
import type { ObjectFormat } from './scratch.js';
import { blobId, sameLeaf, type Tree } from './tree.js';
import { OBJECTIVE } from './wording.js';

/** What the drill knows by its own means at the moment the product is asked. */
export interface Facts {
  readonly format: ObjectFormat;
  readonly acts: readonly ActRecord[];
  readonly stories: readonly Story[];
  /** Acts that the product must know of, by their place in the script. */
  readonly certain: ReadonlySet<number>;
  /** The work tree as git calls it clean. */
  readonly head: Tree;
  /** SHA-256 of each instruction file in scope. */
  readonly instructions: ReadonlyMap<string, string>;
  /** Paths of `git status` before the turn, and when the product was asked. */
  readonly dirtyBefore: ReadonlySet<string>;
  readonly dirtyNow: ReadonlySet<string>;
  /** Background processes of the turn that are alive. */
  readonly alive: readonly Seen[];
  /** Killed with the agent, heard before the questions, or speaking while they are asked. */
  readonly keeper: 'killed' | 'heard' | 'speaking';
}

export type Complaints = readonly string[];

export function knowsInterrupted(facts: Facts, answers: Answers): Complaints {
  const { recover, status } = answers;
  const turn = factOf(facts, 'turn')?.turn;
  const complaints: string[] = [];
  if (recover.code !== 3) complaints.push(`recover ended with ${String(recover.code)}, not 3`);
  const [report, ...others] = recover.document.interrupted;
  if (report === undefined) return [...complaints, 'no interrupted turn is reported'];
  if (others.length > 0) complaints.push(`${String(others.length)} more turns are reported`);
  if (report.turn !== turn) complaints.push(`turn ${report.turn} is reported, not ${String(turn)}`);
  if (report.objective !== OBJECTIVE) complaints.push(`the objective is reported as '${report.objective}'`);
  if (report.agent !== 'scripted') complaints.push(`the agent is reported as '${report.agent}'`);
  if (facts.keeper !== 'speaking' && (report.detectedBy === 'keeper') !== (facts.keeper === 'heard'))
    complaints.push(`the keeper was ${facts.keeper}, and ${report.detectedBy} is said to have noticed`);
  if (status.document.interrupted.map((each) => each.id).join() !== report.turn)
    complaints.push('status does not show that turn as interrupted');
  return [...complaints, ...wrongInstructions(facts, answers), ...wrongInvocations(facts, report)];
}

/** What the agent had been told is part of what was interrupted. */
function wrongInstructions(facts: Facts, answers: Answers): string[] {
  const { turn, instructions } = answers.started.document;
  const told = instructions.map((one) => `${one.path} ${one.digest}`).sort();
  const real = [...facts.instructions].map(([path, digest]) => `${path} ${digest}`).sort();
  if (turn !== factOf(facts, 'turn')?.turn) return ['log shows the start of another turn'];
  return told.join() === real.join()
    ? []
    : [`the turn stands on [${told.join()}], and in scope are [${real.join()}]`];
}

function wrongInvocations(facts: Facts, report: Interrupted): string[] {
  const complaints: string[] = [];
  const reported = [...report.invocations];
  for (const act of facts.acts) {
    if (!isCall(act)) continue;
    const states = invocationStates(act);
    if (reported[0]?.summary !== act.detail) {
      if (!states.includes('absent')) complaints.push(`call '${act.detail}' is not reported in its place`);
      continue;
    }
    const state = reported.shift()?.state ?? '';
    if (!states.includes(state))
      complaints.push(`call '${act.detail}' is ${states.join(' or ')}, reported as ${state}`);
  }
  for (const extra of reported)
    complaints.push(`call '${extra.summary}' is reported and was not made, or not in this order`);
  return complaints;
}

/**
 * Acts that the product knows or must know. Of one that was only announced either answer is true; which one it is (a
 * call by its line in the report, a transaction by any of its paths) decides what the report and the repairs must be.
 */
export function knownActs(facts: Pick<Facts, 'acts' | 'certain'>, report: Interrupted): Set<number> {
  const calls = new Set(report.invocations.map((call) => call.summary));
  const files = new Set(report.files.map((file) => file.path));
  const known = facts.acts.filter((act) =>
    isCall(act) ? calls.has(act.detail) : act.paths.some((intention) => files.has(intention.path)),
  );
  return new Set([...facts.certain, ...known.map((act) => act.at)]);
}

/** Each path the turn was about is reported as it is, and no other path. */
export function reportsFiles(facts: Facts, answers: Answers): Complaints {
  const [report] = answers.recover.document.interrupted;
  if (report === undefined) return ['no report'];
  const known = knownActs(facts, report);
  const complaints: string[] = [];
  const reported = new Map(report.files.map((file) => [file.path, file]));
  if (reported.size !== report.files.length) complaints.push('a path is reported twice');
  for (const story of facts.stories) {
    const verdict = verdictOf(story, known);
    if (verdict === undefined) continue;
    const file = reported.get(story.path);
    reported.delete(story.path);
    if (file !== undefined) complaints.push(...wrongFile(facts, { story, verdict, file }));
    else if (!isEffectless(story, verdict))
      complaints.push(`'${story.path}' (${verdict.state}) is not reported`);
  }
  for (const path of reported.keys()) complaints.push(`'${path}' is reported and the turn never touched it`);
  return complaints;
}

/** A command that names no path is known by its effects, and may have had none. */
function isEffectless(story: Story, verdict: Verdict): boolean {
  return story.steps.every((step) => step.act.kind === 'shell') && verdict.state === 'untouched';
}

interface Told {
  readonly story: Story;
  readonly verdict: Verdict;
  readonly file: ReportedFile;
}

function wrongFile(facts: Facts, { story, verdict, file }: Told): string[] {
  const complaints: string[] = [];
  const now = name(facts, story.now);
  const before = name(facts, story.before);
  const right = acceptable(facts, story, verdict);
  if (!right.some((one) => one.state === file.state && one.expected === file.expected))
    complaints.push(
      `'${story.path}' is ${right.map((one) => `${one.state}/${String(one.expected)}`).join(' or ')}, reported as ${file.state}/${String(file.expected)} (${lastActs(story)})`,
    );
  if (file.now !== now)
    complaints.push(`'${story.path}' holds ${String(now)}, reported as ${String(file.now)}`);
  if (file.before !== before)
    complaints.push(`'${story.path}' held ${String(before)}, reported as ${String(file.before)}`);
  return complaints;
}

const COMMANDS: readonly string[] = ['shell', 'declared-shell'];

function lastActs(story: Story): string {
  return story.steps.map(({ act }) => `${act.kind} ${[...act.reached].at(-1) ?? ''}`).join(', ');
}

/** Once a command has ended, what it left is known: of the paths it named by a look at them, else by a checkpoint. */
function acceptable(
  facts: Facts,
  story: Story,
  verdict: Verdict,
): { state: string; expected: string | null }[] {
  const plain = { state: verdict.state, expected: name(facts, verdict.expected) };
  const shell = story.steps.find((step) => COMMANDS.includes(step.act.kind))?.act;
  if (verdict.state !== 'changed' || shell?.reached.has('wrote') !== true) return [plain];
  const settled = { state: 'written', expected: name(facts, story.now) };
  return shell.reached.has('after') ? [settled] : [plain, settled];
}

export function approvalIntact(facts: Facts, answers: Answers): Complaints {
  const asked = facts.acts.find((act) => act.kind === 'approval');
  const [report] = answers.recover.document.interrupted;
  const { pending } = answers.approvals.document;
  const inReport = report?.approvals ?? [];
  const complaints: string[] = [];
  if (answers.approvals.code !== 0) complaints.push(`approvals ended with ${String(answers.approvals.code)}`);
  const least = asked?.reached.has('after') === true ? 1 : 0;
  const most = asked === undefined ? 0 : 1;
  for (const [where, list] of [
    ['recover', inReport],
    ['approvals', pending],
  ] as const) {
    if (list.length < least || list.length > most)
      complaints.push(`${where} shows ${String(list.length)} approvals`);
    for (const one of list) if (asked !== undefined) complaints.push(...wrongApproval(where, one, asked));
  }
  if (answers.status.document.approvals !== pending.length) complaints.push('status counts other approvals');
  if (asked !== undefined && pending.some((one) => one.cwd !== asked.facts.cwd))
    complaints.push('approvals shows another folder');
  return complaints;
}

function wrongApproval(where: string, one: Interrupted['approvals'][number], asked: ActRecord): string[] {
  const { approval, fingerprint, tool, args } = asked.facts;
  const complaints: string[] = [];
  if (approval !== undefined && one.id !== approval)
    complaints.push(`${where} shows approval ${one.id}, not ${approval}`);
  if (fingerprint !== undefined && one.fingerprint !== fingerprint)
    complaints.push(`${where} shows another fingerprint`);
  if (one.tool !== tool) complaints.push(`${where} shows tool '${one.tool}'`);
  if (sorted(one.args) !== sorted(JSON.parse(args ?? 'null')))
    complaints.push(`${where} shows other arguments than were asked for`);
  return complaints;
}

/** JSON with members in one order, so that equal text means equal values, character by character. */
function sorted(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sorted).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}:${sorted(member)}`);
  return `{${members.sort().join()}}`;
}

/** CLI.md: `git status` against the paths dirty at the baseline and the touched ones that differ from HEAD. */
export function gitStatusMatches(facts: Facts, answers: Answers): Complaints {
  const [report] = answers.recover.document.interrupted;
  if (report === undefined) return ['no report'];
  const drift = driftOf(facts, report);
  const complaints: string[] = [];
  if (report.gitStatusMatches !== (drift.length === 0))
    complaints.push(
      `git status ${drift.length === 0 ? 'matches' : 'does not match'}, and the report says otherwise`,
    );
  if ([...report.drift].sort().join('\n') !== drift.join('\n'))
    complaints.push(`the drift is [${drift.join(', ')}], reported as [${report.drift.join(', ')}]`);
  return complaints;
}

function driftOf(facts: Facts, report: Interrupted): string[] {
  const reported = new Set(report.files.map((file) => file.path));
  const explained = new Set(facts.dirtyBefore);
  for (const { path, now } of facts.stories) {
    if (reported.has(path) && !sameLeaf(now, facts.head.get(path))) explained.add(path);
  }
  const missing = [...explained].filter((path) => !facts.dirtyNow.has(path));
  return [...missing, ...[...facts.dirtyNow].filter((path) => !explained.has(path))].sort();
}

export function orphanFound(facts: Facts, answers: Answers): Complaints {
  const [report] = answers.recover.document.interrupted;
  const orphans = report?.orphans ?? [];
  const found = orphans.map((one) => String(one.pid)).sort();
  const living = facts.alive.map((one) => String(one.pid)).sort();
  const complaints: string[] = [];
  if (found.join() !== living.join())
    complaints.push(
      `processes [${living.join(', ')}] outlived the agent, reported are [${found.join(', ')}]`,
    );
  for (const one of orphans) {
    const real = facts.alive.find((seen) => seen.pid === one.pid);
    if (real !== undefined && real.command !== one.command)
      complaints.push(`process ${String(one.pid)} is '${real.command}', reported as '${one.command}'`);
  }
  if (answers.status.document.orphans !== living.length) complaints.push('status counts other orphans');
  return complaints;
}

export function factOf(facts: Pick<Facts, 'acts'>, kind: string): ActRecord['facts'] | undefined {
  return facts.acts.find((act) => act.kind === kind)?.facts;
}

function name(facts: Facts, one: Intended): string | null {
  return one === undefined || one === 'unknown' ? null : blobId(facts.format, one.bytes);
}
