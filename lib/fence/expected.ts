/**
 * What a view should show by now, going by what it showed last and by the moves that were told since: a difference is explained
 * by equality, never by its time.
 */
import type { Move } from './moves.js';
import { differences, type Difference, type View } from './view.js';

type Things = View['things'];
type Value = string | null;

export interface Expected {
  /** Of a thing that was told of: each value that it may have now, the likeliest first. */
  readonly values: ReadonlyMap<string, readonly Value[]>;
  /** What moved before a move that was told, and was told by nobody. */
  readonly gaps: readonly Difference[];
  /** What others moved, and did move. */
  readonly others: readonly Move[];
}

/** Contents of the index, as a view has them, by what the shim calls them. */
export type Indexes = (name: string) => Value;

export function expect(things: Things, moves: readonly Move[], indexes: Indexes): Expected {
  const book = new Book(things, moves, indexes);
  for (const at of moves.keys()) book.enter(at);
  return book;
}

/** The moves, entered one after another. */
class Book implements Expected {
  readonly values = new Map<string, readonly Value[]>();
  readonly gaps: Difference[] = [];
  readonly others: Move[] = [];
  readonly #things: Things;
  readonly #moves: readonly Move[];
  readonly #indexes: Indexes;
  readonly #past = new Map<string, (readonly Value[])[]>();
  #isPublished = false;

  constructor(things: Things, moves: readonly Move[], indexes: Indexes) {
    this.#things = things;
    this.#moves = moves;
    this.#indexes = indexes;
  }

  enter(at: number): void {
    const move = this.#moves[at] as Move;
    const { thing, after } = move;
    const known = this.#known(thing);
    if (move.other !== null && isNews(move, known)) this.others.push(move);
    if (thing === 'index') {
      this.#enterIndex(move);
    } else if (thing === 'HEAD' || /^(?:refs\/|stash$|work tree )/.test(thing)) {
      this.#enterGap(at, known);
      this.#set(thing, valuesAfter(move, known));
      if (thing === 'refs/stash') this.#set('stash', [listAfter(after, this.#known('stash')[0] ?? null)]);
    }
  }

  #known(thing: string): readonly Value[] {
    return this.values.get(thing) ?? [this.#things[thing] ?? null];
  }

  #set(thing: string, values: readonly Value[]): void {
    const past = this.#past.get(thing) ?? [];
    this.#past.set(thing, [...past, this.#known(thing)]);
    this.values.set(thing, values);
  }

  #enterIndex(move: Move): void {
    const known = this.#known('index');
    const adopted = move.after === 'adopted' ? this.#indexes('adopted') : null;
    // Once the turn has published, whatever it starts from instead was put there by somebody.
    if (adopted !== null && (this.#isPublished || !known.includes(adopted)))
      this.gaps.push({ name: 'index', before: known[0] ?? null, after: adopted });
    this.#isPublished ||= move.after === 'published';
    this.values.set('index', indexValues(move, this.#indexes));
  }

  /**
   * Somebody has moved it from where it was to where this move found it; unless the line of that move only comes later. Git
   * tells zeros where it did not look, and of `HEAD` what its branch is at; the shim what it saw before the hooks of its command ran.
   */
  #enterGap(at: number, known: readonly Value[]): void {
    const { thing, before, from } = this.#moves[at] as Move;
    if (before === undefined || before === null || known.length === 0 || known.includes(before)) return;
    if (thing === 'HEAD' && !before.startsWith('ref: ')) return;
    const past = this.#past.get(thing) ?? [];
    if (from === 'shim' && past.some((values) => values.includes(before))) return;
    if (this.#moves.some((other) => other.thing === thing && other.after === before)) return;
    const [last] = from === 'shim' ? (past.at(-1) ?? known) : known;
    this.gaps.push({ name: thing, before: last ?? null, after: before });
  }
}

/** The differences that nothing explains. */
export function unexplained(things: Things, now: Things, { values }: Expected): Difference[] {
  const wanted = { ...things };
  const isAny = new Set<string>();
  for (const [name, [value]] of values) {
    if (value === undefined) isAny.add(name);
    else if (value === null) Reflect.deleteProperty(wanted, name);
    else wanted[name] = value;
  }
  return differences(wanted, now).filter(
    ({ name, after }) => !isAny.has(name) && values.get(name)?.includes(after) !== true,
  );
}

/** Git tells of refs that it only checks, twice of one that it deletes, and `checkout` of HEAD where it stays. */
const isNews = ({ before, after }: Move, [known]: readonly Value[]): boolean =>
  after === undefined || (known !== after && (before !== after || after === null));

/**
 * Old git tells of `HEAD` too where its branch moves, and of a ref's end where only its loose file goes (`pack-refs`): what was
 * there before may still be.
 */
function valuesAfter({ thing, after }: Move, known: readonly Value[]): readonly Value[] {
  if (after === undefined) return [];
  if (after === null) return thing === 'HEAD' || thing.startsWith('refs/') ? [null, ...known] : [null];
  if (thing === 'HEAD' && !after.startsWith('ref: ')) {
    const symbolic = known.filter((value) => value?.startsWith('ref: ') === true);
    return [...symbolic, after];
  }
  return [after];
}

function listAfter(after: string | null | undefined, list: string | null): Value {
  if (after === null || after === undefined) return null;
  if (list?.split(' ').at(-1) === after) return list;
  return list === null ? after : `${list} ${after}`;
}

function indexValues({ after }: Move, indexes: Indexes): readonly Value[] {
  if (after === 'published') return [indexes('published'), indexes('pending')];
  if (after === 'adopted') return [indexes('adopted')];
  // A hook that could not read it, or an index without a digest (`index.skipHash`).
  return typeof after === 'string' && /[1-9a-f]/.test(after) ? [after] : [];
}
