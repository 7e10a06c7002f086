/**
 * Conflicts: three paths that somebody changed after they were read. Each write is refused and recorded; then one is decided by
 * use-latest, one by keep-mine, and the third stays open.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasCode } from '../../lib/errors.js';
import { openRepository, type Repository } from '../../lib/repository.js';
import { asUser } from './as-user.js';
import { afterwards } from './aftermath.js';
import { Judge, type JudgedEvent } from './ledger-judge.js';
import type { After, Run, Scenario } from './scenarios.js';

const TASK = 'met';
const PATHS = ['latest', 'mine', 'open'] as const;

export const conflicts: Scenario = {
  prepare: ({ dir }) => {
    for (const path of PATHS) writeFileSync(join(dir, path), 'base\n');
    return Promise.resolve();
  },

  only: /./,
  every: /^(?:ref\.move|stage\.publish):rename:after/,

  run: async ({ dir, host, say }: Run) => {
    const repository = await openRepository(dir, host);
    const turn = await repository.startTurn({ objective: 'edit', task: TASK, keeper: false });
    say('begin conflicts');
    for (const path of PATHS) {
      turn.read(path);
      asUser(() => {
        writeFileSync(join(dir, path), 'theirs\n');
      });
      await refused(turn.transaction([{ kind: 'write', path, bytes: Buffer.from('mine\n') }]), 'conflict');
      say(`ack met ${path}`);
    }
    await turn.finish({ outcome: 'completed' });
    say('ack finished');
    for (const [path, choice] of [
      ['latest', 'use-latest'],
      ['mine', 'keep-mine'],
    ] as const) {
      await repository.resolveConflict(await idOf(repository, path), { choice, by: 'someone' });
      say(`ack settled ${path}`);
    }
    await repository.close();
    say('end conflicts');
  },

  examine: async ({ dir, env, host, said }: After) => {
    const judge = new Judge(dir, env);
    const findings = judge.fsck().map((line) => `fsck: ${line}`);
    const before = judge.tasks().includes(TASK) ? judge.ledger(TASK).events : [];
    findings.push(...lost(before, said), ...bytes(dir, before, said));
    const repository = await openRepository(dir, host);
    const { interrupted } = await repository.recoveryReport();
    const isCut = before.some(
      ({ type, fields }) => type === 'conflict.resolved' && fields['choice'] === 'keep-mine',
    );
    const action = said.length % 2 === 0 ? 'roll-back' : 'roll-forward';
    if (interrupted.length > 0) {
      await repository.recover({ action: isCut ? action : 'keep' });
      if (isCut) findings.push(...(await afterTheCut(dir, repository, action)));
    }
    findings.push(...(await blocked(repository)));
    for (const { conflict, isOpen } of await repository.conflicts())
      if (isOpen) await repository.resolveConflict(conflict.id, { choice: 'use-latest', by: 'someone' });
    if ((await repository.status()).conflicts > 0) findings.push('a conflict that was decided is open');
    findings.push(...(await afterwards(repository, judge)));
    await repository.close();
    return findings;
  },
};

async function refused(write: Promise<unknown>, code: 'conflict' | 'conflict-open'): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (hasCode(error, code)) return;
    throw error;
  }
  throw new Error('a write over a conflict was not refused');
}

async function idOf(repository: Repository, path: string): Promise<string> {
  const listed = await repository.conflicts();
  return listed.find(({ conflict }) => conflict.detected.event.path === path)?.conflict.id ?? '';
}

const met = (events: readonly JudgedEvent[], path: string): JudgedEvent[] =>
  events.filter(({ type, fields }) => type === 'conflict.detected' && fields['path'] === path);

const answersTo = (events: readonly JudgedEvent[], path: string): JudgedEvent[] => {
  const ids = met(events, path).map(({ fields }) => fields['conflict']);
  return events.filter(
    ({ type, fields }) => type === 'conflict.resolved' && ids.includes(fields['conflict']),
  );
};

/** Acknowledged and not there, or there twice. */
function lost(events: readonly JudgedEvent[], said: readonly string[]): string[] {
  const findings: string[] = [];
  for (const path of PATHS) {
    const [detected, answers] = [met(events, path).length, answersTo(events, path).length];
    if (detected > 1 || answers > 1) findings.push(`${path} is met or decided twice`);
    if (said.includes(`ack met ${path}`) && detected === 0) findings.push(`the conflict at ${path} is lost`);
    if (said.includes(`ack settled ${path}`) && answers === 0) findings.push(`the answer to ${path} is lost`);
  }
  return findings;
}

/** A path is theirs until keep-mine is recorded, and mine once it is acknowledged. */
function bytes(dir: string, events: readonly JudgedEvent[], said: readonly string[]): string[] {
  return PATHS.flatMap((path) => {
    const now = readFileSync(join(dir, path), 'utf8');
    const mayBeBase = !said.includes(`ack met ${path}`);
    const isDecided = path === 'mine' && answersTo(events, path).length > 0;
    const allowed = said.includes(`ack settled mine`) && path === 'mine' ? ['mine\n'] : ['theirs\n'];
    if (mayBeBase) allowed.push('base\n');
    if (isDecided) allowed.push('mine\n');
    return allowed.includes(now) ? [] : [`${path} holds ${now}`];
  });
}

/** Rolled forward the conflict is decided and mine is there; rolled back it is open and theirs is there. */
async function afterTheCut(
  dir: string,
  repository: Repository,
  action: 'roll-back' | 'roll-forward',
): Promise<string[]> {
  const id = await idOf(repository, 'mine');
  const isOpen = (await repository.conflicts()).find(({ conflict }) => conflict.id === id)?.isOpen;
  const now = readFileSync(join(dir, 'mine'), 'utf8');
  const expected = action === 'roll-forward' ? [false, 'mine\n'] : [true, 'theirs\n'];
  return isOpen === expected[0] && now === expected[1]
    ? []
    : [`after ${action} the conflict is ${isOpen === true ? 'open' : 'decided'}, and the path holds ${now}`];
}

/** An open conflict blocks its path, and no other. */
async function blocked(repository: Repository): Promise<string[]> {
  const findings: string[] = [];
  const open = (await repository.conflicts()).filter(({ isOpen }) => isOpen);
  const places = new Set(open.map(({ conflict }) => conflict.detected.event.path));
  const turn = await repository.startTurn({ objective: 'write', task: 'writes', keeper: false });
  for (const path of [...PATHS, 'other']) {
    const write = turn.transaction([{ kind: 'write', path, bytes: Buffer.from(`written over ${path}\n`) }]);
    try {
      await (places.has(path) ? refused(write, 'conflict-open') : write);
    } catch (error) {
      findings.push(`${path}: ${String(error)}`);
    }
  }
  await turn.finish({ outcome: 'completed' });
  return findings;
}
