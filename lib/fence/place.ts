/** Where the parts of the fence lie in the git dir of a work tree. */
import { join } from 'node:path';

export const indexLock = (gitDir: string): string => join(gitDir, 'index.lock');

/** Newer git names the process in it when it refuses (core.lockfilePid); older git does not look. */
export const pidFile = (gitDir: string): string => join(gitDir, 'index~pid.lock');
