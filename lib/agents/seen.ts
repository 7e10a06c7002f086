/**
 * That an agent's hooks fire: the last time one of an installation did, in `<git dir>/durable/agents/seen-AGENT`.
 *
 * The nonce is of the installation whose command fired, so a hook of an older one proves nothing for the newer. Written when the nonce is
 * another or an hour has passed: at any other call it is one small read.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { diskError, isAbsence } from '../git/disk.js';
import type { Storage } from '../git/storage.js';
import type { AgentName } from './step.js';

const SEEN = v.pipe(v.string(), v.parseJson(), v.object({ nonce: v.string(), at: v.string() }));

export type Seen = v.InferOutput<typeof SEEN>;

const HOUR_MS = 3_600_000;

const NONCE = /^[a-z2-7]{16}$/;

/** Nothing for what is no nonce of ours. Errors: the disk's. */
export function recordSeen(storage: Storage, agent: AgentName, nonce: string): void {
  if (!NONCE.test(nonce)) return;
  const { disk, host, layout } = storage;
  const now = host.now();
  const before = seenOf(storage, agent);
  const age = before === null ? Infinity : now.getTime() - Date.parse(before.at);
  // A clock that was set back must not silence it.
  if (before?.nonce === nonce && age >= 0 && age < HOUR_MS) return;
  const file = fileOf(storage, agent);
  const fresh = `${file}.${String(host.pid)}`;
  disk.makePassingDir('agent.seen', join(layout.local, 'agents'), layout.bits.privateDir);
  disk.unlink('agent.seen', fresh);
  const seen: Seen = { nonce, at: now.toISOString() };
  disk.createPassing('agent.seen', fresh, Buffer.from(`${JSON.stringify(seen)}\n`), { exact: 0o600 });
  disk.rename('agent.seen', fresh, file);
}

/** Null where none was seen, or what is there is torn. Errors: the disk's. */
export function seenOf(storage: Storage, agent: AgentName): Seen | null {
  const file = fileOf(storage, agent);
  try {
    const parsed = v.safeParse(SEEN, readFileSync(file, 'utf8'));
    return parsed.success ? parsed.output : null;
  } catch (error) {
    if (isAbsence(error)) return null;
    throw diskError(error, file);
  }
}

const fileOf = ({ layout }: Storage, agent: AgentName): string =>
  join(layout.local, 'agents', `seen-${agent}`);
