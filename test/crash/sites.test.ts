/** Every reason to change the disk is one that some scenario is killed at: a new site without one fails here. */
import { rmSync } from 'node:fs';
import { execPath } from 'node:process';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { SITES } from '../../lib/git/fault.js';
import { fastDisk } from '../helpers/fast-disk.js';
import { SCENARIOS } from '../helpers/scenarios.js';
import { scratch } from '../helpers/scratch.js';

const WORKLOAD = fileURLToPath(new URL('../helpers/workload.js', import.meta.url));

test('the scenarios together reach every site, and no other', (t) => {
  const reached = new Set<string>();
  for (const [name, { aside, only }] of Object.entries(SCENARIOS)) {
    const { dir, run } = scratch(t, { parent: fastDisk() });
    if (aside !== undefined)
      t.teardown(() => {
        rmSync(aside(dir), { recursive: true, force: true });
      });
    for (const stage of ['prepare', 'list']) {
      const ran = run(execPath, [WORKLOAD, name, stage, dir]);
      t.is(ran.code, 0, `${name} ${stage}: ${ran.stderr}`);
      for (const [, site = ''] of ran.stderr.matchAll(/^point ([^:]+):/gm))
        if ((only ?? /./).test(site + '.')) reached.add(site);
    }
  }
  t.deepEqual([...reached].sort(), [...SITES].sort());
});
