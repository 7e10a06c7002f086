// LOCAL STUB, never committed
import type { Ledger } from '../ledger/ledger.js';
import type { Storage } from '../git/storage.js';
export interface TakenCheckpoint { checkpoint: string; tree: string; files: number; changed: number; skipped: readonly { path: string; why: string; digest: string | null }[] }
export async function takeCheckpoint(storage: Storage, ledger: Ledger, o: { message: string; reason: string; turn: string | null; by: { agent: string; workspace: string }; paths?: readonly string[] }): Promise<TakenCheckpoint> {
  const tree = await storage.objects.write('tree', Buffer.alloc(0));
  const checkpoint = await ledger.contents.commitTree({ worktree: tree, message: o.message });
  await ledger.append(() => [{ type: 'checkpoint.taken', turn: o.turn, checkpoint, tree, message: o.message, files: 0, changed: 0, skipped: 0, skippedList: [], reason: o.reason as 'manual' }], { lease: null, ...o.by });
  return { checkpoint, tree, files: 0, changed: 0, skipped: [] };
}
