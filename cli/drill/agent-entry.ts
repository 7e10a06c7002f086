/**
 * The scripted agent: a program of its own that works through the public library and is killed in the middle of it.
 *
 * `node agent-entry.js <work tree> <record file> <seed>`; after each line of the record it writes one byte to standard
 * output, so that the drill can choose its moment. It never ends by itself: with its script done it waits for the kill.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { hasCode, openRepository, type Change, type Turn } from '../../lib/index.js';
import { Chance } from './chance.js';
import { find } from './processes.js';
import { Recorder, type Intention, type Line, type Phase } from './record.js';
import { CONTESTED, FORMATTED_FILE, MIXED, OLD_SYMBOL } from './scratch.js';
import { PIECES, writeScript, type Act } from './script.js';
import { sha256 } from './tree.js';
import {
  APPROVAL,
  background,
  backgroundCommand,
  DECLARED_OUTPUT,
  DENIED,
  newSymbol,
  OBJECTIVE,
  SHELL_SCRIPT,
  summaryOf,
} from './wording.js';

/** Long enough for a kill to find the command between its halves. */
const SHELL_PAUSE_MS = 30;

/** What a second edit puts at the head of a file. */
const HEADER = Buffer.from('// reviewed\n');

interface Work {
  readonly dir: string;
  readonly seed: string;
  readonly recorder: Recorder;
  readonly turn: Turn;
}

interface Step extends Work {
  readonly at: number;
  readonly act: Act;
}

async function main(dir: string, recordFile: string, seed: string): Promise<void> {
  const recorder = new Recorder(recordFile, () => {
    writeSync(1, '.');
  });
  const script = writeScript(new Chance(seed).split('script'));
  const turn = await startTurn(dir, recorder, seed);
  for (const [at, act] of script.entries()) await perform({ dir, seed, recorder, turn, at, act });
  setInterval(() => undefined, 60_000);
}

async function startTurn(dir: string, recorder: Recorder, seed: string): Promise<Turn> {
  const line = { act: 0, kind: 'turn', detail: OBJECTIVE };
  recorder.add({ ...line, phase: 'before' });
  const repository = await openRepository(dir);
  const turn = await repository.startTurn({
    objective: OBJECTIVE,
    key: seed,
    agent: 'scripted',
    session: seed,
    keeper: true,
  });
  recorder.add({
    ...line,
    phase: 'after',
    facts: { turn: turn.id, task: turn.task },
  });
  return turn;
}

async function perform(step: Step): Promise<void> {
  const { act } = step;
  if (act.kind === 'transaction') return runTransaction(step, act.paths);
  if (act.kind === 'delete') return deleteFile(step, act.path);
  if (act.kind === 'rewrite' || act.kind === 'again') return rewriteFile(step, act.path, act.style);
  if (act.kind === 'create') return createFile(step, act.path);
  if (act.kind === 'turn') return;
  await ACTS[act.kind](step);
}

const ACTS = {
  approval: askApproval,
  conflict: meetConflict,
  background: startBackground,
  failed: failCall,
  denied: denyCall,
  mixed: changeNames,
  shell: (step: Step) => runShell(step, undefined),
  'declared-shell': (step: Step) => runShell(step, DECLARED_OUTPUT),
} as const;

async function askApproval(step: Step): Promise<void> {
  const asked = { ...APPROVAL, cwd: join(step.dir, 'src') };
  const facts = {
    tool: asked.tool,
    args: JSON.stringify(asked.args),
    cwd: asked.cwd,
  };
  note(step, 'before', { facts });
  const { approval, fingerprint } = await step.turn.requestApproval({
    ...asked,
    summary: summaryOf(step.at, step.act),
  });
  note(step, 'after', { facts: { ...facts, approval, fingerprint } });
}

