import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { canonicalJson } from '../../lib/canonical.js';
import { DurableError, isDurableError } from '../../lib/errors.js';
import { Ledger } from '../../lib/ledger/ledger.js';
import { forgeCommit } from '../helpers/forge.js';
import type { Scratch } from '../helpers/scratch.js';
import { anyone, newTask, observed, openRepository } from '../helpers/turn.js';

const code = (expected: string) => ({ instanceOf: DurableError, code: expected });

type Context = Parameters<typeof newTask>[0];

/** Six events; `commits[n]` is the one with number n + 1. */
async function sixEvents(t: Context) {
  const bench = await newTask(t);
  const { scratch, ledger } = bench;
  for (const what of ['b', 'c', 'd', 'e', 'f']) await ledger.append(() => [observed(what)], anyone);
  const commits = scratch.git('rev-list', '--reverse', ledger.ref).split('\n');
  const cold = async () => Ledger.open(await openRepository(t, scratch), ledger.task);
  return { ...bench, commits, cold };
}

const looseOf = (scratch: Scratch, oid: string): string =>
  join(scratch.dir, '.git/objects', oid.slice(0, 2), oid.slice(2));
const journalOf = (scratch: Scratch, oid: string): string => join(scratch.dir, '.git/durable/journal', oid);

/** Both copies, as a bad sector or a power cut leaves them. */
function spoil(scratch: Scratch, oid: string, change: (bytes: Buffer) => Buffer): void {
  const bytes = change(readFileSync(looseOf(scratch, oid)));
  for (const path of [looseOf(scratch, oid), journalOf(scratch, oid)]) {
    rmSync(path);
    writeFileSync(path, bytes);
  }
}

/** What a stream still gives, and how it ends. */
async function readable(ledger: Ledger, direction: 'forwards' | 'backwards') {
  const seqs: number[] = [];
  try {
    for await (const { event } of ledger[direction]()) seqs.push(event.seq);
    return { seqs, error: null };
  } catch (error) {
    if (!isDurableError(error)) throw error;
    return { seqs, error: error.code };
  }
}

test('a bit flipped anywhere in an event is an error of ours, never a crash and never another event', async (t) => {
  const { scratch, commits, cold } = await sixEvents(t);
  const victim = commits[3] ?? '';
  const good = readFileSync(looseOf(scratch, victim));
  for (let position = 0; position < good.length; position += Math.ceil(good.length / 24)) {
    spoil(scratch, victim, () => {
      const bytes = Buffer.from(good);
      bytes.writeUInt8(bytes.readUInt8(position) ^ (1 << (position % 8)), position);
      return bytes;
    });
    const ledger = await cold();
    const { seqs, error } = await readable(ledger, 'forwards');
    t.is(error, 'ledger-damaged', `byte ${String(position)}`);
    t.deepEqual(seqs, [1, 2, 3, 5, 6], `byte ${String(position)}`);
    const { ok, findings } = await ledger.verify();
    t.false(ok);
    t.like(findings[0], { seq: 4 });
  }
  spoil(scratch, victim, () => good);
  t.like(await (await cold()).verify(), { ok: true, events: 6 });
});

for (const keep of [0, 1, 20, 100, 0.5, 0.95]) {
  test(`a newest event torn after ${String(keep)} of its bytes: earlier events are read, the next append goes on`, async (t) => {
    const { scratch, ledger, commits, cold } = await sixEvents(t);
    const torn = commits[5] ?? '';
    spoil(scratch, torn, (bytes) => bytes.subarray(0, keep < 1 ? Math.floor(bytes.length * keep) : keep));
    const reader = await cold();
    t.deepEqual(await readable(reader, 'forwards'), { seqs: [1, 2, 3, 4, 5], error: 'ledger-damaged' });
    t.deepEqual(await readable(reader, 'backwards'), { seqs: [5, 4, 3, 2, 1], error: 'ledger-damaged' });
    await t.throwsAsync(reader.state(), code('ledger-damaged'));
    const { state, damage } = await reader.readable();
    t.is(state.head?.seq, 5);
    t.true(damage?.message.includes(torn));
    t.like(await reader.verify(), { ok: false, events: 5, findings: { 0: { seq: 6, code: 'ref-damaged' } } });
    t.is(scratch.git('rev-parse', ledger.ref), torn);

    const writer = await cold();
    const [recorded] = await writer.append(() => [observed('after the cut')], anyone);
    t.is(recorded?.event.seq, 7);
    const events = [];
    for await (const { event } of writer.forwards()) events.push(event);
    t.like(events[5], {
      type: 'git.observed',
      seq: 6,
      before: torn,
      after: commits[4] ?? '',
      ref: ledger.ref,
    });
    t.like(await writer.verify(), { ok: true, events: 7 });
    t.is(scratch.git('fsck', '--strict', '--no-dangling'), '');
    t.is(existsSync(join(scratch.dir, '.git/durable/torn', torn)), keep !== 0);
  });
}

test('a torn or lost object is put back from the journal, and nothing is found', async (t) => {
  const { scratch, commits, cold } = await sixEvents(t);
  const [, , lost = '', , , torn = ''] = commits;
  rmSync(looseOf(scratch, lost));
  const whole = readFileSync(looseOf(scratch, torn));
  rmSync(looseOf(scratch, torn));
  writeFileSync(looseOf(scratch, torn), whole.subarray(0, 60));
  const ledger = await cold();
  t.deepEqual(await readable(ledger, 'forwards'), { seqs: [1, 2, 3, 4, 5, 6], error: null });
  t.like(await ledger.verify(), { ok: true, events: 6 });
  t.is(scratch.git('fsck', '--strict', '--no-dangling'), '');
});

