/**
 * Random events of any type, made from the schemas themselves: what the schema allows, a test gets to see.
 */
import fc from 'fast-check';
import { SCHEMAS, type Event, type EventType } from '../../lib/event.js';

/** The parts of a valibot schema that are looked at. */
interface Schema {
  readonly type: string;
  readonly pipe?: readonly (Schema & { readonly requirement?: unknown })[];
  readonly entries?: Readonly<Record<string, Schema>>;
  readonly item?: Schema;
  readonly wrapped?: Schema;
  readonly options?: readonly unknown[];
  readonly literal?: unknown;
}

export const EVENT_TYPES = Object.keys(SCHEMAS) as EventType[];

export const anyEvent = (): fc.Arbitrary<Event> => fc.oneof(...EVENT_TYPES.map((type) => eventOf(type)));

export function eventOf<T extends EventType>(type: T): fc.Arbitrary<Event<T>> {
  return arbitraryOf(SCHEMAS[type]) as fc.Arbitrary<Event<T>>;
}

/** The seed of a run: fixed, or from the environment to look further. */
export function seed(): number {
  const given = process.env['DURABLE_TEST_SEED'];
  return given === undefined ? 20_261_130 : Number(given);
}

/** What is optional is there or is not. */
function recordOf(entries: readonly (readonly [string, Schema])[]): fc.Arbitrary<unknown> {
  const requiredKeys = entries.filter(([, { type }]) => type !== 'optional').map(([name]) => name);
  return fc.record(Object.fromEntries(entries.map(([name, entry]) => [name, arbitraryOf(entry)])), {
    requiredKeys,
  });
}

function arbitraryOf(schema: Schema): fc.Arbitrary<unknown> {
  switch (schema.type) {
    case 'literal':
      return fc.constant(schema.literal);
    case 'picklist':
      return fc.constantFrom(...(schema.options ?? []));
    case 'boolean':
      return fc.boolean();
    case 'number':
      return numberOf(schema);
    case 'string':
      return stringOf(schema);
    case 'optional':
      return arbitraryOf(inner(schema.wrapped));
    case 'nullable':
      return fc.option(arbitraryOf(inner(schema.wrapped)), { nil: null });
    case 'array':
      return fc.array(arbitraryOf(inner(schema.item)), { maxLength: 3 });
    case 'union':
      return fc.oneof(...(schema.options ?? []).map((option) => arbitraryOf(option as Schema)));
    case 'strict_object':
      return recordOf(Object.entries(schema.entries ?? {}));
    default:
      throw new Error(`no arbitrary for a schema of type ${schema.type}`);
  }
}

function inner(schema: Schema | undefined): Schema {
  if (schema === undefined) throw new Error('a schema lacks its inner one');
  return schema;
}

function numberOf(schema: Schema): fc.Arbitrary<number> {
  const integer = schema.pipe?.some(({ type }) => type === 'integer') === true;
  const least = requirementOf(schema, 'min_value');
  if (integer) return fc.integer({ min: typeof least === 'number' ? least : 0, max: 2 ** 40 });
  return fc
    .double({ noNaN: true, noDefaultInfinity: true })
    .map((value) => (Object.is(value, -0) ? 0 : value));
}

const HEX = fc.integer({ min: 0, max: 15 }).map((digit) => digit.toString(16));

function stringOf(schema: Schema): fc.Arbitrary<string> {
  const pattern = String(requirementOf(schema, 'regex'));
  if (pattern.includes('[0-9a-f]{64}$') && !pattern.includes('40')) return hex(64);
  if (pattern.includes('[0-9a-f]{40}')) return fc.oneof(hex(40), hex(64));
  if (pattern.includes('a-z0-9')) return fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,25}$/);
  if (schema.pipe?.some(({ type }) => type === 'iso_timestamp') === true) return time;
  const most = requirementOf(schema, 'max_length');
  const maxLength = Math.min(typeof most === 'number' ? most : 40, 60);
  return fc.string({ unit: oddUnit, minLength: 1, maxLength });
}

/** Letters, and what breaks terminals, lines, JSON and UTF-8: controls, quotes, separators, pairs and half pairs. */
const oddUnit = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('a', 'b', 'Z', ' ', '/', '.', '_', '-', '"', '\\', '{', '}') },
  {
    weight: 2,
    arbitrary: fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).map((text) => text.charAt(0)),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '\n',
      '\r',
      '\t',
      '\0',
      '\u001b',
      '\u0085',
      '\u2028',
      '\u202e',
      '\ud83d',
      '\udc80',
    ),
  },
);

const time = fc
  .integer({ min: 0, max: 4_102_444_800_000 })
  .map((milliseconds) => new Date(milliseconds).toISOString());

const hex = (length: number): fc.Arbitrary<string> =>
  fc.array(HEX, { minLength: length, maxLength: length }).map((digits) => digits.join(''));

function requirementOf(schema: Schema, type: string): unknown {
  return schema.pipe?.find((step) => step.type === type)?.requirement;
}
