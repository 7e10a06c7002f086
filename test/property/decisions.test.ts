/**
 * Random work on one task through the library, with crashes, repairs, rewinds and restores, against a model in memory: approvals,
 * conflicts, the conversation and every byte agree after each step, and the ledger verifies.
 * DURABLE_TEST_SEED and DURABLE_TEST_RUNS change what is tried; a failure prints its seed and the shortest steps that fail.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { hasCode, openRepository, systemHost, type Repository, type Turn } from '../../lib/index.js';
import { Model, type Answer, type Request } from '../helpers/decision-model.js';
import { seedOf } from '../helpers/random.js';
import { scratch, type Scratch } from '../helpers/scratch.js';
import { endedProcess } from '../helpers/turn-place.js';

const TASK = 'model';
const PATHS = ['a', 'b', 'c'] as const;
const path = fc.constantFrom(...PATHS);
const args = fc.constantFrom('x', 'y');
const nth = fc.nat(7);

/** One step; what it needs and is not there makes it a step that does nothing. */
const STEP = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('start' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('finish' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('crash' as const),
      action: fc.constantFrom('keep' as const, 'roll-back' as const, 'roll-forward' as const),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('write' as const, 'read' as const), path }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('edit' as const), path }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('ask' as const), args, expires: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('use' as const), args }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('answer' as const),
      nth,
      decision: fc.constantFrom<Answer>('approved', 'rejected'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('tick' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('rewind' as const), back: fc.nat(30) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('checkpoint' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('restore' as const), nth }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('resolve' as const),
      nth,
      choice: fc.constantFrom('use-latest' as const, 'keep-mine' as const),
    }),
  },
);
type Step = (typeof STEP extends fc.Arbitrary<infer T> ? T : never) & { readonly do: string };

class World {
  readonly #t: ExecutionContext;
  readonly #place: Scratch;
  readonly #model = new Model();
  #repository: Repository;
  #turn: Turn | null = null;
  #written = 0;

  private constructor(t: ExecutionContext, place: Scratch, repository: Repository) {
    this.#t = t;
    this.#place = place;
    this.#repository = repository;
  }

  static async open(t: ExecutionContext): Promise<World> {
    const place = scratch(t);
    const world: { current: World | null } = { current: null };
    const repository = await openRepository(place.dir, {
      ...systemHost(),
      env: place.env,
      now: () => world.current?.now() ?? new Date(),
    });
    world.current = new World(t, place, repository);
    return world.current;
  }

