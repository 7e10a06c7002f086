import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import test from 'ava';
import { ALL, commandsIn, isThere, LOCAL_FILES, pathWith, read, SETTINGS } from '../helpers/agent-files.js';
import { document } from '../helpers/events.js';
import { differences, listing } from '../helpers/listing.js';
import { durable, PROGRAM } from '../helpers/program.js';
import { scratch, type Scratch } from '../helpers/scratch.js';

interface Init {
  readonly files: readonly string[];
  readonly edited: readonly string[];
  readonly agents: readonly { agent: string; scope: string; file: string; change: string }[];
}

const status = (place: Scratch): string => place.git('status', '--porcelain', '--untracked-files=all');

test('init without a name installs for the agents whose program is on PATH, and says so when none is', (t) => {
  const place = scratch(t);
  const found = document<Init>(place, ['init'], { env: { PATH: pathWith(place, 'claude', 'kilo') } });
  t.deepEqual(
    found.agents.map(({ agent, change }) => [agent, change]),
    [
      ['claude-code', 'created'],
      ['kilo', 'created'],
    ],
  );
  const other = scratch(t);
  const none = durable(other, ['init'], { env: { PATH: pathWith(other) } });
  t.is(none.code, 0);
  t.regex(none.stdout, /no agent is on PATH \(claude-code, codex, opencode, kilo\)[^\n]*init --agent NAME/);
  t.notRegex(durable(other, ['init', '--agent', 'none'], { env: { PATH: pathWith(other) } }).stdout, /agent/);
});

test('init --agent writes files that git status does not show, names each, and twice changes no byte', (t) => {
  const place = scratch(t);
  const dry = document<Init>(place, ['init', '--dry-run', ...ALL]);
  const before = listing(place.dir);
  const first = document<Init>(place, ['init', ...ALL]);
  t.deepEqual([first.files, first.edited], [dry.files, dry.edited]);
  t.true(before.length > 0);
  for (const path of Object.values(LOCAL_FILES)) t.true(first.files.includes(join(place.dir, path)), path);
  t.is(status(place), '');
  const after = listing(place.dir);
  const second = document<Init>(place, ['init', ...ALL]);
  t.deepEqual([second.files, second.edited], [[], []]);
  t.deepEqual(differences(after, listing(place.dir)), []);
});

test('a dry run writes nothing, and names what the file it would edit is', (t) => {
  const place = scratch(t);
  place.write('.claude/settings.local.json', SETTINGS);
  const before = listing(place.dir);
  const dry = document<Init>(place, ['init', '--dry-run', '--agent', 'claude-code']);
  t.deepEqual(differences(before, listing(place.dir)), []);
  t.deepEqual(dry.edited, [
    join(place.dir, '.claude/settings.local.json'),
    join(place.dir, '.git/info/exclude'),
  ]);
});

for (const [agent, path] of Object.entries(LOCAL_FILES).slice(0, 2)) {
  for (const [name, content] of [
    ['comments and hooks of the user', SETTINGS],
    ['other line ends and tabs', '{\r\n\t"hooks": {\r\n\t\t"Stop": []\r\n\t}\r\n}\r\n'],
    ['one line', '{"a":{"b":[1,2]},"hooks":{}}'],
    ['nothing in it', ''],
    ['nothing but a comment', '{ // later\n}'],
  ] as const) {
    test(`${agent}: in a file with ${name} each line of the user's stays in its order, and uninstall puts the file back byte for byte`, (t) => {
      const place = scratch(t);
      place.write(path, content, 0o640);
      const before = listing(place.dir);
      t.is(durable(place, ['init', '--agent', agent]).code, 0);
      const edited = read(place, path);
      t.not(edited, content);
      t.true(isWithin(content, edited), edited);
      t.is(statSync(join(place.dir, path)).mode & 0o777, 0o640);
      t.is(
        statSync(join(place.dir, `.git/durable/agents/before-${agent}-${basename(path)}`)).mode & 0o777,
        0o600,
      );
      const gone = document<{ restored: string[]; residue: string[] }>(place, ['uninstall']);
      t.deepEqual([gone.restored, gone.residue], [[join(place.dir, path)], []]);
      t.deepEqual(differences(before, listing(place.dir)), []);
    });
  }
}

