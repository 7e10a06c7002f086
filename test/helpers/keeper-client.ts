/** A hook's side of a keeper's socket, spoken by a test: what is asked may be anything. */
import { once } from 'node:events';
import { readFileSync, readlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { BUILD, frame, Frames, openPrivate, PLACES, SOCKET, socketFolder } from '../../lib/agents/wire.js';
import { PROGRAMS } from '../../lib/package.js';
import { isRecord } from './json.js';

export const userId = (): number => process.geteuid?.() ?? 0;

export const keeperFolder = (dir: string): string => socketFolder(join(dir, '.git/durable'), userId());

export const keeperSocket = (dir: string): string => join(keeperFolder(dir), SOCKET);

/** The last thing that the keeper says; null when it hangs up. */
export async function askKeeper(
  dir: string,
  payload: unknown,
  request: Readonly<Record<string, unknown>>,
): Promise<Readonly<Record<string, unknown>> | null> {
  const folder = openPrivate(keeperFolder(dir), userId());
  if (folder === null) throw new Error('the folder of the socket is not private');
  const socket = connect(folder.address(SOCKET));
  const frames = new Frames(1 << 20);
  let last: unknown = null;
  socket.on('data', (chunk) => {
    const newest = frames.take(chunk)?.at(-1);
    if (newest !== undefined) last = JSON.parse(newest.toString('utf8'));
  });
  socket.write(frame(Buffer.from(JSON.stringify(request))));
  socket.write(frame(Buffer.from(JSON.stringify(payload))));
  await once(socket, 'close');
  folder.close();
  return isRecord(last) && !('withinMs' in last) ? last : null;
}

/** As a hook of this process would ask. */
export function requestFor(
  env: Readonly<Record<string, string | undefined>>,
  agentPid: number,
): Record<string, unknown> {
  return {
    build: BUILD,
    agent: 'claude-code',
    nonce: '',
    cwd: '/',
    agentPid: String(agentPid),
    parent: process.pid,
    pidNamespace: readlinkSync('/proc/self/ns/pid'),
    marker: null,
    elapsedMs: 0,
    places: PLACES.map((name) => env[name] ?? null),
  };
}

/** The build of the programs, by which their keepers and hooks know each other; a test is none of them. */
export function buildOfPrograms(): string {
  const build = /"([0-9a-f]{32})"/.exec(readFileSync(PROGRAMS.hook, 'utf8'))?.[1];
  if (build === undefined) throw new Error('no build is named');
  return build;
}
