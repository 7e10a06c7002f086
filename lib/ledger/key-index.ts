/**
 * The keys seen in a fold: a map that only grows, shared by all states of one chain of events.
 *
 * Copying a map at each event would make n appends cost n². A state's index is the shared map and the length it had
 * then: entries are written once, in order, so a later one is simply not seen by an older state. Only when a second
 * branch grows from an older state (a retry after a lost swap) is the map copied.
 */
interface Slot {
  readonly at: number;
  readonly commit: string;
}

export class KeyIndex implements ReadonlyMap<string, string> {
  readonly #slots: Map<string, Slot>;
  readonly size: number;

  private constructor(slots: Map<string, Slot>, size: number) {
    this.#slots = slots;
    this.size = size;
  }

  static empty(): KeyIndex {
    return new KeyIndex(new Map(), 0);
  }

  static from(keys: ReadonlyMap<string, string>): KeyIndex {
    if (keys instanceof KeyIndex) return keys;
    let index = KeyIndex.empty();
    for (const [key, commit] of keys) index = index.with(key, commit);
    return index;
  }

  /** This index with one more key; the first event that had a key keeps it. */
  with(key: string, commit: string): KeyIndex {
    if (this.has(key)) return this;
    const slots = this.#slots.size === this.size ? this.#slots : this.#copy();
    slots.set(key, { at: this.size, commit });
    return new KeyIndex(slots, this.size + 1);
  }

  get(key: string): string | undefined {
    const slot = this.#slots.get(key);
    return slot !== undefined && slot.at < this.size ? slot.commit : undefined;
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  *entries(): MapIterator<[string, string]> {
    for (const [key, slot] of this.#slots) {
      if (slot.at >= this.size) return undefined;
      yield [key, slot.commit];
    }
    return undefined;
  }

  *keys(): MapIterator<string> {
    for (const [key] of this.entries()) yield key;
    return undefined;
  }

  *values(): MapIterator<string> {
    for (const [, commit] of this.entries()) yield commit;
    return undefined;
  }

  [Symbol.iterator](): MapIterator<[string, string]> {
    return this.entries();
  }

  forEach(visit: (commit: string, key: string, map: ReadonlyMap<string, string>) => void): void {
    for (const [key, commit] of this.entries()) visit(commit, key, this);
  }

  #copy(): Map<string, Slot> {
    const slots = new Map<string, Slot>();
    for (const [key, commit] of this.entries()) slots.set(key, { at: slots.size, commit });
    return slots;
  }
}
