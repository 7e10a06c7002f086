/**
 * The answer that is given while the agent is dead, and what becomes of it: after the repairs a successor asks for the very same.
 *
 * In a third of the rounds a person approves, in a third rejects, in the rest nobody answers. The successor's own record, and the
 * ledger as git shows it, say whether the answer counted once, and for the arguments that were asked for.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import * as v from 'valibot';
import type { Answers, Product } from './answers.js';
import type { Chance } from './chance.js';
import type { ActRecord } from './expectation.js';
import type { Complaints } from './judge.js';
import { CONTESTED, git, type ScratchRepository } from './scratch.js';
import { sha256 } from './tree.js';
import { FREE_PATH, REFUSAL } from './wording.js';

const told = v.variant('what', [
  v.strictObject({
    what: v.literal('asked'),
    state: v.string(),
    approval: v.string(),
    feedback: v.nullable(v.string()),
  }),
  v.strictObject({ what: v.literal('wrote'), path: v.string(), refused: v.nullable(v.string()) }),
]);

/** One thing that the successor was told by the product. */
export type Told = v.InferOutput<typeof told>;

/** 'pending': nobody answers. */
export type Decision = 'approved' | 'rejected' | 'pending';

export function chooseAnswer(chance: Chance): Decision {
  return chance.pick(['approved', 'rejected', 'pending'] as const);
}

export interface Answered {
  /** Null: no request was known. */
  readonly id: string | null;
  readonly decision: Decision;
  readonly code: number | null;
}

/** Before any repair: the turn is interrupted, and its agent dead. */
export async function answerForTheDead(
  product: Product,
  answers: Answers,
  chance: Chance,
): Promise<Answered> {
  const id = answers.approvals.document.pending[0]?.id ?? null;
  const decision = chooseAnswer(chance);
  if (id === null || decision === 'pending') return { id, decision: 'pending', code: 0 };
  const { code } = await product.answer(id, decision === 'approved' ? null : REFUSAL);
  return { id, decision, code };
}

export interface Sequel {
  readonly told: readonly Told[];
  /** What the successor said of itself when it did not end well. */
  readonly failure: string | null;
  /** Of the task, as git shows it. */
  readonly events: readonly Readonly<Record<string, unknown>>[];
  /** Bytes that an event names, by their object id, as git has them. */
  readonly bytesOf: (oid: string) => Buffer;
  readonly open: Answers['conflicts'];
}

export async function playSuccessor(
  stage: { readonly agent: string; readonly repository: ScratchRepository },
  product: Product,
  task: string,
): Promise<Sequel> {
  const { repository } = stage;
  const record = join(repository.top, 'sequel');
  const program = join(dirname(stage.agent), 'successor-entry.js');
  const ran = spawnSync(process.execPath, [program, repository.dir, record, task], {
    cwd: repository.dir,
    env: repository.env,
    encoding: 'utf8',
  });
  const failure = ran.status === 0 ? null : `it ended with ${String(ran.status)}: ${ran.stderr}`;
  const lines = failure === null ? readFileSync(record, 'utf8').trimEnd().split('\n') : [];
  const messages = git(repository, 'log', '--reverse', '--format=%B', `refs/durable/tasks/${task}`);
  return {
    told: lines.map((line) => v.parse(told, JSON.parse(line))),
    failure,
    events: eventLines(messages.toString('utf8')),
    bytesOf: (oid) => git(repository, 'cat-file', 'blob', oid),
    open: await product.conflicts(),
  };
}

function eventLines(messages: string): Sequel['events'] {
  const lines = messages.split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => v.parse(v.record(v.string(), v.unknown()), JSON.parse(line)));
}

/** The answer counted for the first who asked, and for nobody after. */
export function answerHonoured(acts: readonly ActRecord[], answered: Answered, sequel: Sequel): Complaints {
  if (sequel.failure !== null) return [`the successor failed: ${sequel.failure}`];
  const [first, second] = sequel.told.filter((one) => one.what === 'asked');
  if (first === undefined || second === undefined) return ['the successor did not ask'];
  const { id, decision, code } = answered;
  const complaints: string[] = [];
  if (code !== 0) complaints.push(`the answer ended with ${String(code)}`);
  if (first.state !== decision) complaints.push(`asked again it is ${first.state}, and it was ${decision}`);
  if (id !== null && first.approval !== id) complaints.push(`asked again it is ${first.approval}, not ${id}`);
  if (decision === 'rejected' && first.feedback !== REFUSAL)
    complaints.push(`the feedback comes back as ${JSON.stringify(first.feedback)}`);
  if (second.state !== 'pending') complaints.push(`the answer counted twice: ${second.state}`);
  if ((second.approval === first.approval) !== (decision === 'pending'))
    complaints.push(`asked a second time it is ${second.approval}`);
  return decision === 'pending' ? complaints : [...complaints, ...wrongUse(acts, first.approval, sequel)];
}

/** One use, by a call with the arguments that the dead agent had asked for, byte for byte. */
function wrongUse(acts: readonly ActRecord[], approval: string, { events, bytesOf }: Sequel): string[] {
  const asked = acts.find((act) => act.kind === 'approval')?.facts.args ?? '';
  const of = (type: string, field: string, value: unknown) =>
    events.filter((event) => event['type'] === type && event[field] === value);
  const uses = of('approval.consumed', 'approval', approval);
  if (uses.length !== 1) return [`the answer is used ${String(uses.length)} times`];
  const complaints: string[] = [];
  const call = of('invocation.proposed', 'invocation', uses[0]?.['invocation']).at(-1);
  if (call?.['argsDigest'] !== sha256(Buffer.from(asked)))
    complaints.push('the call that was let run has other arguments than were asked for');
  const [request] = of('approval.requested', 'approval', approval);
  const kept = v.safeParse(v.object({ oid: v.string() }), request?.['args']);
  if (!kept.success || bytesOf(kept.output.oid).toString('utf8') !== asked)
    complaints.push('the arguments that are kept are others than were asked for');
  return complaints;
}

/** The conflict outlives the repairs and the successor, and stops nobody but who writes its path. */
export function conflictHeld(answers: Answers, sequel: Sequel): Complaints {
  if (sequel.failure !== null) return [];
  const ids = ({ document }: Answers['conflicts']): string => document.open.map(({ id }) => id).join(', ');
  const complaints: string[] = [];
  if (ids(sequel.open) !== ids(answers.conflicts))
    complaints.push(`open afterwards are [${ids(sequel.open)}], and were [${ids(answers.conflicts)}]`);
  const isOpen = answers.conflicts.document.open.length > 0;
  for (const one of sequel.told) {
    if (one.what !== 'wrote') continue;
    const right = one.path === CONTESTED.path && isOpen ? 'conflict-open' : null;
    if (one.refused !== right)
      complaints.push(
        `a write of '${one.path}' is ${one.refused ?? 'let through'}, and not ${right ?? 'let through'}`,
      );
  }
  if (!sequel.told.some((one) => one.what === 'wrote' && one.path === FREE_PATH))
    complaints.push('the successor wrote nothing');
  return complaints;
}