/** Whether a text is another with more in between: nothing of it was lost or moved. */
function isWithin(text: string, longer: string): boolean {
  let at = 0;
  for (const character of longer) if (text[at] === character) at += 1;
  return at === text.length;
}

test('after init and uninstall of every agent git dir and work tree are byte for byte as they were', (t) => {
  const place = scratch(t);
  place.write('.opencode/opencode.json', '{}');
  const before = listing(place.dir);
  t.is(durable(place, ['init', ...ALL]).code, 0);
  t.is(durable(place, ['uninstall']).code, 0);
  t.deepEqual(differences(before, listing(place.dir)), []);
});

test('uninstall of a file that was changed since takes our hooks out and leaves all else', (t) => {
  const place = scratch(t);
  place.write('.claude/settings.local.json', SETTINGS);
  t.is(durable(place, ['init', ...ALL]).code, 0);
  for (const path of [LOCAL_FILES['claude-code'], LOCAL_FILES.codex])
    place.write(path, read(place, path).replace(/\}\s*$/, ', "later": [1] /* mine */ }\n'));
  t.is(durable(place, ['uninstall']).code, 0);
  const settings = read(place, '.claude/settings.local.json');
  t.notRegex(settings, /hook-entry/);
  t.is(settings, SETTINGS.replace(/\}\s*$/, ', "later": [1] /* mine */ }\n'));
  t.deepEqual(JSON.parse(read(place, '.codex/hooks.json').replace('/* mine */', '')), { later: [1] });
});

test('hooks of a program that lies elsewhere now are replaced, not doubled, and uninstall still restores what was before all of them', (t) => {
  const place = scratch(t);
  place.write('.claude/settings.local.json', SETTINGS);
  const before = listing(place.dir);
  t.is(durable(place, ['init', ...ALL]).code, 0);
  const copy = join(place.top, "another 'place");
  mkdirSync(copy);
  for (const name of ['dist', 'hooks', 'package.json', 'node_modules'])
    symlinkSync(new URL(`../../../${name}`, import.meta.url), join(copy, name));
  const elsewhere = [
    '--preserve-symlinks',
    '--preserve-symlinks-main',
    join(copy, 'dist/program/cli/main.js'),
  ];
  const moved = place.run(process.execPath, [...elsewhere, 'init', ...ALL]);
  t.is(moved.code, 0, moved.stderr);
  for (const path of Object.values(LOCAL_FILES)) {
    const text = read(place, path);
    t.true(text.includes('another '), path);
    t.is(text.split('hook-entry.js').length, text.split('another ').length, path);
  }
  t.is(durable(place, ['uninstall']).code, 0);
  t.deepEqual(differences(before, listing(place.dir)), []);
});

for (const [name, content, why] of [
  ['is no JSON', '{ "hooks": ', /it is no JSON from character \d+ on/],
  ['is a list', '[]', /it holds no JSON object/],
  ['has hooks of another shape', '{ "hooks": [] }', /its "hooks" is no object of lists/],
  ['has its hooks twice', '{ "hooks": {}, "hooks": {} }', /it has "hooks" twice/],
  ['is not UTF-8', Buffer.from('{ "a": "\xff" }', 'latin1'), /it is not UTF-8/],
] as const) {
  test(`a settings file that ${name} is refused with what to do, and nothing at all is written`, (t) => {
    const place = scratch(t);
    place.write('.claude/settings.local.json', content);
    const before = listing(place.dir);
    const refused = durable(place, ['init', ...ALL]);
    t.is(refused.code, 1);
    t.regex(refused.stderr, why);
    t.regex(
      refused.stderr,
      /^git-durable: '\.claude\/settings\.local\.json' is left as it is, since [^\n]+; mend it, and type the same again\n$/,
    );
    t.deepEqual(differences(before, listing(place.dir)), []);
  });
}

