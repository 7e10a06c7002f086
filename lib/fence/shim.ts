/**
 * What the processes of a turn need so that their own git passes the fence: `hooks/git/shim` first on PATH, and where the turn's
 * private index lies. No secret is in it. Without `index.lock` (mode `hooks`) the
 * shim only notes which commands are the turn's own.
 *
 * A login shell puts PATH anew from its profile; bash then runs what BASH_ENV names (GNU Bash Reference Manual, Bash Startup Files), which puts the
 * shim first again. Caveat: no other shell has that for commands, so a login zsh has the shim only if its profile leaves PATH's beginning alone.
 */
import { delimiter } from 'node:path';
import type { Storage } from '../git/storage.js';
import { packageFile } from '../package.js';

/** The folder that holds the program `git` of the shim. */
export const SHIM = packageFile('hooks/git/shim');

const BASH_ENV = packageFile('hooks/git/bash-env.sh');

/** To be laid over the environment of each child process of the turn; `stageDir` is its staging directory. */
export function shimEnvironment(
  storage: Storage,
  { turn, stageDir }: { readonly turn: string; readonly stageDir: string },
): Record<string, string> {
  if (storage.settings.fence === 'off') return {};
  const path = storage.host.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin';
  const folders = path.split(delimiter).filter((folder) => folder !== SHIM);
  return {
    PATH: [SHIM, ...folders].join(delimiter),
    DURABLE_SHIM: SHIM,
    DURABLE_STAGE: stageDir,
    DURABLE_GIT_DIR: storage.layout.gitDir,
    DURABLE_TURN: turn,
    ...bashEnvironment(storage),
  };
}

/** Bash expands its value, as words between double quotes. */
function bashEnvironment({ host }: Storage): Record<string, string> {
  const own = host.env['BASH_ENV'] ?? '';
  if (/[$`\\"]/.test(BASH_ENV)) return {};
  return own === BASH_ENV ? { BASH_ENV } : { BASH_ENV, DURABLE_BASH_ENV: own };
}
