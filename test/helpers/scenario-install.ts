/**
 * `init`, a turn with its hooks, and `uninstall`, in a repository whose hooks folder, `info/exclude`, settings and agent's settings are
 * partly the user's own. Killed anywhere, git commits and runs the user's hook, and the agent's settings are the old or the new ones;
 * each of the two verbs, done again, finishes; nothing stays.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { install, uninstall } from '../../hooks/install.js';
import { dropAsked, keepAsked } from '../../lib/agents/asked.js';
import { recordSeen } from '../../lib/agents/seen.js';
import { openStorage } from '../../lib/git/storage.js';
import { openRepository } from '../../lib/repository.js';
import { readFolder, writeFolder } from './folder-copy.js';
import { differences, listing } from './listing.js';
import { Judge } from './ledger-judge.js';
import { bytes } from './recording.js';
import type { After, Place, Run, Scenario } from './scenarios.js';

const INSTALL = { dryRun: false, fence: 'hooks', agents: ['claude-code', 'opencode'] } as const;

const SETTINGS = '.claude/settings.local.json';
const OWN_SETTINGS = '{ "mine": 1 /* kept */ }\n';

export const installing: Scenario = {
  prepare: async ({ dir, host }) => {
    const storage = await openStorage(dir, host);
    const folder = join(dir, 'my hooks');
    mkdirSync(folder);
    for (const name of ['pre-commit', 'reference-transaction']) {
      writeFileSync(join(folder, name), `#!/bin/sh\necho ${name} >> ran\n`);
      chmodSync(join(folder, name), 0o755);
    }
    for (const [key, value] of [
      ['core.hooksPath', 'my hooks'],
      ['durable.fence', 'off'],
      ['notes.rewriteRef', 'refs/notes/review'],
      ['hook.mine.command', 'true'],
    ] as const)
      await storage.git.output(['config', '--local', key, value]);
    await storage.close();
    mkdirSync(join(dir, '.claude'));
    writeFileSync(join(dir, SETTINGS), OWN_SETTINGS);
    writeFileSync(recordOf(dir), JSON.stringify(kept(dir)));
  },

  only: /^(?:workspace|fence\.hook|fence\.config|install|agent)/,
  /** A rename or a setting is a step that others see. */
  every: /^(?:fence\.hook:(?:rename|link)|fence\.config:spawn|install\.\w+:\w+):after$/,

  run: async ({ dir, host, say }: Run) => {
    say('begin installing');
    await installed(dir, host);
    say('ack installed');
    await fired(dir, host);
    const repository = await openRepository(dir, host);
    const turn = await repository.startTurn({ objective: 'work', task: 'work', keeper: false });
    await turn.finish({ outcome: 'completed' });
    await repository.close();
    say('ack finished');
    await uninstalled(dir, host);
    say('end installing');
  },

  examine: async ({ dir, env, host }: After) => {
    const findings = new Judge(dir, env).fsck().map((line) => `fsck: ${line}`);
    const settings = readFileSync(join(dir, SETTINGS), 'utf8');
    if (settings !== OWN_SETTINGS && !isWhole(settings)) findings.push(`half edited: ${settings}`);
    const cut = readFolder(bytes(dir));
    const commit = spawnSync('git', ['commit', '-q', '--allow-empty', '-m', 'by hand'], { cwd: dir, env });
    if (commit.status !== 0) findings.push(`git commit: ${commit.stderr.toString()}`);
    const ran = existsSync(join(dir, 'ran')) ? readFileSync(join(dir, 'ran'), 'utf8').split('\n') : [];
    const times = ran.filter((line) => line === 'pre-commit').length;
    if (times !== 1) findings.push(`the user's pre-commit ran ${String(times)} times`);
    if (!ran.includes('reference-transaction')) findings.push("the user's reference-transaction did not run");
    for (const isAgain of [false, true]) {
      writeFolder(bytes(dir), cut);
      if (isAgain) await installed(dir, host);
      const residue = await uninstalled(dir, host);
      const before = JSON.parse(readFileSync(recordOf(dir), 'utf8')) as string[];
      for (const left of [...residue, ...differences(before, kept(dir))])
        findings.push(`after ${isAgain ? 'init and ' : ''}uninstall: ${left}`);
    }
    return findings;
  },
};

/** With a hook in the first event and in the last. */
const isWhole = (settings: string): boolean =>
  /\/\* kept \*\/.*"SessionStart".*hook-entry.*"SessionEnd".*hook-entry.*\}\s*$/s.test(settings);

async function fired(dir: string, host: Place['host']): Promise<void> {
  const storage = await openStorage(dir, host);
  recordSeen(storage, 'claude-code', 'abcdefghijklmnop');
  const of = { agent: 'claude-code', session: 's1' } as const;
  keepAsked(storage, of, 'rename it');
  dropAsked(storage, of);
  await storage.close();
}

const recordOf = (dir: string): string => join(dir, '..', 'before.json');

/** All but what a person's git may write at any time: objects, and what the index knows of times. */
const kept = (dir: string): string[] =>
  listing(dir).filter((line) => !/^\.git\/(?:objects\/|index )/.test(line));

async function installed(dir: string, host: Place['host']): Promise<void> {
  const storage = await openStorage(dir, host);
  await install(storage, INSTALL);
  await storage.close();
}

async function uninstalled(dir: string, host: Place['host']): Promise<readonly string[]> {
  const storage = await openStorage(dir, host);
  const { residue } = await uninstall(storage, { purge: true });
  await storage.close();
  return residue;
}
