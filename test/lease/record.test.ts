import test, { type ExecutionContext } from 'ava';
import { acquire } from '../../lib/lease/acquire.js';
import { Held } from '../../lib/lease/hold.js';
import { isToken, readLease, tokenOf, tokenOid, type LeaseRecord } from '../../lib/lease/record.js';
import type { Storage } from '../../lib/git/storage.js';
import { at } from '../helpers/json.js';
import { openAs, TURN } from '../helpers/lease-place.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

async function holding(t: ExecutionContext): Promise<{ place: Scratch; storage: Storage; held: Held }> {
  const place = scratch(t);
  const storage = await openAs(t, place);
  return { place, storage, held: await acquire(storage, TURN) };
}

const others: readonly (readonly [string, (record: LeaseRecord) => LeaseRecord])[] = [
  ['a free record', (record) => ({ ...record, state: 'free' })],
  ['another epoch', (record) => ({ ...record, epoch: record.epoch + 1 })],
  ['another acquisition', (record) => ({ ...record, acquisition: 'another' })],
  ['another runtime', (record) => ({ ...record, holder: { ...record.holder, runtime: 'another' } })],
];

test('a token names one acquisition of one runtime at one epoch, while it is held; a renewal keeps it', async (t) => {
  const { held } = await holding(t);
  const { record } = held;
  const token = tokenOf(record);
  t.true(isToken({ ...record, nonce: 'another', renewedAt: '2031-01-01T00:00:00.000Z' }, token));
  for (const [title, change] of others) t.false(isToken(change(record), token), title);
});

test('a token is checked against the ref as it is now, not as it was read', async (t) => {
  const { place, storage, held } = await holding(t);
  const other = await openAs(t, place);
  const first = await tokenOid(storage, held.token);
  const { oid } = await (await Held.attach(other, held.token)).renew();
  t.not(oid, first);
  t.is(await tokenOid(storage, held.token), oid);
  await held.release();
  t.is(at(await t.throwsAsync(tokenOid(other, held.token)), 'code'), 'lease-lost');
});

/** Puts a commit with this message where the lease is. */
function plant(place: Scratch, ref: string, message: string): void {
  const tree = place.git('hash-object', '-t', 'tree', '/dev/null');
  place.git('update-ref', ref, place.git('commit-tree', '-m', message, tree));
}

test('a record of a newer version is refused with the version it needs, before anything in it is decoded', async (t) => {
  const { place, held } = await holding(t);
  plant(place, held.token.ref, 'lease held\n\n{"v":7,"whatever":true}');
  const error = await t.throwsAsync(readLease(await openAs(t, place), held.token.lease));
  t.is(at(error, 'code'), 'version-unsupported');
  t.is(at(error, 'fields', 'found'), 7);
});

test('what is no lease record is named as damage, and nobody takes the lease over it', async (t) => {
  const { place, held } = await holding(t);
  for (const message of ['hello', 'hello\n\n{"v":1}', 'hello\n\n[1]', 'hello\n\n{"v":1,']) {
    plant(place, held.token.ref, message);
    t.is(at(await t.throwsAsync(acquire(await openAs(t, place), TURN)), 'code'), 'object-damaged', message);
  }
});

test('a lease ref that points at a blob, or at nothing, is an error that names it', async (t) => {
  const { place, held } = await holding(t);
  place.git('update-ref', held.token.ref, place.git('hash-object', '-w', 'README'));
  t.is(at(await t.throwsAsync(acquire(await openAs(t, place), TURN)), 'code'), 'object-damaged');
  place.write(`.git/${held.token.ref}`, `${'1'.repeat(40)}\n`);
  t.is(at(await t.throwsAsync(acquire(await openAs(t, place), TURN)), 'code'), 'object-missing');
});

test('a TTL of nothing becomes the shortest one that a keeper can keep', async (t) => {
  const place = scratch(t);
  place.git('config', 'durable.ttl', '0');
  const storage = await openAs(t, place);
  const held = await acquire(storage, TURN);
  t.is((await readLease(await openAs(t, place), held.token.lease))?.record.ttlMs, 1000);
});

test('a lease works the same in a repository of the SHA-256 format', async (t) => {
  const place = scratch(t, { objectFormat: 'sha256' });
  const held = await acquire(await openAs(t, place), TURN);
  await held.renew();
  await held.release();
  t.is(place.git('rev-parse', held.token.ref).length, 64);
  t.is(place.run('git', ['fsck', '--strict', '--no-dangling']).code, 0);
});
