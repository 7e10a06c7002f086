/**
 * Recording a conflict: somebody else's bytes where ours were to go. Nothing is chosen, both sides are kept.
 *
 * The blobs go among the contents first, then `conflict.detected` names them; `resolve` decides later, by a person.
 */
import type { EventOf, Image } from '../event.js';
import type { Storage } from '../git/storage.js';
import { freshId } from '../host.js';
import type { Ledger } from '../ledger/ledger.js';
import type { Clash } from './apply.js';

export interface ConflictContext {
  readonly storage: Storage;
  readonly ledger: Ledger;
  readonly agent: string;
  readonly workspace: string | null;
  readonly turn: string | null;
}

export interface FoundConflict {
  /** `move.from` is what was expected there, `move.to` what was to come. */
  readonly clash: Clash;
  /** Bytes of `move.to`, where they are not among the objects already. */
  readonly mine: Uint8Array | null;
  readonly why: EventOf<'conflict.detected'>['why'];
}

/** Returns the conflict's id. */
export async function recordConflict(context: ConflictContext, conflict: FoundConflict): Promise<string> {
  const { storage, ledger, agent, workspace, turn } = context;
  const { clash, mine, why } = conflict;
  const payload = new Map<string, string>();
  for (const [name, bytes] of [
    ['theirs', clash.bytes],
    ['mine', mine],
  ] as const) {
    if (bytes !== null) payload.set(name, await storage.objects.write('blob', bytes));
  }
  const id = freshId(storage.host);
  await ledger.contents.commitTree({ payload, message: `conflict ${id}` });
  const theirs: Image = typeof clash.found === 'string' ? null : clash.found;
  const { path, from, to } = clash.move;
  await ledger.append(
    () => [{ type: 'conflict.detected', turn, conflict: id, path, base: from, theirs, mine: to, why }],
    { lease: null, agent, workspace },
  );
  return id;
}
