/**
 * The judge: the product's answers held against what really happened. Each check returns what is wrong with it, in
 * plain words; an empty list is a pass.
 *
 * It believes the independent record, the disk as node:fs shows it, /proc, and git; never the product.
 */
import type { Answers, Interrupted, ReportedFile } from './answers.js';
import { invocationStates, type ActRecord, type TouchedPath } from './expectation.js';
import type { Seen } from './processes.js';
import type { ObjectFormat } from './scratch.js';
import { blobId, sameLeaf, type Leaf, type Tree } from './tree.js';
import { OBJECTIVE } from './wording.js';

/** What the drill knows by its own means at the moment the product is asked. */
export interface Facts {
  readonly format: ObjectFormat;
  readonly acts: readonly ActRecord[];
  readonly touched: readonly TouchedPath[];
  /** The work tree as git calls it clean. */
  readonly head: Tree;
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
  return [...complaints, ...wrongInvocations(facts, report)];
}

function wrongInvocations(facts: Facts, report: Interrupted): string[] {
  const complaints: string[] = [];
  const reported = [...report.invocations];
  for (const act of facts.acts) {
    const states = invocationStates(act);
    if (states === undefined) continue;
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

/** Paths the product must report, those it may, and whether each is described as it is. */
export function reportsFiles(facts: Facts, answers: Answers): Complaints {
  const [report] = answers.recover.document.interrupted;
  if (report === undefined) return ['no report'];
  const complaints: string[] = [];
  const reported = new Map(report.files.map((file) => [file.path, file]));
  if (reported.size !== report.files.length) complaints.push('a path is reported twice');
  for (const one of facts.touched) {
    const file = reported.get(one.path);
    reported.delete(one.path);
    if (file === undefined) complaints.push(...missing(one));
    else complaints.push(...wrongFile(facts, one, file));
  }
  for (const path of reported.keys()) complaints.push(`'${path}' is reported and the turn never touched it`);
  return [...complaints, ...halfKnown(facts, report)];
}

function missing(one: TouchedPath): string[] {
  if (!one.mustBeKnown) return [];
  // A command that names no path is known by its effects, and may have had none.
  if (one.act.kind === 'shell' && one.state === 'untouched') return [];
  return [`'${one.path}' (${one.state}, ${one.act.detail}) is not reported`];
}

function wrongFile(facts: Facts, one: TouchedPath, file: ReportedFile): string[] {
  const fine = acceptable(facts, one).some(
    (right) => right.state === file.state && right.expected === file.expected,
  );
  const now = name(facts, one.now);
  const before = name(facts, one.before);
  const complaints: string[] = [];
  if (!fine) complaints.push(`'${one.path}' is ${one.state}, reported as ${file.state} (${one.act.detail})`);
  if (file.now !== now)
    complaints.push(`'${one.path}' holds ${String(now)}, reported as ${String(file.now)}`);
  if (file.before !== before)
    complaints.push(`'${one.path}' held ${String(before)}, reported as ${String(file.before)}`);
  return complaints;
}

/** Once a command without named paths has ended, what it left is known, and so is its effect. */
function acceptable(facts: Facts, one: TouchedPath): { state: string; expected: string | null }[] {
  if (one.expected !== 'unknown') return [{ state: one.state, expected: name(facts, one.expected) }];
  const unknown = { state: one.state, expected: null };
  if (one.act.kind !== 'shell' || !one.act.reached.has('wrote')) return [unknown];
  const settled = { state: 'written', expected: name(facts, one.now) };
  return one.act.reached.has('after') && one.state === 'changed' ? [settled, unknown] : [unknown, settled];
}

/** A transaction is known whole or not at all. */
function halfKnown(facts: Facts, report: Interrupted): string[] {
  const reported = new Set(report.files.map((file) => file.path));
  return facts.acts
    .filter((act) => act.paths.length > 1)
    .filter((act) => new Set(act.paths.map((one) => reported.has(one.path))).size > 1)
    .map((act) => `only a part of '${act.detail}' is reported`);
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
  const drift = driftOf(facts, new Set(report.files.map((file) => file.path)));
  const complaints: string[] = [];
  if (report.gitStatusMatches !== (drift.length === 0))
    complaints.push(
      `git status ${drift.length === 0 ? 'matches' : 'does not match'}, and the report says otherwise`,
    );
  if ([...report.drift].sort().join('\n') !== drift.join('\n'))
    complaints.push(`the drift is [${drift.join(', ')}], reported as [${report.drift.join(', ')}]`);
  return complaints;
}

export function driftOf(facts: Facts, reported: ReadonlySet<string>): string[] {
  const explained = new Set(facts.dirtyBefore);
  for (const one of facts.touched) {
    if (reported.has(one.path) && !sameLeaf(one.now, facts.head.get(one.path))) explained.add(one.path);
  }
  const both = [...explained].filter((path) => !facts.dirtyNow.has(path));
  return [...both, ...[...facts.dirtyNow].filter((path) => !explained.has(path))].sort();
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

function name(facts: Facts, one: Leaf | undefined): string | null {
  return one === undefined ? null : blobId(facts.format, one.bytes);
}
