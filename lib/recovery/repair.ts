import type { Storage } from '../git/storage.js';
import type { EventDraft } from '../event.js';
import type { RepairAction, RepairResult } from './document.js';
import type { Ledger } from '../ledger/ledger.js';
export async function repair(_s: Storage, _o: { action: RepairAction; turn?: string; takeOver?: boolean }): Promise<RepairResult> { throw new Error('stub'); }
export async function recoveredDraft(_s: Storage, ledger: Ledger, o: { turn: string; held: unknown; action: string }): Promise<EventDraft> {
  const [report] = await ledger.contents.keep([Buffer.from('{}')]);
  return { type: 'turn.recovered', turn: o.turn, action: 'resume', checkpoint: null, report: report!, invocations: [], files: { untouched: 0, written: 0, partial: 0, foreign: 0, deleted: 0, changed: 0 }, restored: 0, removed: 0, ended: [] };
}
