/**
 * Every error this library throws on purpose: a closed set of codes, each with typed fields and one sentence.
 *
 * A sentence says what happened and what to type next; it is derived from the fields, so programs decide by `code`
 * and fields and never by text. The cause is kept. `isDurableError` recognises errors of a second copy of this
 * package too (the brand is a registered symbol).
 */

import { quantity } from './quantity.js';

/** Who holds something: enough to name it to a person and to a program. */
export interface HolderSummary {
  readonly agent: string;
  readonly host: string;
  readonly pid: number;
  readonly task: string | null;
  readonly turn: string | null;
  readonly objective: string;
  /** ISO 8601, by the holder's clock. */
  readonly since: string;
  /** How long it has been held, in milliseconds, by this process's clock against the holder's. */
  readonly ageMs: number;
}

export interface ErrorFields {
  // opening a repository
  'not-a-repository': { path: string };
  'bare-repository': { path: string };
  'unsafe-directory': { path: string; detail: string };
  'git-missing': { detail: string };
  'git-too-old': { found: string; needed: string };
  'reftable-unsupported': { path: string };
  'git-failed': { command: string; code: number | null; detail: string };
  // storage
  'ref-locked': { ref: string; owner: string; waitedMs: number };
  'ref-moved': { ref: string; expected: string | null; actual: string | null };
  'ref-conflict': { ref: string; other: string };
  'ref-damaged': { ref: string; detail: string };
  /** `instead`: what to type that does without it. */
  'object-missing': { oid: string; needed: string; instead?: string };
  'object-damaged': { oid: string; detail: string };
  'out-of-space': { path: string };
  /**
   * `readOnly`: the file system takes no writes from anybody, whatever the modes say. `folder`: the one above it that may not be
   * entered or changed, where that is why.
   */
  'permission-denied': { path: string; readOnly: boolean; folder?: string };
  'io-failed': { path: string; errno: string };
  // ledger
  'ledger-damaged': { task: string; commit: string | null; detail: string };
  'event-invalid': { commit: string | null; detail: string };
  'version-unsupported': { found: number; supported: number; where: string };
  // lease
  'lease-held': { lease: string; holder: HolderSummary; why: string };
  'lease-lost': { lease: string; detail: string };
  'index-locked': { path: string; owner: string; waitedMs: number };
  'lease-unproven': { lease: string; holder: HolderSummary; why: string; waitMs: number };
  'recovery-needed': { task: string; turn: string; objective: string };
  // turns
  'turn-claimed': { key: string; task: string; turn: string; holder: HolderSummary | null; state: string };
  'turn-closed': { turn: string; state: string };
  'no-turn': { detail: string };
  'replay-diverged': { turn: string; index: number; recorded: string; asked: string };
  'invocation-in-doubt': { invocation: string; tool: string; summary: string };
  // agents
  /** A file of an agent's that is left as it is; `todo`: what to type, or mend. */
  'agent-file': { path: string; why: string; todo: string };
  /** Reports of agents that are on record nowhere: how many, since when (ISO 8601), and the folder that has them. */
  undelivered: { count: number; since: string; folder: string };
  // files
  /** `conflict`: the id under which it is recorded, null when nothing was. */
  conflict: { path: string; expected: string | null; now: string | null; conflict: string | null };
  'conflict-open': { path: string; conflict: string };
  'path-outside': { path: string };
  'path-refused': { path: string; why: string };
  'stage-revoked': { epoch: number };
  'transaction-failed': {
    transaction: string;
    path: string;
    state: 'rolled-back' | 'in-doubt';
    detail: string;
  };
  'checkpoint-incomplete': { detail: string };
  // decisions
  /** `decision`, `by` and `at` are of the answer, or of what ended it without one; `used` of the call that has used it since. */
  'approval-settled': {
    approval: string;
    state: string;
    decision: string;
    by: string;
    at: string;
    used: { by: string; at: string } | null;
  };
  'conflict-settled': { conflict: string; choice: string; by: string; at: string };
  'inside-turn': { verb: string };
  // addressing
  'not-found': { what: string; id: string };
  ambiguous: { what: string; id: string; candidates: readonly string[] };
  usage: { detail: string };
}

