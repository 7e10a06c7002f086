import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { EXIT } from '../../cli/exit.js';
import type { OptionDefinition } from '../../cli/verb.js';
import { GLOBAL_OPTIONS, VERBS } from '../../cli/verbs.js';
import { scratch } from '../helpers/scratch.js';

const page = plain(readFileSync(new URL('../../../cli/man/git-durable.1', import.meta.url), 'utf8'));

/** Without the escapes of troff(1). */
function plain(source: string): string {
  return source.replaceAll('\\-', '-').replaceAll(/\\f[BIR]/g, '');
}

/** From a heading to the next one of its kind. */
function section(text: string, kind: 'SH' | 'SS', title: RegExp): string {
  const lines = text.split('\n');
  const start = lines.findIndex((line) => line.startsWith(`.${kind} `) && title.test(line));
  if (start === -1) return '';
  const length = lines
    .slice(start + 1)
    .findIndex((line) => line.startsWith('.SH') || line.startsWith(`.${kind} `));
  return lines.slice(start, length === -1 ? undefined : start + 1 + length).join('\n');
}

/** The option names that head a paragraph. */
function options(text: string): string[] {
  const heads = [...text.matchAll(/^\.TP\n\.B[IR]?\s+"?(-[^\n]*)/gm)].map((match) => match[1] ?? '');
  return heads.flatMap((head) =>
    [...head.matchAll(/(?:^|[\s,"])--?([A-Za-z][\w-]*)/g)].map((match) => match[1] ?? ''),
  );
}

function defined(of: Readonly<Record<string, OptionDefinition>>): string[] {
  return Object.entries(of).flatMap(([name, option]) =>
    option.alias === undefined ? [name] : [option.alias, name],
  );
}

test('the man page has each verb, in the order of the help, and no other', (t) => {
  const verbs = [...page.matchAll(/^\.SS "?([a-z-]+)/gm)].map((match) => match[1]);
  t.deepEqual(
    verbs,
    VERBS.map((verb) => verb.name),
  );
});

for (const verb of VERBS) {
  test(`the man page has each option and word of '${verb.name}', and no other`, (t) => {
    const text = section(page, 'SS', new RegExp(`^\\.SS "?${verb.name}\\b`));
    t.deepEqual(options(text).sort(), defined(verb.options).sort());
    const [heading = ''] = text.split('\n');
    for (const positional of verb.positionals) {
      const word =
        positional.choices?.[0] ?? `${positional.name.toUpperCase()}${positional.many ? '...' : ''}`;
      t.true(heading.includes(positional.required ? word : `[${word}]`), `${heading} names ${word}`);
    }
    t.is(heading.includes('-- CMD'), verb.rest === 'command');
    for (const choice of Object.values(verb.options).flatMap((option) => option.choices ?? []))
      t.true(text.includes(choice), choice);
  });
}

test('the man page has the options of every verb', (t) => {
  const text = section(page, 'SH', /OPTIONS OF EVERY VERB/);
  t.deepEqual(options(text).sort(), [...defined(GLOBAL_OPTIONS), 'help', 'version'].sort());
});

test('the man page has every exit code', (t) => {
  const text = section(page, 'SH', /EXIT STATUS/);
  const codes = [...text.matchAll(/^\.TP\n\.B (\d)$/gm)].map((match) => Number(match[1]));
  t.deepEqual(codes, Object.values(EXIT));
});

test('the man page is of the version of the package', (t) => {
  const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  t.true(page.startsWith(`.TH GIT-DURABLE 1 "" "git-durable ${version}"`));
});

test('git durable --help through git shows the man page that npm installs, and durable --help needs none', (t) => {
  const place = scratch(t);
  const prefix = join(place.top, 'prefix');
  const root = fileURLToPath(new URL('../../../', import.meta.url));
  const options = ['--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', prefix];
  const installed = place.run('npm', ['install', '--global', ...options, root]);
  t.is(installed.code, 0, installed.stderr);
  // What man(1) does on a machine that may have none: the page of that name beside the folder of the program.
  const bin = join(prefix, 'bin');
  const shows = `#!/bin/sh\nfor page; do :; done\nexec cat "${prefix}/share/man/man1/$page.1"\n`;
  writeFileSync(join(bin, 'man'), shows, { mode: 0o755 });
  const env = { PATH: `${bin}:${place.env['PATH'] ?? ''}` };
  const shown = place.run('git', ['durable', '--help'], { env });
  t.deepEqual([shown.code, shown.stderr], [0, '']);
  t.is(shown.stdout, readFileSync(join(root, 'cli/man/git-durable.1'), 'utf8'));
  for (const name of ['durable', 'git-durable']) {
    const { code, stdout } = place.run(name, ['--help'], { env });
    t.is(code, 0);
    t.regex(stdout, /durable VERB \[options\]/);
  }
  t.regex(place.run('git', ['durable', 'status', '--help'], { env }).stdout, /durable status/);
});
