/** Changes of a transaction, as short as tests want them. */
import type { Change } from '../../lib/files/transaction.js';

export const text = (content: string): Buffer => Buffer.from(content);
export const write = (
  path: string,
  content: string,
  more: Partial<Extract<Change, { kind: 'write' }>> = {},
): Change => ({
  kind: 'write',
  path,
  bytes: text(content),
  ...more,
});
