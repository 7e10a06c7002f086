/**
 * Starting the keeper: a detached process in a session of its own, so that it outlives the agent whose death it has to
 * see. Its parameters stand on its command line and hold no secret; the turn's marker is taken out of its
 * environment, since a search by marker finds what the turn may still write, and the keeper never writes the tree.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { DurableError } from '../errors.js';
import { errno } from '../git/disk.js';
import type { Storage } from '../git/storage.js';
import { PROGRAMS } from '../package.js';
import { AGENT_PIDS, type ProcessIdentity } from './processes.js';
import type { LeaseToken } from './record.js';

export interface KeeperParameters {
  /** Any folder of the work tree. */
  readonly dir: string;
  readonly token: LeaseToken;
  readonly agent: ProcessIdentity;
  /** Whether a turn in which nothing happens any more is ended, after `durable.idle`. */
  readonly endsIdle: boolean;
}

export interface KeeperProcess {
  readonly pid: number;
  /** Asks it to end and waits until it has; a stuck one is killed. */
  end(): Promise<void>;
}

/**
 * A keeper lives as long as its turn and makes little garbage: the young generation need not grow, nor the old one ahead of time. Measured on
 * Linux with node 20: 55 MB resident, 13 MB of it private, where a bare node has 40 and 6; after 600 steps of an agent that it took
 * (lib/agents/serve.ts) 65, without the second flag 71.
 */
const NODE_OPTIONS = ['--max-semi-space-size=1', '--optimize-for-size'];
const PATIENCE_MS = 1500;

/** Errors: 'io-failed' when the process cannot be started. */
export async function startKeeperProcess(
  storage: Storage,
  token: LeaseToken,
  { agent, endsIdle }: Pick<KeeperParameters, 'agent' | 'endsIdle'>,
): Promise<KeeperProcess> {
  const parameters: KeeperParameters = { dir: storage.layout.workTree, token, agent, endsIdle };
  storage.host.faults.hit('keeper.start:spawn:before');
  const child = spawn(process.execPath, [...NODE_OPTIONS, PROGRAMS.keeper, JSON.stringify(parameters)], {
    cwd: '/',
    detached: true,
    stdio: 'ignore',
    env: keeperEnvironment(storage.host.env),
  });
  try {
    await once(child, 'spawn');
  } catch (error) {
    throw new DurableError('io-failed', { path: process.execPath, errno: errno(error) }, error);
  }
  storage.host.faults.hit('keeper.start:spawn:after');
  child.unref();
  return { pid: child.pid ?? 0, end: () => endKeeper(child) };
}

async function endKeeper(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.ref();
  child.kill('SIGTERM');
  const impatient = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
  await ended;
  clearTimeout(impatient);
}

/**
 * Faults planned for the agent are not the keeper's; it has a plan of its own. NODE_EXTRA_CA_CERTS costs 80 ms. A hook of an agent has
 * the agent's pid from it, by which the keeper would be taken for something that the agent left running.
 */
function keeperEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    const isOurs = name.startsWith('DURABLE_') || name.startsWith('NODE_') || AGENT_PIDS.includes(name);
    if (value !== undefined && !isOurs) kept[name] = value;
  }
  const faults = env['DURABLE_KEEPER_FAULTS'];
  if (faults !== undefined) kept['DURABLE_FAULTS'] = faults;
  return kept;
}
