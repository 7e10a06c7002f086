import { chmodSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { processesNaming, stateOf, until } from '../../helpers/processes.js';
import { startDurable } from '../../helpers/program.js';
import { scratch } from '../../helpers/scratch.js';

/** In place of an agent: it says its pid, and asks the model for nothing. */
const SILENT = '#!/bin/sh\necho $$ > "$HOME/said"; exec sleep 9999\n';

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  test.serial(
    `a drill ended by ${signal} ends its agent and its model first, and leaves no folder`,
    async (t) => {
      const place = scratch(t, { repository: false });
      place.write('../programs/codex', SILENT);
      chmodSync(join(place.top, 'programs/codex'), 0o755);
      const temporary = join(place.top, 'tmp');
      mkdirSync(temporary);
      const path = `${join(place.top, 'programs')}:${process.env['PATH'] ?? ''}`;
      const drill = startDurable(t, place, ['drill', '--agent', 'codex', '--rounds', '1'], {
        env: { PATH: path, TMPDIR: temporary },
      });
      let agent = 0;
      await until('an agent that is started', () => {
        const said = readdirSync(temporary, { recursive: true, encoding: 'utf8' }).find((path) =>
          /\/said$/.test(path),
        );
        agent = said === undefined ? 0 : Number.parseInt(readFileSync(join(temporary, said), 'utf8'), 10);
        return agent > 0;
      });
      t.not(stateOf(agent), '');
      t.true(processesNaming(temporary).length > 0);
      drill.child.kill(signal);
      t.deepEqual(await drill.ended, { code: null, signal });
      t.deepEqual(readdirSync(temporary), []);
      t.deepEqual(processesNaming(temporary), []);
      // Dead, and reaped where somebody does that.
      t.true(['', 'Z'].includes(stateOf(agent)));
    },
  );
}