export type ErrorCode = keyof ErrorFields;

const BRAND = Symbol.for('git-durable.error');

export class DurableError<C extends ErrorCode = ErrorCode> extends Error {
  readonly code: C;
  readonly fields: ErrorFields[C];

  constructor(code: C, fields: ErrorFields[C], cause?: unknown) {
    super(sentence(code, fields), cause === undefined ? undefined : { cause });
    this.name = 'DurableError';
    this.code = code;
    this.fields = fields;
    Object.defineProperty(this, BRAND, { value: true });
  }
}

/** Any of our errors as a union that narrows by `code`. */
export type AnyDurableError = { [C in ErrorCode]: DurableError<C> }[ErrorCode];

export function isDurableError(error: unknown): error is AnyDurableError {
  return typeof error === 'object' && error !== null && BRAND in error;
}

export function hasCode<C extends ErrorCode>(error: unknown, code: C): error is DurableError<C> {
  return isDurableError(error) && error.code === code;
}

/** An object that is needed is not in the repository, or not with its bytes. */
export function isLoss(
  error: unknown,
): error is DurableError<'object-missing'> | DurableError<'object-damaged'> {
  return hasCode(error, 'object-missing') || hasCode(error, 'object-damaged');
}

/** One of our errors from the JSON of its code and fields; null when the text is none. */
export function errorFrom(text: string): DurableError | null {
  try {
    const { code, fields } = JSON.parse(text) as { code: ErrorCode; fields: never };
    return code in SENTENCES ? new DurableError(code, fields) : null;
  } catch {
    // A message, or fields that an older build gave another shape.
    return null;
  }
}

/** What an error says, whatever was thrown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

type Sentences = { readonly [C in ErrorCode]: (fields: ErrorFields[C]) => string };

const who = (holder: HolderSummary): string =>
  `${holder.agent} (pid ${String(holder.pid)} on ${holder.host}) since ${holder.since} (${ago(holder.ageMs)}), for '${holder.objective}'${holder.task === null ? '' : ` (task ${holder.task})`}`;

/** In the largest unit that fits. A clock that was set back shows nothing longer than now. */
function ago(ms: number): string {
  const units: readonly [number, string][] = [
    [86_400_000, 'day'],
    [3_600_000, 'hour'],
    [60_000, 'minute'],
    [1000, 'second'],
  ];
  const [unit, name] = units.find(([size]) => ms >= size) ?? [1000, 'second'];
  const count = Math.max(0, Math.floor(ms / unit));
  return `${String(count)} ${name}${count === 1 ? '' : 's'} ago`;
}

