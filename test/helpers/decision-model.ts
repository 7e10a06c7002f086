/**
 * What a task's decisions, conflicts, conversation and files must be, kept in memory and without a line of the product: the
 * other side of the model-based test (test/property/decisions.test.ts).
 *
 * Numbers of events come from `git rev-list --count`, file bytes from the disk. Every content is written once only, so that no
 * change looks like another one.
 */
export type Answer = 'approved' | 'rejected';
export type RequestState = 'pending' | Answer | 'expired' | 'invalidated' | 'consumed';

export interface Request {
  readonly id: string;
  readonly args: string;
  /** Number of its event, at most. */
  readonly seq: number;
  /** By the model's clock, seconds; null: never. */
  readonly expires: number | null;
  state: RequestState;
}

export interface Conflict {
  readonly id: string;
  readonly path: string;
  readonly mine: string;
  isOpen: boolean;
}

interface Touch {
  /** What the turn found there. */
  readonly before: string | null;
  /** Everything the turn put there, oldest first. */
  readonly after: (string | null)[];
}

export interface ModelTurn {
  readonly id: string;
  readonly touched: Map<string, Touch>;
  readonly read: Map<string, string | null>;
}

export type Files = ReadonlyMap<string, string>;

export class Model {
  clock = 0;
  turn: ModelTurn | null = null;
  readonly requests: Request[] = [];
  readonly conflicts: Conflict[] = [];
  readonly files = new Map<string, string>();
  readonly checkpoints: { readonly id: string; readonly files: Files }[] = [];
  /** Number of the first event of each turn, by the turn's id. */
  readonly starts = new Map<string, number>();
  /** Where the conversation stands after each event; index 0 is before the first. */
  readonly #tips: number[] = [0];
  /** The event that each one goes on from. */
  readonly #parents: number[] = [0];

  get head(): number {
    return this.#tips.length - 1;
  }

  get tip(): number {
    return this.#tips[this.head] ?? 0;
  }

  /** Events up to `head` have been added, none of them a rewind. */
  grew(head: number): void {
    while (this.head < head) {
      this.#parents.push(this.tip);
      this.#tips.push(this.head + 1);
    }
  }

  tipAt(seq: number): number {
    return this.#tips[seq] ?? 0;
  }

  /** One event was added that takes the conversation back. */
  rewound(to: number): void {
    this.#parents.push(0);
    this.#tips.push(this.tipAt(to));
    for (const request of this.requests)
      if (request.seq > to && isUnused(request)) request.state = 'invalidated';
  }

  isOnLine(seq: number): boolean {
    for (let at = this.tip; at > 0; at = this.#parents[at] ?? 0) if (at === seq) return true;
    return false;
  }

  /** What a request is for whoever looks now. */
  seen(request: Request): RequestState {
    return this.#hasLapsed(request) ? 'expired' : request.state;
  }

  /** Somebody acts on requests of this action: one that has lapsed gets its end. */
  act(args: string): void {
    for (const request of this.requests) if (request.args === args) this.end(request);
  }

  end(request: Request): void {
    if (this.#hasLapsed(request)) request.state = 'expired';
  }

  standing(args: string): Request | undefined {
    const same = this.requests.filter((request) => request.args === args);
    for (const state of ['approved', 'rejected', 'pending'] as const) {
      const found = same.find((request) => request.state === state);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  openAt(path: string): Conflict | undefined {
    return this.conflicts.find((conflict) => conflict.isOpen && conflict.path === path);
  }

  put(path: string, content: string | null): void {
    if (content === null) this.files.delete(path);
    else this.files.set(path, content);
  }

  /** The turn puts it there. */
  wrote(path: string, content: string | null): void {
    const { turn } = this;
    if (turn !== null) {
      const before = this.files.get(path) ?? null;
      const touch = turn.touched.get(path) ?? { before, after: [] };
      touch.after.push(content);
      turn.touched.set(path, touch);
      if (turn.read.has(path)) turn.read.set(path, content);
    }
    this.put(path, content);
  }

  /** The turn died and is repaired: what somebody else has changed since stays. */
  repaired(action: 'keep' | 'roll-back' | 'roll-forward'): void {
    for (const [path, { before, after }] of this.turn?.touched ?? []) {
      const now = this.files.get(path) ?? null;
      if (action === 'keep' || !(now === before || after.includes(now))) continue;
      this.put(path, action === 'roll-back' ? before : (after.at(-1) ?? null));
    }
    this.turn = null;
  }

  #hasLapsed({ state, expires }: Request): boolean {
    return (state === 'pending' || state === 'approved') && expires !== null && expires <= this.clock;
  }
}

const isUnused = ({ state }: Pick<Request, 'state'>): boolean =>
  state === 'pending' || state === 'approved' || state === 'rejected';
