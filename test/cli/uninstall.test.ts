import test from 'ava';
import { interruptedRun } from '../helpers/interrupted-run.js';
import { durable } from '../helpers/program.js';
import { scratch } from '../helpers/scratch.js';

test('uninstall --purge is refused with 3 in every work tree while a turn of any waits for recovery, names it, and takes it only when told so', async (t) => {
  const place = scratch(t);
  place.git('worktree', 'add', '-q', '../linked');
  await interruptedRun(t, place, 'echo changed > README');
  const refs = place.git('for-each-ref', 'refs/durable');
  for (const dir of ['.', '../linked']) {
    const refused = durable(place, ['-C', dir, 'uninstall', '--purge']);
    t.is(refused.code, 3, dir);
    t.regex(
      refused.stderr,
      /^git-durable: turn \S+ of task \S+ was interrupted \(.*\); type 'git durable recover'\n$/,
    );
    t.is(place.git('for-each-ref', 'refs/durable'), refs);
  }
  t.is(durable(place, ['uninstall', '--purge', '--interrupted']).code, 0);
  t.is(place.git('for-each-ref', 'refs/durable'), '');
});