test('a plugin of the user under our name, and a local file that git tracks, are refused', (t) => {
  const place = scratch(t);
  place.write('.kilo/plugin/git-durable.js', 'export const Mine = 1;\n');
  t.regex(
    durable(place, ['init', '--agent', 'kilo']).stderr,
    /it is no file of git-durable; give it another name/,
  );
  place.write('.codex/hooks.json', '{}');
  place.git('add', '.codex');
  const tracked = durable(place, ['init', '--agent', 'codex']);
  t.is(tracked.code, 1);
  t.regex(tracked.stderr, /git tracks it; [^\n]*'git durable init --agent codex --shared'/);
  t.is(read(place, '.codex/hooks.json'), '{}');
  t.false(isThere(place, '.git/durable'));
});

for (const [name, path, target] of [
  ['a folder that is a link out of the work tree', '.claude', '../away'],
  ['a folder that is a link inside', '.claude', 'inside'],
  ['a file that is a link', '.claude/settings.local.json', '../../away/file'],
] as const) {
  test(`nothing is written through ${name}`, (t) => {
    const place = scratch(t);
    mkdirSync(join(place.top, 'away'));
    mkdirSync(join(place.dir, 'inside'));
    writeFileSync(join(place.top, 'away/file'), '{}');
    if (path.includes('/')) mkdirSync(join(place.dir, dirname(path)));
    symlinkSync(target, join(place.dir, path));
    const before = listing(place.top);
    const refused = durable(place, ['init', '--agent', 'claude-code']);
    t.true(refused.code === 1 || refused.code === 2);
    t.regex(
      refused.stderr,
      /^git-durable: '\.claude\/settings\.local\.json' [^\n]*(?:link|outside)[^\n]*;[^\n]+\n$/,
    );
    t.deepEqual(differences(before, listing(place.top)), []);
  });
}

test('--shared writes files to commit without a path of this machine, in place of local ones, and a colleague adds none beside them', (t) => {
  const place = scratch(t);
  const before = listing(place.dir);
  t.is(durable(place, ['init', ...ALL]).code, 0);
  t.is(durable(place, ['init', ...ALL, '--shared']).code, 0);
  t.false(isThere(place, '.claude/settings.local.json'));
  const shared = ['.claude/settings.json', ...Object.values(LOCAL_FILES).slice(1)];
  t.deepEqual(status(place).split('\n').sort(), shared.map((path) => `?? ${path}`).sort());
  for (const path of shared) t.notRegex(read(place, path), /hook-entry|\/dist\/|\/node/, path);
  place.git('add', '.');
  place.git('commit', '-q', '-m', 'hooks');
  place.git('clone', '-q', '.', '../colleague');
  const colleague = { ...place, dir: join(place.top, 'colleague') };
  const theirs = listing(colleague.dir, ['.git']);
  const found = document<Init>(place, ['init', ...ALL], { cwd: colleague.dir });
  t.deepEqual(
    new Set(found.agents.map(({ scope, change }) => `${scope} ${change}`)),
    new Set(['shared none']),
  );
  t.is(durable(place, ['uninstall'], { cwd: colleague.dir }).code, 0);
  t.deepEqual(differences(theirs, listing(colleague.dir, ['.git'])), []);
  t.is(durable(place, ['uninstall']).code, 0);
  for (const path of shared) t.false(isThere(place, path), path);
  t.deepEqual(
    differences(before, listing(place.dir)).filter((line) => !line.slice(2).startsWith('.git/')),
    [],
  );
});

test('a shared hook does nothing, and says nothing, where git-durable is not on PATH', (t) => {
  const place = scratch(t);
  t.is(durable(place, ['init', '--agent', 'claude-code', '--shared']).code, 0);
  for (const { event, command } of commandsIn(place, '.claude/settings.json')) {
    const ran = place.run('sh', ['-c', command], { env: { PATH: pathWith(place) }, input: '{}' });
    t.deepEqual([ran.code, ran.stdout, ran.stderr], [0, '', ''], event);
  }
});

