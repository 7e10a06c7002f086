/** What `init --agent` puts into a work tree, as tests look at it. */
import { existsSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Scratch } from './scratch.js';

export const LOCAL_FILES = {
  'claude-code': '.claude/settings.local.json',
  codex: '.codex/hooks.json',
  opencode: '.opencode/plugin/git-durable.js',
  kilo: '.kilo/plugin/git-durable.js',
} as const;

export const ALL = Object.keys(LOCAL_FILES).flatMap((agent) => ['--agent', agent]);

export const read = (place: Scratch, path: string): string => readFileSync(join(place.dir, path), 'utf8');

export const isThere = (place: Scratch, path: string): boolean => existsSync(join(place.dir, path));

/** Each command of a hook in a settings file without comments, by its event. */
export function commandsIn(place: Scratch, path: string): { event: string; command: string }[] {
  const { hooks = {} } = JSON.parse(read(place, path)) as {
    hooks?: Record<string, { hooks: { command: string }[] }[]>;
  };
  return Object.entries(hooks).flatMap(([event, groups]) =>
    groups.flatMap((group) => group.hooks.map(({ command }) => ({ event, command }))),
  );
}

/** A PATH on which, beside git and sh, only these are found; they do nothing. */
export function pathWith(place: Scratch, ...programs: readonly string[]): string {
  const bin = mkdtempSync(join(place.top, 'bin-'));
  for (const program of ['git', 'sh', 'cat']) {
    const [real = ''] = place.run('sh', ['-c', `command -v ${program}`]).stdout.split('\n');
    symlinkSync(real, join(bin, program));
  }
  for (const program of programs) writeFileSync(join(bin, program), '#!/bin/sh\n', { mode: 0o755 });
  return bin;
}

/** A user's settings with comments where a tool would lose them, and a hook of the user's own in an event of ours. */
export const SETTINGS = `{
  // first: a comment
  "permissions": { "allow": ["Bash(ls:*)"], }, // behind the comma
  "hooks": {
    /* before mine */ "PreToolUse": [
      { "matcher": "Write", "hooks": [{ "type": "command", "command": "echo 'mine' \\\\" }] } // behind mine
      // last in the list
    ], "Mine": []
  } // behind the hooks
  // the end
}
`;