const SENTENCES: Sentences = {
  'not-a-repository': (f) =>
    `'${f.path}' is not inside a Git work tree; type 'git init' there, or give -C DIR`,
  'bare-repository': (f) =>
    `'${f.path}' is a bare repository and has no work tree; run this in a clone or a linked work tree`,
  'unsafe-directory': (f) =>
    `git refuses '${f.path}' because another user owns it (${f.detail}); if you trust it: git config --global --add safe.directory '${f.path}'`,
  'git-missing': (f) =>
    `the program 'git' cannot be run (${f.detail}); install git 2.31 or newer and put it on PATH`,
  'git-too-old': (f) => `git ${f.found} is too old; install git ${f.needed} or newer`,
  'reftable-unsupported': (f) =>
    `'${f.path}' keeps its refs as reftable, whose locks name no owner; type: git refs migrate --ref-format=files`,
  'git-failed': (f) =>
    `'${f.command}' failed with ${f.code === null ? 'a signal' : `code ${String(f.code)}`}: ${f.detail}`,
  'ref-locked': (f) =>
    `'${f.ref}' stayed locked by ${f.owner} for ${String(f.waitedMs)} ms; end that process, or try again when it is done`,
  'ref-moved': (f) =>
    `'${f.ref}' is at ${f.actual ?? 'nothing'}, not at ${f.expected ?? 'nothing'}; another process moved it: read it and try again`,
  'ref-conflict': (f) =>
    `'${f.ref}' cannot be made beside '${f.other}', since one name is a folder of the other; choose another name, or remove it: git update-ref -d ${f.other}`,
  'ref-damaged': (f) =>
    `'${f.ref}' holds no object id (${f.detail}); type 'git durable doctor --fix', or look for its last value in a clone`,
  'object-missing': (f) =>
    f.instead === undefined
      ? `object ${f.oid} is missing (needed: ${f.needed}); type 'git durable doctor', or fetch it from a clone that has it`
      : `object ${f.oid} cannot be read (needed: ${f.needed}), and no file was changed; fetch it from a clone that has it, or do without it: '${f.instead}'`,
  'object-damaged': (f) => `object ${f.oid} is damaged (${f.detail}); type 'git durable doctor'`,
  'out-of-space': (f) =>
    `no space left while writing '${f.path}'; nothing was lost: free some space and type the same again`,
  'permission-denied': (f) =>
    f.readOnly
      ? `'${f.path}' lies on a read-only file system; nothing was lost: mount it writable, or type the same in a copy`
      : f.folder === undefined
        ? `permission denied on '${f.path}'; nothing was lost: mend its mode or owner and type the same again`
        : `permission denied on '${f.path}', since its folder may not be used; nothing was lost: type the same again after: chmod u+rwx '${f.folder}'`,
  'io-failed': (f) => `'${f.path}' cannot be used (${f.errno}); nothing was lost: type 'git durable doctor'`,
  'ledger-damaged': (f) =>
    `the ledger of task ${f.task} is damaged at ${f.commit ?? 'its ref'} (${f.detail}); type 'git durable verify ${f.task}', then 'git durable doctor --fix'`,
  'event-invalid': (f) =>
    `${f.commit === null ? 'an event' : `commit ${f.commit}`} is not an event of ours (${f.detail}); type 'git durable verify'`,
  'version-unsupported': (f) =>
    `${f.where} is written in version ${String(f.found)} of the format and this program reads up to ${String(f.supported)}: a turn may be interrupted that it does not see; install a git-durable that reads version ${String(f.found)}, and type 'git durable recover' with it`,
  'lease-held': (f) =>
    `the work tree is held by ${who(f.holder)} (${f.why}); wait for it, or work in a linked work tree of your own: git durable run --worktree -- CMD`,
  'index-locked': (f) =>
    `'${f.path}' stayed locked by ${f.owner} for ${String(f.waitedMs)} ms; let that git end; when none is running: rm '${f.path}'`,
  'lease-lost': (f) =>
    `the lease ${f.lease} is no longer this turn's (${f.detail}); stop, and type 'git durable status'`,
  'lease-unproven': (f) =>
    `the lease is held by ${who(f.holder)}, and its death cannot be proven from here (${f.why}); wait ${String(f.waitMs)} ms, or end it first: git durable recover --take-over`,
  'recovery-needed': (f) =>
    `turn ${f.turn} of task ${f.task} was interrupted ('${f.objective}'); type 'git durable recover'`,
  'turn-claimed': (f) =>
    `the turn '${f.key}' is already ${f.state}, as ${f.turn}${f.holder === null ? '' : `, by ${who(f.holder)}`}; type 'git durable show ${f.turn}'`,
  'turn-closed': (f) => `turn ${f.turn} is ${f.state} and takes no more events; start another turn`,
  'no-turn': (f) => `no turn is open here (${f.detail}); run this inside 'git durable run -- CMD'`,
  'replay-diverged': (f) =>
    `turn ${f.turn} does something else than it did before: call ${String(f.index)} was ${f.recorded} and is now ${f.asked}; run the same function, or start another turn`,
  'invocation-in-doubt': (f) =>
    `nobody knows whether '${f.tool}' (${f.summary}, invocation ${f.invocation}) had its effect; decide: retry, accept or ask`,
  'agent-file': (f) => `'${f.path}' is left as it is, since ${f.why}; ${f.todo}`,
  undelivered: (f) =>
    `${quantity(f.count, 'report')} of agents, the oldest of ${f.since}, could not be recorded and would be lost with '${f.folder}'; type 'git durable doctor --fix', read what stays there and remove it, or type 'git durable uninstall --purge'`,
  conflict: (f) =>
    `'${f.path}' changed since it was read (expected ${f.expected ?? 'no file'}, found ${f.now ?? 'no file'}); ${f.conflict === null ? 'read it again, then write' : `both versions are kept: type 'git durable conflicts ${f.conflict}'`}`,
  'conflict-open': (f) =>
    `'${f.path}' has an open conflict and is not written until somebody decides: type 'git durable conflicts ${f.conflict}'`,
  'path-outside': (f) => `'${f.path}' is outside the work tree; name a path inside it`,
  'path-refused': (f) => `'${f.path}' cannot be used (${f.why}); name another path`,
  'stage-revoked': (f) =>
    `the staging directory of epoch ${String(f.epoch)} was taken away by a new holder; stop, and type 'git durable status'`,
  'transaction-failed': (f) =>
    `transaction ${f.transaction} failed at '${f.path}' (${f.detail}) and is ${f.state}; ${f.state === 'rolled-back' ? 'every file is as it was: mend that and type the same again' : "type 'git durable recover'"}`,
  'checkpoint-incomplete': (f) =>
    `no checkpoint was taken (${f.detail}); mend that and type 'git durable checkpoint'`,
  'approval-settled': (f) =>
    `approval ${f.approval} is already ${f.decision}, by ${f.by} at ${f.at}; ${f.used === null ? '' : `it was used by ${f.used.by} at ${f.used.at}; `}type 'git durable approvals'`,
  'conflict-settled': (f) =>
    `conflict ${f.conflict} is already settled (${f.choice}), by ${f.by} at ${f.at}; type 'git durable conflicts'`,
  'inside-turn': (f) =>
    `'${f.verb}' is refused inside a turn: an agent cannot decide for the person; type it in a terminal of yours`,
  'not-found': (f) =>
    `no ${f.id === '' ? f.what : `${f.what} '${f.id}'`}; type '${listingOf(f.what)}' to see what there is`,
  ambiguous: (f) => `'${f.id}' names more than one ${f.what}: ${f.candidates.join(', ')}; give more of it`,
  usage: (f) => f.detail,
};

/** What is wrong, for a sentence that says itself what to type: without the advice that the error's own sentence ends with. */
export function factOf(error: DurableError): string {
  if (hasCode(error, 'object-damaged')) return `object ${error.fields.oid}: ${error.fields.detail}`;
  if (hasCode(error, 'ref-damaged')) return `'${error.fields.ref}': ${error.fields.detail}`;
  return hasCode(error, 'event-invalid') ? error.fields.detail : error.message;
}

const LISTINGS: Readonly<Record<string, string>> = {
  approval: 'git durable approvals',
  checkpoint: 'git durable checkpoints',
  conflict: 'git durable conflicts',
  'interrupted turn': 'git durable recover',
  'interrupted turn in this work tree': 'git durable status',
};

/** What lists the things of a kind. */
function listingOf(what: string): string {
  const [, checkpoint] = /^path in checkpoint (\w+)$/.exec(what) ?? [];
  if (checkpoint !== undefined) return `git ls-tree -r --name-only ${checkpoint}:worktree`;
  return LISTINGS[what] ?? 'git durable log';
}

function sentence<C extends ErrorCode>(code: C, fields: ErrorFields[C]): string {
  return SENTENCES[code](fields);
}
