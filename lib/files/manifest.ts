/**
 * The manifest of a transaction: for each path the image before and the image after.
 *
 * It is a content (it grows with the change, the ledger does not), kept in the commit that also holds every blob it
 * names; `transaction.prepared` names both. With it alone a path can be put back or brought forward by another
 * process after a crash: it is the rollback journal.
 */
import * as v from 'valibot';
import { canonicalJson } from '../canonical.js';
import { DurableError } from '../errors.js';
import { SCHEMAS, type Image } from '../event.js';

export const MANIFEST_VERSION = 1;

const image = SCHEMAS['conflict.detected'].entries.base;
const path = SCHEMAS['conflict.detected'].entries.path;

const entry = v.strictObject({
  path,
  before: image,
  after: image,
  /** Permission bits of the file from before (0 to 0o777): git's modes keep one bit of them. */
  permissions: v.nullable(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(0o777))),
});

const manifest = v.strictObject({
  v: v.literal(MANIFEST_VERSION),
  /** In the order in which they are applied. */
  entries: v.array(entry),
  /** Folders that were not there and are made, parents first: removed again on the way back when they are empty. */
  folders: v.array(path),
});

export type ManifestEntry = v.InferOutput<typeof entry>;
export type Manifest = v.InferOutput<typeof manifest>;

/** A path and the two images between which it moves; `from` is what must be there. */
export interface Move {
  readonly path: string;
  readonly from: Image;
  readonly to: Image;
  /** Permission bits the new file gets (cut to the image's mode). Default: those of the file it replaces, else git's. */
  readonly permissions?: number | null;
}

export function encodeManifest(value: Manifest): Buffer {
  return Buffer.from(canonicalJson(value), 'utf8');
}

/** Throws 'event-invalid', or 'version-unsupported' for one written by a newer program. */
export function decodeManifest(bytes: Uint8Array, commit: string): Manifest {
  const json = parse(bytes, commit);
  const found = v.safeParse(v.looseObject({ v: v.number() }), json);
  if (found.success && found.output.v > MANIFEST_VERSION) {
    const where = `the manifest in ${commit}`;
    throw new DurableError('version-unsupported', {
      found: found.output.v,
      supported: MANIFEST_VERSION,
      where,
    });
  }
  const decoded = v.safeParse(manifest, json);
  if (decoded.success) return decoded.output;
  throw new DurableError('event-invalid', { commit, detail: `manifest: ${decoded.issues[0].message}` });
}

function parse(bytes: Uint8Array, commit: string): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch (error) {
    throw new DurableError('event-invalid', { commit, detail: 'its manifest is not JSON' }, error);
  }
}