/** Read, changed by somebody else, and then to be written: the product has to refuse that, and to keep both sides. */
async function meetConflict(step: Step): Promise<void> {
  const { path, theirs, mine } = CONTESTED;
  step.turn.read(path);
  note(step, 'before');
  writeFileSync(join(step.dir, path), theirs);
  try {
    await step.turn.transaction([{ kind: 'write', path, bytes: Buffer.from(mine) }]);
  } catch (error) {
    if (!hasCode(error, 'conflict') || error.fields.conflict === null) throw error;
    note(step, 'after', { facts: { conflict: error.fields.conflict } });
    return;
  }
  throw new Error('a write over what somebody else had changed was not refused');
}

async function startBackground(step: Step): Promise<void> {
  note(step, 'before');
  const { program, args } = background(step.seed);
  const child = spawn(program, args, {
    cwd: step.dir,
    detached: true,
    stdio: 'ignore',
    env: { ...process.env, ...step.turn.environment() },
  });
  const pid = child.pid ?? 0;
  const start = find(pid)?.start ?? '';
  note(step, 'entered', { facts: { pid, start } });
  await step.turn.spawned({ pid, start, command: backgroundCommand(step.seed) }, { background: true });
  note(step, 'after', { facts: { pid, start } });
}

async function failCall(step: Step): Promise<void> {
  note(step, 'before');
  try {
    await step.turn.invoke(
      {
        tool: 'shell',
        args: { command: 'npm test' },
        mutates: false,
        summary: summaryOf(step.at, step.act),
      },
      () => {
        note(step, 'entered');
        throw new Error('3 tests failed');
      },
    );
  } catch (error) {
    if (!(error instanceof Error && error.message === '3 tests failed')) throw error;
  }
  note(step, 'after');
}

async function denyCall(step: Step): Promise<void> {
  note(step, 'before');
  await step.turn.deny(
    {
      tool: 'write',
      args: { path: DENIED.path, content: DENIED.content },
      paths: [{ path: DENIED.path, expected: Buffer.from(DENIED.content) }],
      summary: summaryOf(step.at, step.act),
    },
    'this file belongs to its owners',
  );
  note(step, 'after');
}

async function runTransaction(step: Step, paths: readonly string[]): Promise<void> {
  const intentions: Intention[] = [];
  const changes: Change[] = [];
  for (const path of paths) {
    const read = step.turn.read(path);
    if (read === null) throw new Error(`no file ${path}`);
    const bytes = renamed(step, read.bytes);
    intentions.push(intend(step, path, bytes));
    changes.push({ kind: 'write', path, bytes, expected: read.revision });
  }
  note(step, 'before', { paths: intentions });
  await step.turn.transaction(changes);
  note(step, 'after');
}

/** A rename, a mode and a link, all or nothing. */
async function changeNames(step: Step): Promise<void> {
  const { from, to, script, link, target } = MIXED;
  const moved = readFileSync(join(step.dir, from));
  const same = readFileSync(join(step.dir, script));
  note(step, 'before', {
    paths: [
      intend(step, from, null),
      intend(step, to, moved),
      { ...intend(step, script, same), mode: '100755' },
      { ...intend(step, link, Buffer.from(target)), mode: '120000' },
    ],
  });
  await step.turn.transaction([
    { kind: 'rename', from, to },
    { kind: 'chmod', path: script, executable: true },
    { kind: 'symlink', path: link, target },
  ]);
  note(step, 'after');
}

async function deleteFile(step: Step, path: string): Promise<void> {
  note(step, 'before', { paths: [intend(step, path, null)] });
  await step.turn.transaction([{ kind: 'delete', path }]);
  note(step, 'after');
}

async function rewriteFile(step: Step, path: string, style: 'over' | 'truncated'): Promise<void> {
  const before = readFileSync(join(step.dir, path));
  const after = step.act.kind === 'again' ? Buffer.concat([HEADER, before]) : renamed(step, before);
  note(step, 'before', { paths: [intend(step, path, after)] });
  await step.turn.invoke(
    {
      tool: 'edit',
      args: { path, replace: OLD_SYMBOL, with: newSymbol(step.seed) },
      paths: [{ path, expected: after }],
      summary: summaryOf(step.at, step.act),
    },
    () => {
      note(step, 'entered');
      writeInPlace(step, path, {
        bytes: after,
        flags: style === 'over' ? 'r+' : 'w',
      });
      note(step, 'wrote');
    },
  );
  note(step, 'after');
}

