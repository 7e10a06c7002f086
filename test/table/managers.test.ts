/** The hook managers people have, the real ones: ours before theirs, theirs before ours, made anew, and no residue. */
import { existsSync, mkdirSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { listing } from '../helpers/listing.js';
import { until } from '../helpers/processes.js';
import { durable, startDurable, type Running } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

const MODULES = fileURLToPath(new URL('../../../node_modules', import.meta.url));

interface Manager {
  /** Writes the manager's own files; each hook of it appends `<hook> ran` to `../ran`. */
  readonly prepare: (place: Scratch) => void;
  readonly install: (place: Scratch) => void;
}

function must(place: Scratch, program: string, args: readonly string[]): void {
  const ran = place.run(program, args);
  if (ran.code !== 0) throw new Error(`${program} ${args.join(' ')}: ${ran.stdout}${ran.stderr}`);
}

const MANAGERS: Readonly<Record<string, Manager>> = {
  'husky 9': {
    prepare: (place) => {
      place.write('package.json', '{}\n');
      mkdirSync(join(place.dir, '.husky'));
      place.write('.husky/pre-commit', 'echo pre-commit ran >> ../ran\n');
      place.git('add', '-A');
      place.git('commit', '-qm', 'husky');
    },
    install: (place) => {
      must(place, process.execPath, [join(MODULES, 'husky/bin.js')]);
    },
  },
  lefthook: {
    prepare: (place) => {
      place.write('lefthook.yml', 'pre-commit:\n  jobs:\n    - run: echo pre-commit ran >> ../ran\n');
      place.git('add', '-A');
      place.git('commit', '-qm', 'lefthook');
    },
    install: (place) => {
      must(place, process.execPath, [join(MODULES, 'lefthook/bin/index.js'), 'install']);
    },
  },
  'pre-commit': {
    prepare: (place) => {
      place.write(
        '.pre-commit-config.yaml',
        [
          'repos:',
          '  - repo: local',
          '    hooks:',
          '      - {id: ran, name: ran, language: system, always_run: true, pass_filenames: false,',
          "         entry: sh -c 'echo pre-commit ran >> ../ran'}",
          '',
        ].join('\n'),
      );
      place.git('add', '-A');
      place.git('commit', '-qm', 'pre-commit');
    },
    install: (place) => {
      must(place, 'pre-commit', ['install']);
    },
  },
};

async function openTurn(t: Parameters<typeof startDurable>[0], place: Scratch): Promise<Running> {
  const running = startDurable(t, place, ['run', '--', 'sh', '-c', 'echo open; cat']);
  if ((await running.line()) !== 'open') throw new Error(running.said);
  return running;
}

/** How often the manager's own hook ran at a commit. */
function timesRun(place: Scratch): number {
  place.run('rm', ['-f', '../ran']);
  place.write('file', `${String(performance.now())}\n`);
  place.git('add', 'file');
  const ran = place.run('git', ['commit', '-q', '-m', 'x'], {
    env: {
      LEFTHOOK_BIN: join(MODULES, 'lefthook/bin/index.js'),
      PATH: `${dirname(process.execPath)}:${place.env['PATH'] ?? ''}:${join(MODULES, '.bin')}`,
    },
  });
  if (ran.code !== 0) throw new Error(ran.stderr);
  const text = place.run('cat', ['../ran']).stdout;
  return text.split('\n').filter((line) => line === 'pre-commit ran').length;
}

const without = (lines: readonly string[]): string[] =>
  lines.filter((line) => /\/hooks\/|\.husky|config |exclude /.test(line));

for (const [name, { prepare, install }] of Object.entries(MANAGERS)) {
  for (const order of ['before', 'after'] as const) {
    test(`${name} installed ${order} init: its hook runs once, ours refuses, and uninstall leaves it as it was`, async (t) => {
      const place = scratch(t);
      prepare(place);
      const alone = scratch(t);
      prepare(alone);
      install(alone);
      if (order === 'before') install(place);
      t.is(durable(place, ['init', '--fence', 'hooks']).code, 0);
      if (order === 'after') install(place);
      const running = await openTurn(t, place);
      const refused = place.run('git', ['commit', '-q', '--allow-empty', '-m', 'beside']);
      t.not(refused.code, 0);
      t.regex(refused.stderr, /git-durable: refused \(pre-commit\)/);
      running.child.stdin.end();
      await running.ended;
      t.is(timesRun(place), 1);
      t.is(place.git('status', '--porcelain'), '');
      t.is(durable(place, ['uninstall', '--purge']).code, 0);
      t.is(timesRun(place), 1);
      const strays = listing(place.dir).filter((line) => line.includes('durable-prev'));
      t.deepEqual(strays, []);
      if (order === 'before')
        t.deepEqual(without(listing(place.dir)).length, without(listing(alone.dir)).length);
    });
  }
}

test("what husky's prepare wipes during a turn is put back, and its own hook still runs", async (t) => {
  const manager = MANAGERS['husky 9'];
  const place = scratch(t);
  manager?.prepare(place);
  manager?.install(place);
  durable(place, ['init', '--fence', 'hooks']);
  const running = await openTurn(t, place);
  place.run('rm', ['-rf', '.husky/_']);
  manager?.install(place);
  for (;;) {
    const ran = place.run('git', ['commit', '-q', '--allow-empty', '-m', 'beside']);
    if (ran.stderr.includes('refused (pre-commit)')) break;
    await new Promise(setImmediate);
  }
  const chained = join(place.dir, '.husky/_/pre-push.durable-prev');
  await until('its other hooks chained', () => existsSync(chained));
  running.child.stdin.end();
  await running.ended;
  t.is(timesRun(place), 1);
  t.false(existsSync(chained), 'and given back at the end');
});

test('hooks in the config of git 2.54 (not run here: the git at hand is older, the commands are run as git would)', async (t) => {
  const place = scratch(t);
  durable(place, ['init', '--fence', 'hooks']);
  const running = await openTurn(t, place);
  for (const event of ['pre-commit', 'pre-push', 'reference-transaction']) {
    t.is(place.git('config', `hook.durable-${event}.event`), event);
    const command = place.git('config', `hook.durable-${event}.command`);
    const input = 'old new refs/heads/main\n';
    const words = event === 'reference-transaction' ? `${command} prepared` : command;
    const ran = place.run('sh', ['-c', words], { input });
    t.deepEqual([ran.code, /^git-durable: refused/.test(ran.stderr)], [1, true], ran.stderr);
  }
  const settings = place.git('config', '--get-regexp', '^hook[.]durable-');
  running.child.stdin.end();
  await running.ended;
  t.is(place.git('config', '--get-regexp', '^hook[.]durable-'), settings, 'they stay when the turn ends');
  const command = place.git('config', 'hook.durable-pre-commit.command');
  t.is(place.run('sh', ['-c', command]).code, 0);
  renameSync(place.dir, join(place.top, 'moved'));
  const there = { cwd: join(place.top, 'moved') };
  t.is(place.run('sh', ['-c', command], there).code, 0, 'in a repository that was moved nothing is refused');
  t.is(durable(place, ['uninstall', '--purge'], there).code, 0);
  t.is(place.run('git', ['config', '--get-regexp', '^hook[.]'], there).stdout, '');
});
