import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import test from 'ava';
import { durable, PROGRAM } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';
import { inTerminal } from '../helpers/terminal.js';

/** A git on PATH that takes `seconds` for the one command that writes a checkpoint's tree. */
function slowGit(place: Scratch, seconds: string): Record<string, string> {
  const bin = join(place.top, 'bin');
  const path = place.env['PATH'] ?? '';
  const git = place.run('sh', ['-c', 'command -v git']).stdout.trim();
  const script = `#!/bin/sh\ncase " $* " in *" write-tree "*) sleep ${seconds};; esac\nexec '${git}' "$@"\n`;
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, 'git'), script, { mode: 0o755 });
  return { PATH: `${bin}${delimiter}${path}` };
}

const CLEARED = '\u001b[K';

test('work of more than a second says on a terminal that it goes on, and clears the line at its end', (t) => {
  const place = scratch(t);
  const steps = [
    { until: '\\$ ', send: `'${process.execPath}' '${PROGRAM}' checkpoint\n` },
    { until: 'next: ', send: 'exit\n' },
  ];
  // Carriage returns are taken away by the terminal's helper.
  const shown = inTerminal(place, steps, { ...slowGit(place, '2.5'), TERM: 'xterm' });
  const progress = shown.search(/git-durable: [a-z ]+, [1-9] s /);
  const result = shown.search(/checkpoint [0-9a-f]{40}/);
  t.true(progress !== -1, shown);
  t.true(shown.slice(progress, result).includes(CLEARED), shown);
});

test('where standard error is no terminal nothing is said of progress', (t) => {
  const place = scratch(t);
  const ran = durable(place, ['checkpoint', '--json'], { env: slowGit(place, '1.5') });
  t.deepEqual([ran.code, ran.stderr], [0, '']);
  t.is(ran.stdout.trim().split('\n').length, 1);
});
