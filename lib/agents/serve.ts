/**
 * The keeper's side of a turn's socket: it takes the steps of the turn that it keeps, in place of the hooks that bring them.
 *
 * A hook is a process of its own for each step; what it loads to record one costs more than the recording. The keeper has all
 * of it loaded, and the turn's state at hand. It takes a step by the same code as the hook would (answer.ts, gate.ts), or refuses before
 * anything is recorded, and the hook does it itself. Refused is
 *
 *   - what comes from another build, another pid namespace, with another PATH or HOME, or is not understood;
 *   - whose folder git says to be of another repository or another work tree, or whose configuration is not what it was when the keeper opened it;
 *   - a step that begins or ends a turn (a keeper would take away, or start, another keeper), and a step that is not of this very
 *     turn, by the agent's session and process as the gate tells it (own-turn.ts);
 *   - a question with `durable.wait`: its hook may be ended by the host while a person thinks, and nobody would take the answer.
 *
 * Nothing is believed of a request that the gate would not believe of the hook's own environment, and nobody but the same user
 * can make one (wire.ts). Several are served at once; the keeper's own looks go on meanwhile, since all that waits does so
 * asynchronously. All code is loaded before the first request: the package may be replaced under a keeper.
 *
 * Crash points: killed before, in or after a step, the hook sees the connection end and takes the step itself; the keys of the
 * ledger's events make two of them one. A hook that heard nothing for SILENCE_MS does the same beside a keeper that is stuck.
 * A change that was refused for being late, and got on record all the same, is ended there as denied.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { lstatSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import * as v from 'valibot';
import { isDurableError } from '../errors.js';
import { SHIM } from '../fence/shim.js';
import { isAbsence, namesIn } from '../git/disk.js';
import type { Storage } from '../git/storage.js';
import { Unchanged } from '../git/unchanged.js';
import { freshId } from '../host.js';
import type { LeaseToken } from '../lease/record.js';
import { agentProcess } from './agent-process.js';
import { answerTo, takeInTime } from './answer.js';
import { answerWithin } from './limits.js';
import { keyOf, ownTurn, type AgentProcess, type OwnTurn } from './own-turn.js';
import { AGENTS, type Reply, type Step } from './step.js';
import { stepIn } from './translate.js';
import {
  BEAT_MS,
  BUILD,
  frame,
  Frames,
  LONGEST_PAYLOAD,
  LONGEST_REQUEST,
  openPrivate,
  PLACES,
  SOCKET,
  socketFolder,
  type PrivateFolder,
  type Request,
  type Sign,
} from './wire.js';

const REQUEST = v.pipe(
  v.string(),
  v.parseJson(),
  v.strictObject({
    build: v.string(),
    agent: v.picklist(AGENTS),
    nonce: v.string(),
    cwd: v.string(),
    agentPid: v.string(),
    parent: v.number(),
    pidNamespace: v.string(),
    marker: v.nullable(v.string()),
    elapsedMs: v.number(),
    places: v.array(v.nullable(v.string())),
  }),
);

const INSIDE: ReadonlySet<Step['kind']> = new Set(['before-tool', 'after-tool', 'permission', 'answer']);

/** More at once are turned away, and taken by their hooks. */
const MOST_AT_ONCE = 32;
/** For a request to arrive whole. */
const ARRIVAL_MS = 10_000;
/** For the steps under way when the keeper ends. */
const PATIENCE_MS = 1000;

export interface Service {
  /** Takes the socket away, and lets what is under way end. Throws nothing. */
  readonly close: () => Promise<void>;
}

/** Null where no socket of this user alone can be made: the hooks do without. Errors: none. */
export function serve(storage: Storage, token: LeaseToken): Service | null {
  // Of that backend a part is loaded when it is first needed.
  if (storage.config.get('durable.objects') === 'isomorphic') return null;
  try {
    return Listener.open(storage, token);
  } catch (error) {
    if (isDurableError(error) || error instanceof Error) return null;
    throw error;
  }
}

