/**
 * The README's table of event types, generated from the schemas and EVENT_TABLE.
 *
 *     node dist/test/helpers/event-table.js       writes it between the README's markers
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EVENT_TABLE, SCHEMAS, type EventType } from '../../lib/event.js';
import { SHAPES } from '../../lib/event-shapes.js';

export const README = join(import.meta.dirname, '../../../README.md');

/** The text between `<!-- name -->` and `<!-- /name -->`. */
export function marked(readme: string, name: string): string {
  const between = new RegExp(`<!-- ${name} -->\\n([^]*?)<!-- /${name} -->`).exec(readme)?.[1];
  if (between === undefined) throw new Error(`README.md has no <!-- ${name} --> … <!-- /${name} -->`);
  return between;
}

export function eventTable(): string {
  const rows = (Object.keys(SCHEMAS) as EventType[]).map((type) => {
    const { appends, leaseBound, allowed, key } = EVENT_TABLE[type];
    const cells = [`\`${type}\``, fields(type), appends, leaseBound ? 'yes' : 'no', ALLOWED[allowed], key];
    return `| ${cells.join(' | ')} |`;
  });
  const head = '| event | fields | appended by | lease-bound | turn | idempotency key |';
  return [head, '| --- | --- | --- | --- | --- | --- |', ...rows, ''].join('\n');
}

const ALLOWED = {
  any: 'any or none',
  open: 'open',
  none: 'none open',
  'open-or-interrupted': 'open or interrupted',
  interrupted: 'interrupted',
} as const;

interface Schema {
  readonly type: string;
  readonly entries?: Readonly<Record<string, Schema>>;
  readonly item?: Schema;
  readonly wrapped?: Schema;
  readonly options?: readonly unknown[];
  readonly literal?: unknown;
}

function fields(type: EventType): string {
  const common = new Set(Object.keys(SCHEMAS['lease.released'].entries));
  const own = Object.entries(SCHEMAS[type].entries).filter(([name]) => !common.has(name));
  return own.map(([name, schema]: [string, Schema]) => `\`${name}\` ${shape(schema)}`).join(', ');
}

function shape(schema: Schema): string {
  const named = Object.entries(SHAPES).find(([, known]) => (known as Schema) === schema);
  if (named !== undefined) return named[0];
  switch (schema.type) {
    case 'optional':
      return `${shape(inner(schema.wrapped))} or absent`;
    case 'nullable':
      return `${shape(inner(schema.wrapped))}?`;
    case 'array':
      return `list of ${shape(inner(schema.item))}`;
    case 'union':
      return (schema.options ?? []).map((option) => shape(option as Schema)).join(' or ');
    case 'picklist':
      return (schema.options ?? []).map((option) => `"${String(option)}"`).join('/');
    case 'literal':
      return JSON.stringify(schema.literal);
    case 'strict_object':
      return `(${Object.entries(schema.entries ?? {})
        .map(([name, entry]: [string, Schema]) => `\`${name}\` ${shape(entry)}`)
        .join(', ')})`;
    default:
      return schema.type;
  }
}

function inner(schema: Schema | undefined): Schema {
  if (schema === undefined) throw new Error('a schema lacks its inner one');
  return schema;
}

if (process.argv[1] === import.meta.filename) {
  const readme = readFileSync(README, 'utf8');
  const between = /(<!-- events -->\n)[^]*?(<!-- \/events -->)/;
  writeFileSync(
    README,
    readme.replace(between, (_, open: string, close: string) => open + eventTable() + close),
  );
}