test('an event missing in the middle: what is before and after it is read, and it is named', async (t) => {
  const { scratch, ledger, commits, cold } = await sixEvents(t);
  const lost = commits[2] ?? '';
  for (const path of [looseOf(scratch, lost), journalOf(scratch, lost)]) rmSync(path);
  const reader = await cold();
  t.deepEqual(await readable(reader, 'forwards'), { seqs: [1, 2, 4, 5, 6], error: 'ledger-damaged' });
  const { findings, events } = await reader.verify();
  t.is(events, 2);
  t.is(findings[0]?.seq, 3);
  t.is(scratch.git('rev-parse', ledger.ref), commits[5] ?? '');
});

test('a torn newest event is left alone while another process that may have written it lives', async (t) => {
  const { scratch, ledger, commits, cold } = await sixEvents(t);
  const program = join(import.meta.dirname, '../helpers/append-child.js');
  const other = await newTaskIn(t, scratch);
  const child = spawn(process.execPath, [program, scratch.dir, other.task, 'x', '1', 'stay'], {
    env: scratch.env,
  });
  await once(child.stdout, 'data');
  const torn = commits[5] ?? '';
  spoil(scratch, torn, (bytes) => bytes.subarray(0, 50));
  const writer = await cold();
  await t.throwsAsync(
    writer.append(() => [observed('x')], anyone),
    code('ledger-damaged'),
  );
  t.is(scratch.git('rev-parse', ledger.ref), torn);
  child.kill('SIGKILL');
  await once(child, 'close');
  const [recorded] = await writer.append(() => [observed('x')], anyone);
  t.is(recorded?.event.seq, 7);
});

test('when two events could have been the one before, nothing is guessed', async (t) => {
  const { scratch, storage, ledger, commits, cold } = await sixEvents(t);
  const [, , , fourth = '', fifth = '', torn = ''] = commits;
  const message = scratch.git('log', '-1', '--format=%B', fifth).replace('e', 'E');
  await storage.refs.update({ move: { ref: ledger.ref, from: torn, to: fourth } });
  const twin = await forgeCommit(storage, ledger, { message });
  await storage.refs.update({ move: { ref: ledger.ref, from: twin, to: torn } });
  spoil(scratch, torn, () => Buffer.alloc(0));
  const writer = await cold();
  await t.throwsAsync(
    writer.append(() => [observed('x')], anyone),
    code('ledger-damaged'),
  );
  t.is(scratch.git('rev-parse', ledger.ref), torn);
});

test('an event of a newer version is named with the version it needs; nothing is appended after it', async (t) => {
  const { storage, ledger, cold, commits, scratch } = await sixEvents(t);
  const line = canonicalJson({ v: 2, type: 'turn.dreamt', seq: 7, task: ledger.task });
  const message = `turn.dreamt\n\n${line}\n\nDurable-Seq: 7\nDurable-Chain: sha256:${'0'.repeat(64)}\n`;
  const newer = await forgeCommit(storage, ledger, { message });
  const reader = await cold();
  const error = await t.throwsAsync(reader.state(), code('version-unsupported'));
  t.true(error.message.includes('version 2'));
  await t.throwsAsync(
    reader.append(() => [observed('x')], anyone),
    code('version-unsupported'),
  );
  t.is(scratch.git('rev-parse', ledger.ref), newer);
  t.like(await reader.verify(), { events: 6, findings: { 0: { seq: 7, code: 'version-unsupported' } } });
  t.is(commits.length, 6);
});

const strangers: readonly [string, (scratch: Scratch) => string][] = [
  ['a blob', (scratch) => scratch.git('hash-object', '-w', 'README')],
  ['a tree', (scratch) => scratch.git('rev-parse', 'HEAD^{tree}')],
  ['an unrelated commit', (scratch) => scratch.git('rev-parse', 'HEAD')],
  ['a tag object', (scratch) => (scratch.git('tag', '-a', '-m', 'x', 'v1'), scratch.git('rev-parse', 'v1'))],
];

for (const [what, make] of strangers) {
  test(`a ledger's ref at ${what} is an error of ours and a finding; nothing is appended and nothing moved`, async (t) => {
    const { scratch, ledger, cold } = await sixEvents(t);
    const stranger = make(scratch);
    writeFileSync(join(scratch.dir, '.git', ledger.ref), `${stranger}\n`);
    const reader = await cold();
    await t.throwsAsync(reader.state(), code('ledger-damaged'));
    t.is((await readable(reader, 'forwards')).error, 'ledger-damaged');
    t.is((await readable(reader, 'backwards')).error, 'ledger-damaged');
    const { ok, findings } = await reader.verify();
    t.false(ok);
    t.is(findings.length, 1);
    await t.throwsAsync(
      reader.append(() => [observed('x')], anyone),
      code('ledger-damaged'),
    );
    t.is(readFileSync(join(scratch.dir, '.git', ledger.ref), 'utf8'), `${stranger}\n`);
    t.false(readdirSync(join(scratch.dir, '.git/durable')).includes('torn'));
  });
}

test('a ledger of another task under this name is damage, not this task', async (t) => {
  const { scratch, cold, ledger } = await sixEvents(t);
  const other = await newTaskIn(t, scratch);
  writeFileSync(join(scratch.dir, '.git', ledger.ref), `${scratch.git('rev-parse', other.ref)}\n`);
  const reader = await cold();
  await t.throwsAsync(reader.state(), code('ledger-damaged'));
  t.like(await reader.verify(), { ok: false, findings: { 0: { seq: 1, code: 'other-task' } } });
});

async function newTaskIn(t: Context, scratch: Scratch): Promise<Ledger> {
  const other = Ledger.open(await openRepository(t, scratch), 'other');
  await other.append(() => [{ type: 'task.opened', objective: 'Other', standing: false }], anyone);
  return other;
}