async function createFile(step: Step, path: string): Promise<void> {
  const bytes = Buffer.from(`# ${newSymbol(step.seed)}\n\n${`Once it was ${OLD_SYMBOL}.\n`.repeat(60)}`);
  note(step, 'before', { paths: [intend(step, path, bytes)] });
  await step.turn.invoke(
    {
      tool: 'write',
      args: { path, content: bytes.toString('utf8') },
      paths: [{ path, expected: bytes }],
      summary: summaryOf(step.at, step.act),
    },
    () => {
      note(step, 'entered');
      mkdirSync(dirname(join(step.dir, path)), { recursive: true });
      writeInPlace(step, path, { bytes, flags: 'wx' });
      note(step, 'wrote');
    },
  );
  note(step, 'after');
}

/** As editors and agents do it: the old file's own bytes are replaced, a little at a time. */
function writeInPlace(step: Step, path: string, content: { bytes: Buffer; flags: string }): void {
  const { bytes, flags } = content;
  const fd = openSync(join(step.dir, path), flags);
  const size = Math.ceil(bytes.length / PIECES);
  for (let start = 0; start < bytes.length; start += size) {
    writeSync(fd, bytes, start, Math.min(size, bytes.length - start), start);
    note(step, 'piece');
  }
  ftruncateSync(fd, bytes.length);
  closeSync(fd);
}

/** A command of two halves that waits for the agent in between: when the agent dies, it ends after the first. */
async function runShell(step: Step, declared: string | undefined): Promise<void> {
  const path = declared ?? FORMATTED_FILE;
  note(step, 'before', { paths: [intend(step, path, 'unknown')] });
  await step.turn.invoke(
    {
      tool: 'shell',
      args: { command: SHELL_SCRIPT, path },
      ...(declared === undefined ? { mutates: true } : { paths: [{ path, expected: 'unknown' as const }] }),
      summary: summaryOf(step.at, step.act),
    },
    async () => {
      note(step, 'entered');
      const child = spawn('sh', ['-c', SHELL_SCRIPT, 'sh', path], {
        cwd: step.dir,
        stdio: ['pipe', 'pipe', 'inherit'],
        env: { ...process.env, ...step.turn.environment() },
      });
      const closed = once(child, 'close');
      await once(child.stdout, 'data');
      note(step, 'piece');
      await pause(SHELL_PAUSE_MS);
      child.stdin.end('go\n');
      await closed;
      note(step, 'wrote');
    },
  );
  note(step, 'after');
}

/** As bytes: a file need not be UTF-8. */
function renamed(step: Step, bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString('latin1').replaceAll(OLD_SYMBOL, newSymbol(step.seed)), 'latin1');
}

function intend(step: Step, path: string, after: Buffer | null | 'unknown'): Intention {
  const file = join(step.dir, path);
  const stat = lstatSync(file, { throwIfNoEntry: false });
  return {
    path,
    before: stat === undefined ? null : sha256(readFileSync(file)),
    after: after === 'unknown' || after === null ? after : sha256(after),
    mode: stat !== undefined && (stat.mode & 0o100) !== 0 ? '100755' : '100644',
    bytes: after instanceof Buffer ? after.toString('base64') : null,
  };
}

function note(step: Step, phase: Phase, more: Pick<Line, 'paths' | 'facts'> = {}): void {
  const detail = summaryOf(step.at, step.act);
  step.recorder.add({
    act: step.at,
    kind: step.act.kind,
    phase,
    detail,
    ...more,
  });
}

const [, , dir, recordFile, seed] = process.argv;
if (dir === undefined || recordFile === undefined || seed === undefined) {
  process.stderr.write('usage: agent-entry.js <work tree> <record file> <seed>\n');
  process.exitCode = 2;
} else {
  await main(dir, recordFile, seed);
}
