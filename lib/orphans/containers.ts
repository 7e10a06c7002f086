/**
 * Containers that carry a turn's marker, in a variable (`docker run -e DURABLE_MARKER …`) or as the value of any label.
 *
 * A container's processes are children of a daemon: neither environment, group nor ancestors of the processes here lead to them, so
 * docker and podman are asked. The marker is a secret, and what stands on a command line anybody can read: every running
 * container is inspected, and hashes are compared here. A client that does not answer (no daemon, no permission, too slow)
 * shows no containers, and is named.
 * Caveat: a container in which the agent put no marker is not found; nor one of another user's podman.
 */
import * as v from 'valibot';
import { digest } from '../canonical.js';
import type { Host } from '../host.js';
import { MARKER } from '../lease/processes.js';
import { clientOnPath, runClient, type ClientAnswer } from './client.js';

const CLIENTS = ['docker', 'podman'] as const;

/** For a list of containers, which is two answers of a client. */
const ASK_MS = 2000;
/** The client's own wait between TERM and KILL, and how long it is given for both. */
const TERM_SECONDS = 2;
const STOP_MS = 10_000;

export interface Container {
  /** Its program's file. */
  readonly client: string;
  readonly id: string;
  readonly pid: number;
  readonly start: string;
  readonly name: string;
  readonly image: string;
  /** SHA-256 of each value that may be a marker. */
  readonly hashes: ReadonlySet<string>;
}

export interface Containers {
  readonly running: readonly Container[];
  /** One sentence for each client that is there and did not answer. */
  readonly silent: readonly string[];
}

export const NO_CONTAINERS: Containers = { running: [], silent: [] };

const INSPECTED = v.object({
  Id: v.string(),
  Name: v.optional(v.string(), ''),
  State: v.object({
    Pid: v.optional(v.number(), 0),
    StartedAt: v.optional(v.string(), ''),
    Running: v.optional(v.boolean(), true),
  }),
  Config: v.object({
    Image: v.optional(v.string(), ''),
    Env: v.nullish(v.array(v.string())),
    Labels: v.nullish(v.record(v.string(), v.string())),
  }),
});

type Inspected = v.InferOutput<typeof INSPECTED>;

/** Every running container that some client shows. Throws nothing. */
export async function runningContainers(host: Host): Promise<Containers> {
  const asked = await Promise.all(
    CLIENTS.map(async (name) => {
      const client = clientOnPath(host, name);
      return client === null ? NO_CONTAINERS : listed(host, client, name);
    }),
  );
  const byId = new Map(asked.flatMap(({ running }) => running).map((one) => [one.id, one]));
  return { running: [...byId.values()], silent: asked.flatMap(({ silent }) => silent) };
}

/**
 * Ends exactly these containers of one client, all at once, so that a client that hangs costs the same for one and for
 * hundreds. Returns those that are not proven to run no more.
 */
export async function stopContainers(host: Host, client: string, ids: readonly string[]): Promise<string[]> {
  const end = (words: readonly string[], which: readonly string[]): Promise<ClientAnswer> =>
    runClient(host, [client, ...words, ...which], { site: 'container.stop', budgetMs: STOP_MS });
  await end(['stop', '-t', String(TERM_SECONDS)], ids);
  const stubborn = await stillRunning(host, client, ids);
  if (stubborn.length === 0) return [];
  await end(['kill'], stubborn);
  return stillRunning(host, client, stubborn);
}

async function stillRunning(host: Host, client: string, ids: readonly string[]): Promise<string[]> {
  const answer = await ask(host, [client, 'ps', '--quiet', '--no-trunc'], ASK_MS);
  if (answer.code !== 0) return [...ids];
  const running = idsIn(answer.stdout);
  return ids.filter((id) => running.includes(id));
}

async function listed(host: Host, client: string, name: string): Promise<Containers> {
  const until = host.monotonicMs() + ASK_MS;
  const answer = await ask(host, [client, 'ps', '--quiet', '--no-trunc'], ASK_MS);
  if (answer.code !== 0) return { running: [], silent: [silence(name, answer)] };
  const ids = idsIn(answer.stdout);
  if (ids.length === 0) return NO_CONTAINERS;
  // One that ends in between makes the code another one; the others are printed all the same.
  const inspected = await ask(host, [client, 'inspect', ...ids], until - host.monotonicMs());
  const found = decoded(inspected.stdout);
  if (found === null) return { running: [], silent: [silence(name, inspected)] };
  return {
    // What was not asked about is no answer, and its id would stand on a command line of `stop`.
    running: found
      .filter(({ Id, State }) => State.Running && ids.includes(Id))
      .map((one) => container(client, one)),
    silent: [],
  };
}

const ask = (host: Host, command: readonly [string, ...string[]], budgetMs: number): Promise<ClientAnswer> =>
  runClient(host, command, { site: 'container.ask', budgetMs });

const silence = (name: string, { isLate }: ClientAnswer): string =>
  isLate ? `${name} did not answer within ${String(ASK_MS / 1000)} s` : `${name} gave no list of containers`;

const idsIn = (text: string): string[] => text.split(/\s+/).filter((word) => /^[0-9a-f]{12,64}$/.test(word));

function decoded(text: string): Inspected[] | null {
  try {
    const parsed: unknown = JSON.parse(text);
    if (!Array.isArray(parsed)) return null;
    // One that cannot be read keeps no other from being found.
    const shown = parsed.map((one) => v.safeParse(INSPECTED, one));
    return shown.flatMap((one) => (one.success ? [one.output] : []));
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function container(client: string, { Id, Name, State, Config }: Inspected): Container {
  const variable = `${MARKER}=`;
  const inEnvironment = (Config.Env ?? []).filter((one) => one.startsWith(variable));
  const values = [
    ...inEnvironment.map((one) => one.slice(variable.length)),
    ...Object.values(Config.Labels ?? {}),
  ];
  return {
    client,
    id: Id,
    pid: Math.max(0, Math.trunc(State.Pid)),
    start: State.StartedAt,
    name: Name.replace(/^\//, ''),
    image: Config.Image,
    hashes: new Set(values.map((value) => digest(value))),
  };
}
