/**
 * What JSON would not say of a value. `JSON.stringify` throws for a BigInt and for a cycle, and where it does not throw it may say
 * something else: null for NaN and for undefined in a list, nothing for a function, `{}` for a Map. Two values that differ
 * would then be one decision.
 *
 * A member that is undefined is left out, as an optional one is; what has a `toJSON` of its own says itself (a Date, a Buffer).
 */

/** Where in the value, and what JSON has no word for; null when it says all of it. Throws what a getter or a `toJSON` throws. */
export function jsonLoss(value: unknown): string | null {
  return lossAt(value, { place: '', above: [] });
}

interface At {
  /** As a program writes it: `.files[0]`. */
  readonly place: string;
  /** The objects that this one is in. */
  readonly above: readonly object[];
}

function lossAt(given: unknown, { place, above }: At): string | null {
  const value = said(given);
  if (typeof value === 'number')
    return Number.isFinite(value) ? null : `${String(value)}${whereOf(place)} is no number of JSON`;
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return null;
  if (typeof value !== 'object') return `a ${typeof value}${whereOf(place)} has no JSON`;
  if (above.includes(value)) return `the value${whereOf(place)} is inside itself`;
  if (!isPlain(value)) return `a ${kindOf(value)}${whereOf(place)} has no JSON of its contents`;
  const within = [...above, value];
  if (Array.isArray(value))
    return firstOf(
      value.map(
        (item: unknown, index) => () => lossAt(item, { place: `${place}[${String(index)}]`, above: within }),
      ),
    );
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return firstOf(
    members.map(
      ([name, member]) =>
        () =>
          lossAt(member, { place: `${place}.${name}`, above: within }),
    ),
  );
}

function firstOf(looks: readonly (() => string | null)[]): string | null {
  for (const look of looks) {
    const loss = look();
    if (loss !== null) return loss;
  }
  return null;
}

function said(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('toJSON' in value)) return value;
  const { toJSON } = value;
  return isCallable(toJSON) ? toJSON.call(value) : value;
}

const isCallable = (value: unknown): value is (this: unknown) => unknown => typeof value === 'function';

const kindOf = (value: object): string => Object.prototype.toString.call(value).slice(8, -1);

const isPlain = (value: object): boolean =>
  Array.isArray(value) || ArrayBuffer.isView(value) || kindOf(value) === 'Object';

const whereOf = (place: string): string => (place === '' ? '' : ` at '${place}'`);
