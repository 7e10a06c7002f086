/**
 * One opened repository: everything that reads or writes it, put together once.
 *
 * `openStorage` looks and writes nothing. `close` ends the reading git process and removes this process's ticket; a
 * program that does not close can still end, and what it leaves is removed by the next process that takes a lock.
 */
import { DurableError } from '../errors.js';
import type { Host } from '../host.js';
import { Locks } from './claims.js';
import { Disk } from './disk.js';
import { identityOf, type Identity } from './identity.js';
import { survey, type Config, type Layout } from './layout.js';
import { LooseObjects } from './loose.js';
import { DurableObjects, nativeBackend, type ObjectBackend, type ObjectStore } from './objects.js';
import { isomorphicBackend, isomorphicFits } from './objects-isomorphic.js';
import { Git } from './process.js';
import { FileRefs, type RefStore } from './refs.js';
import { Tickets } from './tickets.js';

export interface Settings {
  /** durable.fsync: whether every append is flushed. */
  readonly fsync: boolean;
  /** durable.maxFileSize in bytes: larger files are named by a checkpoint, not kept. */
  readonly maxFileSize: number;
  /** durable.ttl in milliseconds. */
  readonly ttlMs: number;
  /** durable.fence: what refuses a person's git while a turn is open. */
  readonly fence: 'strict' | 'hooks' | 'off';
  /** durable.lockWait in milliseconds: how long the start of a turn waits for a live git. */
  readonly lockWaitMs: number;
  /** durable.wait in milliseconds: how long a hook waits for an answer from another terminal before its host asks. */
  readonly waitMs: number;
  /** durable.hookLimit in milliseconds: the limit that an agent's hooks were given; 0: the agent's own. */
  readonly hookLimitMs: number;
  /** durable.idle in milliseconds: when a turn of an agent's hooks counts as abandoned; 0: never. */
  readonly idleMs: number;
}

export interface UnreadableSetting {
  readonly detail: string;
  /** What to type. */
  readonly fix: string;
}

export interface Storage {
  readonly host: Host;
  readonly layout: Layout;
  readonly disk: Disk;
  readonly git: Git;
  readonly objects: ObjectStore;
  readonly refs: RefStore;
  readonly identity: Identity;
  readonly settings: Settings;
  /** Of these `settings` has the defaults; none where a bad one is refused. */
  readonly unreadable: readonly UnreadableSetting[];
  /** Merged git configuration under `durable.` and a few keys of git's own, as it was at opening. */
  readonly config: Config;
  readonly tickets: Tickets;
  readonly locks: Locks;
  /** The journal and loose files below `objects`. */
  readonly loose: LooseObjects;
  close(): Promise<void>;
}

export interface Opening {
  /** What only looks must say what it finds beside a bad setting; what writes must not guess what was meant. */
  readonly badSettings: 'refuse' | 'default';
}

/** Errors: those of `discover`, and 'usage' for a setting that cannot be read, unless that is let be. */
export async function openStorage(
  dir: string,
  host: Host,
  { badSettings }: Opening = { badSettings: 'refuse' },
): Promise<Storage> {
  const { layout, config } = await survey(dir, host);
  const unreadable: UnreadableSetting[] = [];
  const settings = settingsOf(config, (found) => {
    if (badSettings === 'refuse')
      throw new DurableError('usage', { detail: `${found.detail}; type: ${found.fix}` });
    unreadable.push(found);
  });
  const disk = new Disk(host.faults, settings.fsync);
  const git = new Git(layout.workTree, host.env, host.faults);
  const identity = identityOf(host);
  const tickets = new Tickets({ layout, host, identity });
  const locks = new Locks({ disk, layout, tickets, identity });
  const loose = new LooseObjects({ layout, disk, tickets });
  const objects = new DurableObjects({ layout, loose, backend: backendOf(layout, git, config) });
  const refs = new FileRefs({ layout, disk, tickets, locks, host });
  const close = async (): Promise<void> => {
    await objects.close();
    tickets.drop();
  };
  const parts = { host, layout, disk, git, objects, refs, identity, settings, unreadable, config };
  return { ...parts, tickets, locks, loose, close };
}

/**
 * Native git everywhere, unless `durable.objects=isomorphic` asks for the other one and the repository allows it.
 * Measured (1,500 events, medians): a write without fsync 0.6 ms against 1.4, a packed read 0.06 against 0.15, a list
 * of 1,500 packed 40 ms against 225, and loading isomorphic-git costs 80 ms where starting cat-file costs 4.
 */
function backendOf(layout: Layout, git: Git, config: Config): ObjectBackend {
  const isomorphic = config.get('durable.objects') === 'isomorphic' && isomorphicFits(layout);
  return isomorphic ? isomorphicBackend(layout) : nativeBackend(git);
}

/** Told of each setting that cannot be read; when it returns, the default is taken. */
type OnBad = (found: UnreadableSetting) => void;

function settingsOf(config: Config, bad: OnBad): Settings {
  const size = (key: string, otherwise: number): number => sizeIn(config, key, bad) ?? otherwise;
  return {
    fsync: boolIn(config, 'durable.fsync', bad) ?? true,
    maxFileSize: size('durable.maxfilesize', 64 * 1024 * 1024),
    ttlMs: size('durable.ttl', 30) * 1000,
    fence: fenceIn(config, bad) ?? 'strict',
    lockWaitMs: size('durable.lockwait', 10) * 1000,
    waitMs: size('durable.wait', 0) * 1000,
    idleMs: size('durable.idle', 6 * 3600) * 1000,
    hookLimitMs: size('durable.hooklimit', 0) * 1000,
  };
}

/** As git reads booleans (git-config, "Values"); undefined where nothing readable is set, as of the others. */
function boolIn(config: Config, key: string, bad: OnBad): boolean | undefined {
  const text = config.get(key)?.toLowerCase();
  if (text === undefined) return undefined;
  if (['true', 'yes', 'on', '1'].includes(text)) return true;
  if (['false', 'no', 'off', '0', ''].includes(text)) return false;
  bad(unreadable(key, text, 'true or false'));
  return undefined;
}

function fenceIn(config: Config, bad: OnBad): Settings['fence'] | undefined {
  const text = config.get('durable.fence')?.toLowerCase();
  if (text === undefined || text === 'strict' || text === 'hooks' || text === 'off') return text;
  bad(unreadable('durable.fence', text, 'strict, hooks or off'));
  return undefined;
}

/** As git reads integers: k, m and g are powers of 1024. */
function sizeIn(config: Config, key: string, bad: OnBad): number | undefined {
  const text = config.get(key);
  if (text === undefined) return undefined;
  const match = /^(\d+)([kmg]?)$/i.exec(text.trim());
  if (match === null) {
    bad(unreadable(key, text, 'a number, with k, m or g'));
    return undefined;
  }
  const power = ['', 'k', 'm', 'g'].indexOf((match[2] ?? '').toLowerCase());
  return Number(match[1]) * 1024 ** power;
}

const unreadable = (key: string, text: string, wanted: string): UnreadableSetting => ({
  detail: `the setting ${key} is '${text}' and must be ${wanted}`,
  fix: `git config ${key} VALUE`,
});
