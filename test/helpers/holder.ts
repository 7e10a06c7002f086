/**
 * A program that holds a lease and does what its standard input says, one JSON command a line, one JSON answer a line.
 * Driven by holder-process.ts; gets killed, stopped, and told to be on another host.
 *
 * Usage: node holder.js DIR, with HOLDER = { identity?, stepMs? } as JSON, DURABLE_FAULTS as a plan, and RELEASE_ON_TERM for an
 * agent that lets go when it gets SIGTERM.
 */
import { createInterface } from 'node:readline';
import { spawn } from 'node:child_process';
import { isDurableError } from '../../lib/errors.js';
import type { EventDraft, HolderRecord } from '../../lib/event.js';
import { processFaultActions } from '../../lib/git/fault-actions.js';
import { plannedFaults } from '../../lib/git/fault.js';
import { openStorage, type Storage } from '../../lib/git/storage.js';
import { systemHost, type Host } from '../../lib/host.js';
import { acquire } from '../../lib/lease/acquire.js';
import type { Held } from '../../lib/lease/hold.js';
import { recordBehind } from '../../lib/lease/refusal.js';
import type { LeaseRequest } from '../../lib/lease/take.js';
import { takeOver } from '../../lib/lease/takeover.js';
import { Ledger, openTask } from '../../lib/ledger/ledger.js';
import type { AppendBy } from '../../lib/ledger/plan.js';
import { isRecord } from './json.js';

export interface HolderOptions {
  readonly identity?: Host['identity'];
  /** Added to the wall clock. */
  readonly stepMs?: number;
}

const REQUEST: LeaseRequest = {
  kind: 'turn',
  task: null,
  turn: null,
  turnKey: null,
  objective: 'hold the lease',
  agent: 'holder',
};

class Holder {
  readonly #storage: Storage;
  #held: Held | null = null;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  async act(name: string, given: Record<string, unknown>): Promise<unknown> {
    switch (name) {
      case 'acquire':
        this.#held = await acquire(this.#storage, { ...REQUEST, ...given });
        return this.#told();
      case 'take-over':
        this.#held = await takeOver(this.#storage, { ...REQUEST, ...given });
        return this.#told();
      case 'turn':
        return this.#startTurn(given);
      case 'spawn':
        return this.#spawn(given);
      default:
        return this.#withHeld(name, given);
    }
  }

  async #withHeld(name: string, given: Record<string, unknown>): Promise<unknown> {
    const held = this.#held;
    if (held === null) throw new Error('this holder holds nothing');
    const path = String(given['path']);
    switch (name) {
      case 'renew':
        return (await held.renew()).oid;
      case 'release':
        return held.release();
      case 'assert':
        return held.assert();
      case 'keeper':
        return held.startKeeper(this.#storage.identity.self());
      case 'write':
        return held.stage.publish(held.stage.write(Buffer.from(String(given['text'])), 0o666), path);
      case 'remove':
        return held.stage.remove(path);
      case 'append':
        return this.#append(held, { type: 'steering.received', text: 'go on', content: null });
      case 'finish':
        return this.#append(held, TURN_FINISHED);
      default:
        throw new Error(`no command ${name}`);
    }
  }

  /** Opens a task, takes the lease for a turn of it and records its start. */
  async #startTurn(given: Record<string, unknown>): Promise<unknown> {
    const ledger = await openTask(this.#storage, { objective: 'a task', agent: 'holder', workspace: null });
    const turn = String(given['turn']);
    const held = await acquire(this.#storage, { ...REQUEST, ...given, task: ledger.task, turn });
    this.#held = held;
    await ledger.append(() => [turnStarted(turn, held.record.holder)], this.#by(held));
    return { ...this.#told(), task: ledger.task };
  }

  async #append(held: Held, draft: EventDraft): Promise<unknown> {
    const ledger = Ledger.open(this.#storage, held.record.task ?? '');
    const [recorded] = await ledger.append(() => [draft], this.#by(held));
    return recorded?.commit;
  }

  #by(held: Held): AppendBy {
    return { lease: held.token, agent: 'holder', workspace: null };
  }

  #told(): object {
    const { record, takenOver, stageDir } = this.#held ?? {};
    return { record, takenOver, stageDir };
  }

  /** A background process of the turn, with the marker in its environment. */
  #spawn(given: Record<string, unknown>): unknown {
    const child = spawn('sleep', ['1000'], {
      detached: given['detached'] === true,
      stdio: 'ignore',
      env: { ...process.env, DURABLE_MARKER: String(given['marker']) },
    });
    child.unref();
    return child.pid;
  }
}

const TURN_FINISHED: EventDraft = {
  type: 'turn.finished',
  outcome: 'completed',
  summary: 'done',
  result: null,
  claim: null,
  exit: null,
  checkpoint: null,
  survivors: [],
};

const NO_OID = '0'.repeat(40);

function turnStarted(turn: string, holder: HolderRecord): EventDraft {
  return {
    type: 'turn.started',
    turn,
    key: turn,
    objective: 'do something',
    holder,
    session: null,
    baseline: {
      head: null,
      branch: null,
      index: null,
      operation: null,
      submodules: [],
      status: { oid: NO_OID, digest: '0'.repeat(64), bytes: 0 },
    },
    instructions: [],
    checkpoint: null,
    readOnly: false,
  };
}

function hostOf(options: HolderOptions): Host {
  const host = systemHost(plannedFaults(process.env['DURABLE_FAULTS'], processFaultActions(process.pid)));
  const step = options.stepMs ?? 0;
  return {
    ...host,
    now: () => new Date(host.now().getTime() + step),
    ...(options.identity === undefined ? {} : { identity: options.identity }),
  };
}

async function answer(holder: Holder, line: string): Promise<object> {
  const command: unknown = JSON.parse(line);
  if (!isRecord(command)) throw new Error('a command is an object');
  try {
    return { ok: (await holder.act(String(command['do']), command)) ?? null };
  } catch (error) {
    if (!isDurableError(error)) return { error: 'bug', detail: error instanceof Error ? error.stack : '' };
    return { error: error.code, fields: error.fields, record: recordBehind(error) };
  }
}

async function main(dir: string, options: HolderOptions): Promise<void> {
  const storage = await openStorage(dir, hostOf(options));
  const holder = new Holder(storage);
  if (process.env['RELEASE_ON_TERM'] !== undefined) {
    process.on('SIGTERM', () => {
      void holder.act('release', {}).then(() => process.exit(0));
    });
  }
  process.stdout.write('{"ok":"ready"}\n');
  for await (const line of createInterface({ input: process.stdin })) {
    process.stdout.write(`${JSON.stringify(await answer(holder, line))}\n`);
  }
  await storage.close();
}

await main(process.argv[2] ?? '.', JSON.parse(process.env['HOLDER'] ?? '{}') as HolderOptions);
