import { rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { commandsIn, isThere, LOCAL_FILES, pathWith, read } from '../helpers/agent-files.js';
import { document } from '../helpers/events.js';
import { durable } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

interface Problem {
  readonly code: string;
  readonly detail: string;
  readonly fix: string;
}

const problems = (place: Scratch, env: Record<string, string> = {}): readonly Problem[] =>
  document<{ problems: Problem[] }>(place, ['doctor'], { codes: [0, 3], env }).problems;

const codes = (place: Scratch): string[] => problems(place).map(({ code }) => code);

/** What an agent does at the start of a session: the command of its own settings, through a shell. */
function fire(place: Scratch, path: string): void {
  const { command = '' } = commandsIn(place, path).find(({ event }) => event === 'SessionStart') ?? {};
  const payload = { session_id: 's', cwd: place.dir, hook_event_name: 'SessionStart', source: 'startup' };
  const ran = place.run('sh', ['-c', command], { input: JSON.stringify(payload) });
  mustBe(ran.code === 0, ran.stderr);
}

function mustBe(isTrue: boolean, why: string): void {
  if (!isTrue) throw new Error(why);
}

for (const agent of ['claude-code', 'codex'] as const) {
  test(`doctor says that hooks of ${agent} were never seen to fire until one of this very installation has`, (t) => {
    const place = scratch(t);
    const path = LOCAL_FILES[agent];
    const init = ['init', '--agent', agent];
    t.is(durable(place, init).code, 0);
    const [unseen, ...others] = problems(place);
    t.deepEqual([unseen?.code, others], ['agent-hooks-unseen', []]);
    t.regex(unseen?.detail ?? '', /never seen to fire/);
    if (agent === 'codex')
      t.regex(`${unseen?.detail ?? ''} ${unseen?.fix ?? ''}`, /silently.*trust the project and the hooks/);
    fire(place, path);
    t.deepEqual(codes(place), []);
    t.is(place.run('stat', ['-c', '%a', `.git/durable/agents/seen-${agent}`]).stdout, '600\n');
    // Another installation: what was seen before proves nothing for it.
    place.write(path, read(place, path).replaceAll(/ ([a-z2-7]{15})[a-z2-7]"/g, ' $1z"'));
    t.deepEqual(codes(place), ['agent-hooks-unseen']);
    t.is(durable(place, ['uninstall']).code, 0);
    t.deepEqual(codes(place), []);
  });
}

test('doctor names hooks that are gone, that were edited and that stand in two files, and what it says to type mends each', (t) => {
  const place = scratch(t);
  const path = LOCAL_FILES['claude-code'];
  t.is(durable(place, ['init', '--agent', 'claude-code']).code, 0);
  for (const [code, damage] of [
    [
      'agent-hooks-missing',
      () => {
        rmSync(join(place.dir, path));
      },
    ],
    [
      'agent-hooks-missing',
      () => {
        place.write(path, '{}');
      },
    ],
    [
      'agent-hooks-changed',
      () => {
        place.write(path, read(place, path).replace('"timeout": 120', '"timeout": 1'));
      },
    ],
    [
      'agent-hooks-changed',
      () => {
        place.write('.claude/settings.json', read(place, path));
      },
    ],
    [
      'agent-hooks-missing',
      () => {
        place.write(path, read(place, path).replaceAll(process.execPath, '/no/such/node'));
      },
    ],
  ] as const) {
    damage();
    const [problem] = problems(place);
    t.is(problem?.code, code);
    t.regex(problem?.fix ?? '', /^git durable init --agent claude-code$/);
    rmSync(join(place.dir, '.claude/settings.json'), { force: true });
    t.is(durable(place, ['init', '--agent', 'claude-code']).code, 0);
    fire(place, path);
    t.deepEqual(codes(place), [], code);
  }
});

test('doctor says of shared hooks that they do nothing where git-durable is not on PATH, and of an agent without hooks nothing', (t) => {
  const place = scratch(t);
  t.deepEqual(codes(place), []);
  t.is(durable(place, ['init', '--agent', 'kilo', '--shared']).code, 0);
  const [problem] = problems(place, { PATH: pathWith(place) });
  t.is(problem?.code, 'agent-hooks-missing');
  t.regex(problem?.detail ?? '', /git-durable, which is not on PATH/);
  t.true(isThere(place, LOCAL_FILES.kilo));
});

test('a hook that fires again within the hour writes nothing', (t) => {
  const place = scratch(t);
  t.is(durable(place, ['init', '--agent', 'codex']).code, 0);
  const seen = (): string => place.run('stat', ['-c', '%i %Z %Y', '.git/durable/agents/seen-codex']).stdout;
  fire(place, LOCAL_FILES.codex);
  const first = seen();
  fire(place, LOCAL_FILES.codex);
  t.is(seen(), first);
  place.write(
    '.git/durable/agents/seen-codex',
    read(place, '.git/durable/agents/seen-codex').replace(/"at":"2/, '"at":"1'),
  );
  fire(place, LOCAL_FILES.codex);
  t.regex(read(place, '.git/durable/agents/seen-codex'), /"at":"2/);
});