  now(): Date {
    return new Date(Date.now() + this.#model.clock * 1000);
  }

  async close(): Promise<void> {
    await this.#repository.close();
  }

  async step(step: Step): Promise<void> {
    await this.#take(step);
    const ref = `refs/durable/tasks/${TASK}`;
    if (this.#place.git('for-each-ref', ref) !== '')
      this.#model.grew(Number(this.#place.git('rev-list', '--count', ref)));
    await this.#compare();
  }

  async #take(step: Step): Promise<void> {
    switch (step.do) {
      case 'start':
        return this.#start();
      case 'finish':
        await this.#turn?.finish({ outcome: 'completed' });
        this.#left();
        return;
      case 'crash':
        return this.#crash(step.action);
      case 'write':
        return this.#write(step.path);
      case 'read':
        this.#turn?.read(step.path);
        this.#model.turn?.read.set(step.path, this.#model.files.get(step.path) ?? null);
        return;
      case 'edit': {
        const content = this.#content('somebody');
        writeFileSync(join(this.#place.dir, step.path), content);
        this.#model.put(step.path, content);
        return;
      }
      case 'ask':
        return this.#ask(step.args, step.expires);
      case 'use':
        return this.#use(step.args);
      case 'answer':
        return this.#answer(step.nth, step.decision);
      case 'tick':
        this.#model.clock += 3600;
        return;
      case 'rewind':
        return this.#rewind(step.back);
      case 'checkpoint': {
        const { checkpoint } = await this.#repository.checkpoint();
        this.#model.checkpoints.push({ id: checkpoint, files: new Map(this.#model.files) });
        return;
      }
      case 'restore':
        return this.#restore(step.nth);
      case 'resolve':
        return this.#resolve(step.nth, step.choice);
    }
  }

  #content(by: string): string {
    this.#written += 1;
    return `${by} ${String(this.#written)}\n`;
  }

  #left(): void {
    this.#turn = null;
    this.#model.turn = null;
  }

  async #start(): Promise<void> {
    if (this.#turn !== null) return;
    const holder = endedProcess();
    this.#turn = await this.#repository.startTurn({ objective: 'go', task: TASK, keeper: false, holder });
    this.#model.turn = { id: this.#turn.id, touched: new Map(), read: new Map() };
    const log = this.#place.git('log', '--reverse', '--format=%s', `refs/durable/tasks/${TASK}`).split('\n');
    this.#model.starts.set(this.#turn.id, log.findLastIndex((line) => line.startsWith('turn.started')) + 1);
  }

  async #crash(action: 'keep' | 'roll-back' | 'roll-forward'): Promise<void> {
    if (this.#turn === null) return;
    // Half a call: said and begun, and never ended.
    await this.#turn.begin({ tool: 'edit', args: 'half', mutates: false });
    this.#turn = null;
    await this.#repository.recover({ action });
    this.#model.repaired(action);
  }

  async #write(file: string): Promise<void> {
    const turn = this.#model.turn;
    if (this.#turn === null || turn === null) return;
    const content = this.#content('the turn');
    const now = this.#model.files.get(file) ?? null;
    // What somebody else did over the turn's own bytes, and the turn did not look at, would be lost to a repair.
    const touch = turn.touched.get(file);
    if (touch !== undefined && touch.after.at(-1) !== now && !turn.read.has(file)) return;
    const write = this.#turn.transaction([{ kind: 'write', path: file, bytes: Buffer.from(content) }]);
    if (this.#model.openAt(file) !== undefined) {
      await this.#t.throwsAsync(write, { code: 'conflict-open' });
    } else if (turn.read.has(file) && turn.read.get(file) !== now) {
      const error = await this.#t.throwsAsync(write, { code: 'conflict' });
      const id = hasCode(error, 'conflict') ? (error.fields.conflict ?? '') : '';
      this.#model.conflicts.push({ id, path: file, mine: content, isOpen: true });
    } else {
      await write;
      this.#model.wrote(file, content);
    }
  }

  async #ask(of: string, expires: boolean): Promise<void> {
    if (this.#turn === null) return;
    const expiresAt = expires ? new Date(this.now().getTime() + 1800_000) : null;
    const { approval } = await this.#turn.requestApproval({ tool: 'tool', args: of, expiresAt });
    this.#asked(of, approval, expires);
  }

  #asked(of: string, approval: string, expires: boolean): Request {
    this.#model.act(of);
    const standing = this.#model.standing(of);
    if (standing !== undefined) {
      this.#t.is(approval, standing.id);
      return standing;
    }
    this.#t.false(this.#model.requests.some(({ id }) => id === approval));
    const count = this.#place.git('rev-list', '--count', `refs/durable/tasks/${TASK}`);
    const until = expires ? this.#model.clock + 1800 : null;
    const request: Request = { id: approval, args: of, seq: Number(count), expires: until, state: 'pending' };
    this.#model.requests.push(request);
    return request;
  }

  async #use(of: string): Promise<void> {
    if (this.#turn === null) return;
    const gated = await this.#turn.gate({ tool: 'tool', args: of, mutates: false });
    const request = this.#asked(of, gated.approval, false);
    this.#t.is(gated.state, request.state as typeof gated.state);
    if (gated.state === 'approved') await gated.call.end({ state: 'finished' });
    if (gated.state === 'rejected') this.#t.is(gated.feedback, request.id);
    if (gated.state !== 'pending') request.state = 'consumed';
  }