class Listener implements Service {
  readonly #storage: Storage;
  readonly #token: LeaseToken;
  readonly #folder: PrivateFolder;
  readonly #file: string;
  readonly #server: Server;
  readonly #unchanged: Unchanged;
  readonly #sockets = new Set<Socket>();
  readonly #underWay = new Set<Promise<void>>();
  #inode = 0n;
  #isClosing = false;

  private constructor(
    storage: Storage,
    token: LeaseToken,
    place: { readonly folder: PrivateFolder; readonly file: string },
  ) {
    this.#storage = storage;
    this.#token = token;
    this.#folder = place.folder;
    this.#file = place.file;
    this.#unchanged = new Unchanged(storage);
    this.#server = createServer((socket) => {
      this.#accept(socket);
    });
    this.#server.maxConnections = MOST_AT_ONCE;
  }

  static open(storage: Storage, token: LeaseToken): Listener | null {
    const user = process.geteuid?.();
    if (user === undefined) return null;
    const path = socketFolder(storage.layout.local, user);
    storage.disk.makePassingDir('keeper.listen', path, { exact: 0o700 });
    const folder = openPrivate(path, user);
    if (folder === null) return null;
    const listener = new Listener(storage, token, { folder, file: join(path, SOCKET) });
    listener.#listen(path);
    return listener;
  }

  /** Under a name of its own first: the one that hooks know is taken over whole, from whichever keeper had it. */
  #listen(path: string): void {
    const { host, disk } = this.#storage;
    const fresh = `${SOCKET}.${freshId(host, 8)}`;
    // What an earlier one left that was killed in between.
    for (const name of namesIn(path)) if (name !== SOCKET) disk.unlink('keeper.listen', join(path, name));
    const before = process.umask(0o177);
    try {
      host.faults.hit('keeper.listen:bind:before');
      this.#server.on('error', () => undefined);
      // Bound when this returns, as any path is; what hinders it is told later, and then the rename finds nothing.
      this.#server.listen({ path: this.#folder.address(fresh) });
      host.faults.hit('keeper.listen:bind:after');
    } finally {
      process.umask(before);
    }
    if (disk.rename('keeper.listen', join(path, fresh), this.#file) !== 'done') return;
    this.#inode = lstatSync(this.#file, { bigint: true }).ino;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#server.close();
    this.#remove();
    await Promise.race([Promise.allSettled(this.#underWay), pause(PATIENCE_MS)]);
    for (const socket of this.#sockets) socket.destroy();
    this.#folder.close();
  }

  /** Unless a later keeper has taken the name over. */
  #remove(): void {
    try {
      const now = lstatSync(this.#file, { bigint: true }).ino;
      if (now === this.#inode) this.#storage.disk.unlink('keeper.listen', this.#file);
    } catch (error) {
      // Not there any more, or not to be removed: nobody listens on it, which is what hooks go by.
      if (!isAbsence(error) && !isDurableError(error)) throw error;
    }
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    const frames = new Frames(LONGEST_PAYLOAD);
    const whole: Buffer[] = [];
    socket.setTimeout(ARRIVAL_MS, () => socket.destroy());
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('data', (chunk) => {
      const more = frames.take(chunk);
      if (more === null) socket.destroy();
      else whole.push(...more);
      const [request, payload] = whole;
      if (request === undefined || payload === undefined) return;
      socket.removeAllListeners('data');
      socket.resume();
      socket.setTimeout(0);
      this.#begin(socket, request, payload);
    });
  }

  #begin(socket: Socket, request: Buffer, payload: Buffer): void {
    const step = this.#serve(socket, request, payload)
      .catch(() => {
        // The hook sees the connection end, and takes the step itself.
        socket.destroy();
      })
      .finally(() => this.#underWay.delete(step));
    this.#underWay.add(step);
  }

  async #serve(socket: Socket, head: Buffer, payload: Buffer): Promise<void> {
    const say = (sign: Sign): void => {
      if (socket.writable) socket.write(frame(Buffer.from(JSON.stringify(sign), 'utf8')));
    };
    const asked = this.#asked(head, payload);
    if (typeof asked === 'string') {
      say({ refused: asked });
      socket.end();
      return;
    }
    const withinMs = answerWithin(asked.by.agent, asked.step, this.#storage.settings.hookLimitMs);
    const beat = setInterval(say, BEAT_MS, { withinMs });
    try {
      say(await this.#answer(asked));
    } finally {
      clearInterval(beat);
      socket.end();
    }
  }

  /** What can be told without a look at the repository; a text says why it is not for this keeper. */
  #asked(head: Buffer, payload: Buffer): Asked | string {
    if (this.#isClosing) return 'the keeper ends';
    const { host, identity } = this.#storage;
    const parsed = head.length > LONGEST_REQUEST ? null : v.safeParse(REQUEST, head.toString('utf8'));
    if (parsed?.success !== true) return 'no request';
    const request: Request = parsed.output;
    if (request.build !== BUILD) return 'another build';
    if (request.pidNamespace !== identity.here().pidNamespace) return 'another pid namespace';
    const places = PLACES.map((name) => host.env[name] ?? null);
    if (!isDeepStrictEqual(withoutShim(request.places), places)) return 'another environment';
    const beganMs = host.monotonicMs() - request.elapsedMs;
    const text = payload.toString('utf8');
    const step = stepIn(request.agent, text);
    if (step === null || !INSIDE.has(step.kind)) return 'no step inside a turn';
    if (step.kind === 'permission' && this.#storage.settings.waitMs > 0) return 'a question that waits';
    const marker = request.marker ?? undefined;
    const by = { agent: request.agent, process: agentProcess(request), marker };
    return { request, step, payload: text, beganMs, by };
  }

  async #answer({ request, step, payload, beganMs, by }: Asked): Promise<Sign> {
    const { faults } = this.#storage.host;
    if (!(await this.#unchanged.isStill(step.cwd ?? request.cwd))) return { refused: 'another place' };
    const own = await this.#own(by, step.session);
    if (own === null) return { refused: 'another turn' };
    faults.hit('keeper.serve:take:before');
    const notes: string[] = [];
    const call = { agent: by.agent, nonce: request.nonce, note: (line: string) => notes.push(line) };
    const onLate = (reply: Promise<Reply>): void => {
      this.#deny(reply, by, step);
    };
    const answer = await answerTo(call, step, (one) =>
      takeInTime(this.#storage, { call, by, payload, own, beganMs, onLate }, one),
    );
    faults.hit('keeper.serve:take:after');
    return { answer, notes };
  }

  /** The turn that this keeper keeps; null for any other. */
  async #own(by: AgentProcess, session: string): Promise<OwnTurn | null> {
    const own = await ownTurn(this.#storage, by, session);
    return own !== null && isDeepStrictEqual(own.context.held.token, this.#token) ? own : null;
  }

  /** The host was told that the call does not run. */
  #deny(reply: Promise<Reply>, by: AgentProcess, step: Step): void {
    const ended = reply
      .then(async ({ kind }) => {
        if (kind !== 'pass' || step.kind !== 'before-tool' || step.call === null) return;
        const own = await ownTurn(this.#storage, by, step.session);
        const summary = 'refused: it was on record too late for the hook';
        const end = { state: 'denied', summary, result: Buffer.from(summary), durationMs: null } as const;
        await own?.turn.endCall(keyOf(step.session, step.call), end);
      })
      .catch(() => undefined)
      .finally(() => this.#underWay.delete(ended));
    this.#underWay.add(ended);
  }
}

/** An agent that the turn has started has the turn's PATH (fence/shim.ts), which the keeper has not. */
const withoutShim = ([path = null, ...others]: Request['places']): Request['places'] => [
  path?.startsWith(`${SHIM}${delimiter}`) === true ? path.slice(SHIM.length + 1) : path,
  ...others,
];

interface Asked {
  readonly request: Request;
  readonly step: Step;
  readonly payload: string;
  readonly beganMs: number;
  readonly by: AgentProcess;
}
