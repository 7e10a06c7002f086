/** Changes of the work tree that a person or their editor makes: named to strace, and no fault point of the product. */
import { accessSync } from 'node:fs';

const USER = '/durable-point/user:edit:write';

export function asUser(change: () => void): void {
  mark(`${USER}:before`);
  change();
  mark(`${USER}:after`);
}

function mark(path: string): void {
  try {
    accessSync(path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
}