test('a linked work tree gets files of its own, and what one is uninstalled from stays in the other', (t) => {
  const place = scratch(t);
  const linked = join(place.top, 'linked tree');
  place.git('worktree', 'add', '-q', '--detach', linked);
  const exclude = readFileSync(join(place.dir, '.git/info/exclude'), 'utf8');
  const other = { ...place, dir: linked };
  t.is(durable(place, ['init', ...ALL]).code, 0);
  t.false(isThere(other, '.claude'));
  t.is(durable(place, ['init', '--agent', 'claude-code'], { cwd: linked }).code, 0);
  t.true(isThere(other, '.claude/settings.local.json'));
  t.is(durable(place, ['uninstall']).code, 0);
  t.is(status(place), '');
  t.is(place.run('git', ['status', '--porcelain'], { cwd: linked }).stdout, '');
  t.true(isThere(other, '.claude/settings.local.json'));
  t.is(durable(place, ['uninstall'], { cwd: linked }).code, 0);
  t.false(isThere(other, '.claude'));
  t.is(readFileSync(join(place.dir, '.git/info/exclude'), 'utf8'), exclude);
});

test('uninstall goes on where the user has taken the files, or the folder of the git dir, away', (t) => {
  const place = scratch(t);
  t.is(durable(place, ['init', ...ALL]).code, 0);
  rmSync(join(place.dir, '.claude'), { recursive: true });
  t.is(durable(place, ['uninstall']).code, 0);
  t.is(durable(place, ['init', ...ALL]).code, 0);
  rmSync(join(place.dir, '.git/durable'), { recursive: true });
  t.is(durable(place, ['uninstall']).code, 0);
  for (const path of Object.values(LOCAL_FILES).slice(2)) t.false(isThere(place, path), path);
  t.notRegex(read(place, '.codex/hooks.json'), /hook-entry/);
  t.notRegex(read(place, '.git/info/exclude'), /git-durable/);
});

for (const point of ['agent.record:rename:after', 'agent.file:rename:before', 'agent.file:rename:after']) {
  for (const nth of [1, 2, 3]) {
    test(`killed at ${point}, hit ${String(nth)}, each file is the old or the new one, and either verb finishes`, (t) => {
      const place = scratch(t);
      place.write('.claude/settings.local.json', SETTINGS);
      place.write('.codex/hooks.json', '{}');
      const shown = status(place);
      const before = listing(place.dir);
      const env = { DURABLE_FAULTS: `${point}#${String(nth)}=kill` };
      const killed = durable(place, ['init', ...ALL], { env });
      t.is(killed.signal, 'SIGKILL');
      for (const [path, old, events] of [
        ['.claude/settings.local.json', SETTINGS, 9],
        ['.codex/hooks.json', '{}', 8],
      ] as const) {
        const now = read(place, path);
        t.true(now === old || now.split('hook-entry.js').length === events + 1, path);
      }
      t.true(shown.startsWith(status(place)), status(place));
      for (const words of [['uninstall'], ['init', ...ALL], ['uninstall']])
        t.is(durable(place, words).code, 0, words.join(' '));
      t.deepEqual(differences(before, listing(place.dir)), []);
    });
  }
}

test('a work tree whose folder may not be written is named, and no file is half there', (t) => {
  const place = scratch(t);
  place.write('.claude/settings.local.json', SETTINGS);
  chmodSync(join(place.dir, '.claude'), 0o555);
  const asUser = process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--clear-groups'] : [];
  place.run('chmod', ['-R', 'a+rwX', place.top]);
  place.run('chmod', ['a-w', join(place.dir, '.claude')]);
  place.run('git', ['config', '--global', 'safe.directory', '*']);
  const [first, ...rest] = [...asUser, process.execPath, PROGRAM, 'init', '--agent', 'claude-code'];
  const ran = place.run(first, rest);
  t.is(ran.code, 1);
  t.regex(ran.stderr, /^git-durable: permission denied on '[^\n]+\.claude[^\n]*\n$/);
  t.is(read(place, '.claude/settings.local.json'), SETTINGS);
});
