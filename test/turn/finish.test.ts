/** A turn whose end was refused is open still: nothing about an end that failed may keep a work tree from its next turn. */
import test from 'ava';
import { openRepository, systemHost, type Repository, type Turn } from '../../lib/index.js';
import { events, last } from '../helpers/events.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const open = (place: Scratch): Promise<Repository> =>
  openRepository(place.dir, { ...systemHost(), env: place.env });

/** What an untyped caller may give. */
const CLAIMS: readonly (readonly [claim: unknown, code: string])[] = [
  [{ changed: ['/somewhere/else'] }, 'path-outside'],
  [{ changed: ['../x'] }, 'path-outside'],
  [{ changed: 'src' }, 'usage'],
  [{ changed: [1] }, 'usage'],
  [{ other: 1 }, 'usage'],
  [null, 'usage'],
];
const ended = (claim: unknown): Parameters<Turn['finish']>[0] =>
  ({ outcome: 'completed', claim }) as Parameters<Turn['finish']>[0];

test('a claim that cannot be kept is refused, and the turn can be ended with another one', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  const turn = await repository.startTurn({ objective: 'claim', keeper: false });
  for (const [claim, code] of CLAIMS) await t.throwsAsync(turn.finish(ended(claim)), { code }, code);
  await turn.finish(ended({ changed: [] }));
  await t.throwsAsync(turn.finish(ended({ changed: [] })), { code: 'turn-closed' });
  t.is(last(events(place), 'turn.finished')?.['outcome'], 'completed');
  const next = await repository.startTurn({ objective: 'next', keeper: false });
  await next.finish({ outcome: 'completed' });
  await repository.close();
});

test('a function that concludes with such a claim is told so where it does, and the work tree is free afterwards', async (t) => {
  const place = scratch(t);
  const repository = await open(place);
  for (const [index, [claim, code]] of CLAIMS.entries()) {
    const key = `claims ${String(index)}`;
    const ran = repository.turn({ objective: 'claim', key, keeper: false }, (turn) => {
      turn.conclude({ claim } as Parameters<Turn['conclude']>[0]);
      return Promise.resolve();
    });
    await t.throwsAsync(ran, { code }, code);
    t.is(last(events(place), 'turn.finished')?.['outcome'], 'failed');
  }
  const next = await repository.startTurn({ objective: 'next', keeper: false });
  await next.finish({ outcome: 'completed' });
  await repository.close();
});