  async #answer(index: number, decision: Answer): Promise<void> {
    const request = this.#model.requests.at(-1 - index);
    if (request === undefined) return;
    const answering = this.#repository.resolveApproval(request.id, {
      decision,
      by: 'someone',
      feedback: decision === 'rejected' ? request.id : '',
    });
    // Only a request that waits is looked at by who answers.
    if (request.state === 'pending') this.#model.end(request);
    if (request.state === 'pending') {
      await answering;
      request.state = decision;
    } else
      this.#t.like(await this.#t.throwsAsync(answering), {
        code: 'approval-settled',
        fields: { state: request.state },
      });
  }

  async #rewind(back: number): Promise<void> {
    const to = this.#model.head - back;
    if (to < 1) return;
    const { undo } = await this.#repository.rewind({ target: `${TASK}/${String(to)}` });
    this.#t.is(undo === null, this.#model.tipAt(to) === this.#model.tip);
    if (undo !== null) this.#model.rewound(to);
  }

  async #restore(index: number): Promise<void> {
    const checkpoint = this.#model.checkpoints.at(-1 - index);
    if (checkpoint === undefined) return;
    const { id, files } = checkpoint;
    if (this.#turn === null) await this.#repository.restore({ checkpoint: id });
    else await this.#turn.restore({ checkpoint: id });
    for (const file of PATHS) {
      const content = files.get(file) ?? null;
      if (content !== (this.#model.files.get(file) ?? null)) this.#model.wrote(file, content);
    }
  }

  async #resolve(index: number, choice: 'use-latest' | 'keep-mine'): Promise<void> {
    const conflict = this.#model.conflicts.at(-1 - index);
    if (conflict === undefined) return;
    const by = 'someone';
    const deciding =
      this.#turn === null
        ? this.#repository.resolveConflict(conflict.id, { choice, by })
        : this.#turn.resolveConflict(conflict.id, { choice, by });
    if (!conflict.isOpen) {
      await this.#t.throwsAsync(deciding, { code: 'conflict-settled' });
      return;
    }
    await deciding;
    conflict.isOpen = false;
    if (choice === 'keep-mine' && this.#model.files.get(conflict.path) !== conflict.mine)
      this.#model.wrote(conflict.path, conflict.mine);
  }

  async #compare(): Promise<void> {
    this.#files();
    if (this.#model.head === 0) return;
    const { findings } = await this.#repository.verify(TASK);
    this.#t.deepEqual(findings, []);
    await this.#approvals();
    await this.#conflicts();
    const { turns } = await this.#repository.conversation(TASK);
    this.#t.deepEqual(
      turns.map(({ turn, rewound }) => [turn, rewound]),
      [...this.#model.starts].map(([turn, seq]) => [turn, !this.#model.isOnLine(seq)]),
    );
  }

  #files(): void {
    for (const file of PATHS) {
      const at = join(this.#place.dir, file);
      const now = existsSync(at) ? readFileSync(at, 'utf8') : null;
      this.#t.is(now, this.#model.files.get(file) ?? null, file);
    }
  }

  /** All that was ever asked for is listed, oldest first. */
  async #approvals(): Promise<void> {
    const listed = await this.#repository.approvals();
    const states = new Map(listed.map(({ approval, lapsed }) => [approval.id, lapsed ?? approval.state]));
    this.#t.deepEqual(
      listed.map(({ approval: { id } }) => [id, states.get(id)]),
      this.#model.requests.map((request) => [request.id, this.#model.seen(request)]),
    );
  }

  async #conflicts(): Promise<void> {
    const open = (await this.#repository.conflicts()).filter(({ isOpen }) => isOpen);
    this.#t.deepEqual(
      open.map(({ conflict }) => [conflict.id, conflict.detected.event.path]),
      this.#model.conflicts.filter(({ isOpen }) => isOpen).map(({ id, path: at }) => [id, at]),
    );
  }
}

test('random work with crashes, rewinds and restores is what the model says it is, and verifies after each step', async (t) => {
  // Twelve runs from here find a fold that forgets to invalidate at a rewind; six from another seed did not.
  const seed = seedOf(process.env, 5);
  const numRuns = Number(process.env['DURABLE_TEST_RUNS'] ?? 12);
  t.log(`seed ${String(seed)}, ${String(numRuns)} runs`);
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { minLength: 20, maxLength: 30 }), async (steps) => {
      const world = await World.open(t);
      try {
        for (const step of steps) await world.step(step);
      } finally {
        await world.close();
      }
    }),
    { seed, numRuns, endOnFailure: process.env['DURABLE_TEST_SHRINK'] !== '1' },
  );
});
