/**
 * The hook's side of the socket of its turn's keeper (lib/agents/wire.ts): hands the step on and waits for the answer.
 *
 * Null, and the hook does it itself, where there is no keeper, or it refused, ended or was silent too long. It may have
 * recorded the step all the same: done again, that is the same event.
 */
import { readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import type { AgentName } from '../lib/agents/step.js';
import {
  BUILD,
  FIRST_SIGN_MS,
  frame,
  Frames,
  INSIDE_TURN,
  LONGEST_PAYLOAD,
  openPrivate,
  PLACES,
  SILENCE_MS,
  SOCKET,
  socketFolder,
  type Request,
  type Sign,
} from '../lib/agents/wire.js';

export interface Handed {
  readonly agent: AgentName;
  readonly nonce: string;
  readonly payload: Buffer;
  readonly agentPid: string;
}

export interface Answered {
  readonly answer: string;
  readonly notes: readonly string[];
}

/** Throws nothing. */
export async function askKeeper(handed: Handed): Promise<Answered | null> {
  // A fault plan is about this process.
  if (process.env['DURABLE_FAULTS'] !== undefined || handed.payload.length > LONGEST_PAYLOAD) return null;
  try {
    const cwd = placeOf(handed.payload);
    const address = cwd === null ? null : addressAt(cwd);
    return address === null ? null : await exchange(address, messageOf(handed));
  } catch {
    // Whatever is the matter with payload, folder or socket: this process does the step, and says so if need be.
    return null;
  }
}

/** Where a step inside a turn takes place; null for any other event. Throws for what is no JSON. */
function placeOf(payload: Buffer): string | null {
  const said: unknown = JSON.parse(payload.toString('utf8'));
  if (typeof said !== 'object' || said === null) return null;
  const {
    hook_event_name: name,
    hook = name,
    cwd,
    directory = cwd,
  }: Partial<Record<string, unknown>> = {
    ...said,
  };
  if (typeof hook !== 'string' || !INSIDE_TURN.has(hook)) return null;
  return typeof directory === 'string' ? directory : process.cwd();
}

/** Throws where there is none; null where it is not to be trusted. */
function addressAt(cwd: string): string | null {
  const user = process.geteuid?.();
  const gitDir = user === undefined ? null : gitDirAbove(realpathSync(cwd));
  if (user === undefined || gitDir === null) return null;
  return openPrivate(socketFolder(join(gitDir, 'durable'), user), user)?.address(SOCKET) ?? null;
}

/** As git finds it in all but rare places; the keeper asks git whether this one is its own. */
function gitDirAbove(folder: string): string | null {
  for (let at = folder; ; at = dirname(at)) {
    const path = join(at, '.git');
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat?.isDirectory() === true) return path;
    if (stat !== undefined) {
      const named = /^gitdir: (.*?)\n?$/s.exec(readFileSync(path, 'utf8'))?.[1];
      return named === undefined ? null : resolve(at, named);
    }
    if (at === dirname(at)) return null;
  }
}

function messageOf({ agent, nonce, payload, agentPid }: Handed): Buffer {
  const request: Request = {
    build: BUILD,
    agent,
    nonce,
    cwd: process.cwd(),
    agentPid,
    parent: process.ppid,
    pidNamespace: process.platform === 'linux' ? readlinkSync('/proc/self/ns/pid') : '',
    marker: process.env['DURABLE_MARKER'] ?? null,
    elapsedMs: sinceStart(),
    places: PLACES.map((name) => process.env[name] ?? null),
  };
  return Buffer.concat([frame(Buffer.from(JSON.stringify(request), 'utf8')), frame(payload)]);
}

function exchange(address: string, message: Buffer): Promise<Answered | null> {
  return new Promise((done) => {
    const socket = connect(address);
    const frames = new Frames(LONGEST_PAYLOAD);
    let silence = setTimeout(giveUp, FIRST_SIGN_MS);
    function settle(answered: Answered | null): void {
      clearTimeout(silence);
      socket.destroy();
      done(answered);
    }
    function giveUp(): void {
      settle(null);
    }
    socket.on('error', giveUp);
    socket.on('close', giveUp);
    socket.on('data', (chunk) => {
      const whole = frames.take(chunk);
      const last = whole?.at(-1);
      if (whole === null) giveUp();
      if (last === undefined) return;
      const sign = JSON.parse(last.toString('utf8')) as Sign;
      if ('answer' in sign) settle(sign);
      else if ('refused' in sign) giveUp();
      else {
        clearTimeout(silence);
        silence = setTimeout(giveUp, patience(sign.withinMs));
      }
    });
    socket.write(message);
  });
}

/** Half of what is left has to do for the step itself. */
function patience(withinMs: number): number {
  return Math.max(0, Math.min(SILENCE_MS, (withinMs - sinceStart()) / 2));
}

/** Milliseconds; `performance` would be loaded for it. */
const sinceStart = (): number => process.uptime() * 1000;
