/**
 * Permission bits of what we make in the git dir, as `core.sharedRepository` asks (git-config; git's own rule, from the
 * behaviour of `git init --shared`): `group` and `all` add bits to what the umask leaves, an octal number sets them.
 *
 * Without it everything of ours under `durable/` is for its owner alone (0700, 0600), and objects and refs are as git
 * makes them. With it the other users of the repository can take locks and keep objects there too.
 */
import type { FileBits } from './disk.js';

export interface Bits {
  /** Folders under `durable/`. */
  readonly privateDir: FileBits;
  /** Files under `durable/` (tickets, which are locks as well). */
  readonly privateFile: FileBits;
  /** Folders under `objects/` and `refs/`. */
  readonly dir: FileBits;
  /** Objects: read-only. */
  readonly object: FileBits;
  /** Refs. */
  readonly file: FileBits;
}

const SET_GROUP = 0o2000;

/** `value` is that of core.sharedRepository, undefined when it is not set. An unknown one is git's to refuse. */
export function bitsOf(value: string | undefined): Bits {
  const shared = sharing(value);
  if (shared === null)
    return { privateDir: 0o700, privateFile: 0o600, dir: 0o777, object: 0o444, file: 0o666 };
  const readable = shared.bits & 0o444;
  const dirs = shared.bits | ((shared.bits & 0o444) >> 2) | SET_GROUP;
  const bits = (masked: number, wanted: number): FileBits =>
    shared.exact ? { exact: wanted } : { masked, plus: wanted };
  return {
    privateDir: bits(0o700, dirs),
    privateFile: bits(0o600, shared.bits),
    dir: bits(0o777, dirs),
    object: bits(0o444, readable),
    file: bits(0o666, shared.bits),
  };
}

function sharing(value: string | undefined): { readonly bits: number; readonly exact: boolean } | null {
  const text = value?.toLowerCase() ?? 'umask';
  if (['group', 'true', 'yes', 'on', '1'].includes(text)) return { bits: 0o660, exact: false };
  if (['all', 'world', 'everybody', '2'].includes(text)) return { bits: 0o664, exact: false };
  if (/^0[0-7]{3}$/.test(text)) return { bits: parseInt(text, 8) & 0o666, exact: true };
  return null;
}
