/**
 * Approvals: asked for, answered and used, rejected and given back, expired. The call that an approval lets run adds a line to
 * a file; cut anywhere, the next run asks for the same, and the line is there once for each answer that was used.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasCode } from '../../lib/errors.js';
import { openRepository, type Repository } from '../../lib/repository.js';
import { asUser } from './as-user.js';
import { afterwards } from './aftermath.js';
import { Judge, type JudgedEvent } from './ledger-judge.js';
import type { After, Run, Scenario } from './scenarios.js';

const TASK = 'decided';
const FEEDBACK = 'no:\n\tuse the other one \u{1f64f}\u0000\n';
const call = (args: string) => ({ tool: 'deploy', args, mutates: false }) as const;
const EFFECTS = 'effects';

export const decisions: Scenario = {
  prepare: () => Promise.resolve(),

  only: /^(?:object|ticket|ref|claim|ledger|journal)\./,
  every: /^ref\.move:rename:after/,

  run: async ({ dir, host, say }: Run) => {
    const repository = await openRepository(dir, host);
    const turn = await repository.startTurn({ objective: 'decide', task: TASK, keeper: false });
    say('begin decisions');
    const ask = async (args: string, expiresAt: Date | null = null): Promise<string> => {
      const { approval } = await turn.requestApproval({ ...call(args), expiresAt });
      say(`ack requested ${args} ${approval}`);
      return approval;
    };
    await repository.resolveApproval(await ask('run'), { decision: 'approved', by: 'someone' });
    say('ack approved run');
    const gated = await turn.gate(call('run'));
    if (gated.state !== 'approved') throw new Error(`the approval is ${gated.state}`);
    say('ack consumed run');
    asUser(() => {
      appendFileSync(join(dir, EFFECTS), 'ran\n');
    });
    await gated.call.end({ state: 'finished' });
    const no = { decision: 'rejected', by: 'someone', feedback: FEEDBACK } as const;
    await repository.resolveApproval(await ask('reject'), no);
    say('ack rejected reject');
    await turn.gate(call('reject'));
    say('ack consumed reject');
    const late = await ask('late', new Date(host.now().getTime()));
    await tooLate(repository, late);
    say('ack expired late');
    await ask('wait');
    await repository.close();
    say('end decisions');
  },

  examine: async ({ dir, env, host, said }: After) => {
    const judge = new Judge(dir, env);
    const findings = judge.fsck().map((line) => `fsck: ${line}`);
    const before = judge.tasks().includes(TASK) ? judge.ledger(TASK).events : [];
    findings.push(...lost(before, said), ...doubled(before));
    const used = before.filter(({ type, fields }) => type === 'approval.consumed' && fields['use'] === 'run');
    const ran = effects(dir);
    if (ran > used.length) findings.push('the call ran without its answer being used');
    const repository = await openRepository(dir, host);
    if ((await repository.recoveryReport()).interrupted.length > 0)
      await repository.recover({ action: 'keep' });
    findings.push(...(await goOn(repository, before)));
    if (effects(dir) !== ran) findings.push('looking ran the call again');
    findings.push(...doubled(judge.ledger(TASK).events), ...(await afterwards(repository, judge)));
    await repository.close();
    return findings;
  },
};

async function tooLate(repository: Repository, id: string): Promise<void> {
  try {
    await repository.resolveApproval(id, { decision: 'approved', by: 'someone' });
  } catch (error) {
    if (hasCode(error, 'approval-settled') && error.fields.state === 'expired') return;
    throw error;
  }
  throw new Error('an expired request was approved');
}

const effects = (dir: string): number =>
  existsSync(join(dir, EFFECTS)) ? readFileSync(join(dir, EFFECTS), 'utf8').split('\n').length - 1 : 0;

const idsOf = (events: readonly JudgedEvent[], type: string): string[] =>
  events.filter((event) => event.type === type).map(({ fields }) => String(fields['approval']));

/** What each acknowledgement promises of the ledger. */
const EVENT_OF: Readonly<Record<string, string>> = {
  requested: 'approval.requested',
  approved: 'approval.resolved',
  rejected: 'approval.resolved',
  expired: 'approval.resolved',
  consumed: 'approval.consumed',
};

/** Request ids by the arguments that were asked for. */
function requests(said: readonly string[]): Map<string, string> {
  const found = said.flatMap((line): [string, string][] => {
    const [, what, args = '', id = ''] = line.split(' ');
    return what === 'requested' ? [[args, id]] : [];
  });
  return new Map(found);
}

function lost(events: readonly JudgedEvent[], said: readonly string[]): string[] {
  const ids = requests(said);
  return said.flatMap((line) => {
    const [, what = '', args = ''] = line.split(' ');
    const type = EVENT_OF[what];
    if (type === undefined || idsOf(events, type).includes(ids.get(args) ?? '')) return [];
    return [`lost: ${line}`];
  });
}

/** No request has two answers or two uses, and a use is one ref move with the start, or the denial, that it stands for. */
function doubled(events: readonly JudgedEvent[]): string[] {
  const findings: string[] = [];
  for (const type of ['approval.requested', 'approval.resolved', 'approval.consumed']) {
    const ids = idsOf(events, type);
    if (new Set(ids).size !== ids.length) findings.push(`${type} is there twice for one request`);
  }
  events.forEach(({ type, fields }, at) => {
    if (type !== 'approval.consumed') return;
    const next = events[at + 1];
    const follows = fields['use'] === 'run' ? 'invocation.started' : 'invocation.finished';
    if (next?.type !== follows || next.fields['invocation'] !== fields['invocation'])
      findings.push(`${follows} does not follow the use of ${String(fields['approval'])}`);
  });
  return findings;
}

/** The next run asks for the same three: what was answered and not used counts now, what was used does not. */
async function goOn(repository: Repository, before: readonly JudgedEvent[]): Promise<string[]> {
  const findings: string[] = [];
  const turn = await repository.startTurn({ objective: 'go on', task: TASK, keeper: false });
  for (const args of ['run', 'reject', 'late', 'wait']) {
    const request = before.find(
      ({ type, fields }) => type === 'approval.requested' && fields['summary'] === args,
    );
    const id = String(request?.fields['approval']);
    const answer = before.find(
      ({ type, fields }) => type === 'approval.resolved' && fields['approval'] === id,
    );
    const isUsed = idsOf(before, 'approval.consumed').includes(id);
    const decision = answer === undefined ? 'pending' : String(answer.fields['decision']);
    const expected = isUsed || args === 'late' ? 'pending' : decision;
    const gated = await turn.gate(call(args));
    if (gated.state !== expected) findings.push(`'${args}' is ${gated.state} and not ${expected}`);
    const isAnother = isUsed || args === 'late' || request === undefined;
    if ((gated.approval !== id) !== isAnother)
      findings.push(`'${args}' is of another request than it should be`);
    if (gated.state === 'approved') await gated.call.end({ state: 'finished' });
    if (gated.state === 'rejected' && gated.feedback !== FEEDBACK) findings.push('the feedback is another');
  }
  await turn.finish({ outcome: 'completed' });
  return findings;
}
