/**
 * What a hook and the keeper of its turn say to each other, and where they meet: one request a connection.
 *
 *     hook    -> frame(JSON of Request) frame(payload, the bytes as the agent gave them)
 *     keeper  -> frame(JSON of Sign) …, of which the last one is an answer or a refusal to serve
 *
 * A frame is its length as four bytes, the highest first, and so many bytes. The socket lies in a folder of the work tree's own
 * git dir, below `durable`, that nobody but its user can enter; both sides look at owner and bits of the folder that they have
 * open, and reach the socket through that very descriptor. So its address is short, however deep the repository lies
 * (sockaddr_un holds 107 bytes of path; `/proc/self/fd/20/s` has 18), and nobody can put another folder in between. Caveat: needs
 * Linux's /proc; elsewhere the path itself is the address, and one that is too long for it is none.
 *
 * A socket that nobody listens on (its keeper was killed) refuses the connection by itself. This module and what it imports are all that
 * a hook loads while a keeper answers.
 */
import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentName } from './step.js';

declare const DURABLE_BUILD: string | undefined;

/** Of all the code of this package, put in by .build.mjs: a keeper serves hooks of its own build only. */
export const BUILD = typeof DURABLE_BUILD === 'string' ? DURABLE_BUILD : 'not bundled';

/** Events that come inside a turn, by their hosts' names. At all others a turn begins or ends, and with it its keeper. */
export const INSIDE_TURN: ReadonlySet<string> = new Set([
  ...['PreToolUse', 'PermissionRequest', 'PostToolUse', 'PostToolUseFailure'],
  ...['tool.execute.before', 'tool.execute.after', 'event:permission.asked', 'event:permission.replied'],
]);

/** Variables by which git, or we, find something: where they differ from the keeper's it answers nothing. */
export const PLACES = ['PATH', 'HOME', 'XDG_CONFIG_HOME', 'TMPDIR'] as const;

export interface Request {
  readonly build: string;
  readonly agent: AgentName;
  readonly nonce: string;
  /** The hook's own folder, for a host that says none. */
  readonly cwd: string;
  /** The agent's pid as the environment says it; '' where it does not. */
  readonly agentPid: string;
  /** The hook's parent, from which the agent is found where the environment does not say. */
  readonly parent: number;
  /** Of the hook: pids of another one mean other processes. '' where the system has none. */
  readonly pidNamespace: string;
  /** DURABLE_MARKER of the hook's environment: what tells an agent that the turn has started. */
  readonly marker: string | null;
  /** Milliseconds since the hook's start. */
  readonly elapsedMs: number;
  /** The values of PLACES, in their order. */
  readonly places: readonly (string | null)[];
}

export type Sign =
  /** At work; the answer comes within so many milliseconds of the hook's start, by the host's limit. Said again and again. */
  | { readonly withinMs: number }
  /** What the hook prints, and the lines that it notes on standard error. */
  | { readonly answer: string; readonly notes: readonly string[] }
  /** Nothing was recorded: the hook has to run the step itself. */
  | { readonly refused: string };

/** How often a keeper says that it is at work, and how long a hook waits for the first and any later sign. Milliseconds. */
export const BEAT_MS = 100;
export const FIRST_SIGN_MS = 400;
export const SILENCE_MS = 600;

/** Larger ones a keeper, which lives long, is not given. Bytes. */
export const LONGEST_PAYLOAD = 4 * 1024 * 1024;
export const LONGEST_REQUEST = 64 * 1024;

export function frame(bytes: Uint8Array): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt32BE(bytes.length);
  return Buffer.concat([head, bytes]);
}

/** Cuts what arrives into frames. */
export class Frames {
  #chunks: Buffer[] = [];
  #length = 0;
  readonly #longest: number;

  constructor(longest: number) {
    this.#longest = longest;
  }

  /** The frames that are whole by now; null for one that is longer than allowed. */
  take(chunk: Buffer): Buffer[] | null {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    const whole: Buffer[] = [];
    for (let size = this.#size(); size !== null; size = this.#size()) {
      if (size > this.#longest) return null;
      if (this.#length < 4 + size) break;
      const bytes = this.#joined();
      whole.push(bytes.subarray(4, 4 + size));
      this.#chunks = [bytes.subarray(4 + size)];
      this.#length -= 4 + size;
    }
    return whole;
  }

  #size(): number | null {
    if (this.#length < 4) return null;
    if ((this.#chunks[0]?.length ?? 0) < 4) this.#joined();
    return this.#chunks[0]?.readUInt32BE() ?? null;
  }

  #joined(): Buffer {
    const bytes = Buffer.concat(this.#chunks);
    this.#chunks = [bytes];
    return bytes;
  }
}

/** The socket's name in its folder. */
export const SOCKET = 's';

/** Of each user its own: a repository may be shared. `local`: `<git dir>/durable`. */
export const socketFolder = (local: string, user: number): string => join(local, `keeper-${String(user)}`);

export interface PrivateFolder {
  /** The address of a socket in it. */
  readonly address: (name: string) => string;
  readonly close: () => void;
}

/** Throws what the system says where there is no such folder. Null: it is not this user's alone, or no address reaches it. */
export function openPrivate(folder: string, user: number): PrivateFolder | null {
  const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  const close = (): void => {
    closeSync(fd);
  };
  const { uid, mode } = fstatSync(fd);
  const base = process.platform === 'linux' ? `/proc/self/fd/${String(fd)}` : folder;
  if (uid === user && (mode & 0o077) === 0 && Buffer.byteLength(base) <= LONGEST_BASE)
    return { address: (name) => `${base}/${name}`, close };
  close();
  return null;
}

/** Bytes; sun_path has 104 on the systems that have least. */
const LONGEST_BASE = 80;
