/** What a call's events name is written beside them, and is on disk before their ref moves. */
import test from 'ava';
import { openRepository, systemHost } from '../../lib/index.js';
import { durable } from '../helpers/program.js';
import { scratch } from '../helpers/scratch.js';

/** Hit first by what the events name: their own objects and ref come after it. */
const POINTS = ['object.temp:write:before', 'ref.value:write:before', 'ref.move:rename:before'];

for (const point of POINTS) {
  test(`a call whose contents find no space at ${point} is not on record, nor is its end; the next try is, and whole`, async (t) => {
    const place = scratch(t);
    const disk = { isFull: false };
    const hit = (at: string): void => {
      if (!disk.isFull || at !== point) return;
      disk.isFull = false;
      throw Object.assign(new Error('full'), { code: 'ENOSPC' });
    };
    const repository = await openRepository(place.dir, { ...systemHost({ hit }), env: place.env });
    const turn = await repository.startTurn({ objective: 'write', task: 'full', keeper: false });
    const head = (): string => place.git('rev-parse', 'refs/durable/tasks/full');
    const isRefused = async (act: () => Promise<unknown>): Promise<void> => {
      const before = head();
      disk.isFull = true;
      await t.throwsAsync(act(), { code: 'out-of-space' });
      t.false(disk.isFull);
      t.is(head(), before);
    };
    const call = {
      ...{ tool: 'Write', args: { file: 'new' }, key: 'one' },
      paths: [{ path: 'new', expected: Buffer.from('new\n') }],
    };
    await isRefused(() => turn.begin(call));
    const open = await turn.begin(call);
    place.write('new', 'new\n');
    const end = { state: 'finished', result: Buffer.from('done') } as const;
    await isRefused(() => open.end(end));
    await open.end(end);
    await turn.finish({ outcome: 'completed' });
    await repository.close();
    const { code, stdout } = durable(place, ['verify', '--contents']);
    t.is(code, 0, stdout);
    t.is(place.git('fsck', '--strict', '--no-dangling'), '');
  });
}
