/**
 * Our hooks among the user's own in a settings file of Claude Code or Codex:
 *
 *     { "hooks": { EVENT: [ { "hooks": [ { "type": "command", "command": … } ] } ] } }
 *
 * Each handler of ours is known by its command (hosts.ts) wherever it stands, so that a user may move it, or add to its group.
 * Everything here is text to text; nothing but our own members is written, and what is not understood is refused.
 */
import { isDeepStrictEqual } from 'node:util';
import { parse } from 'jsonc-parser';
import * as v from 'valibot';
import { markOf, type Handler, type Mark } from './hosts.js';
import { insertMember, nodeAt, removeMember, rootOf, type Path } from './jsonc-edit.js';

type Handlers = Readonly<Record<string, Handler>>;

interface OwnEntry {
  readonly event: string;
  readonly path: Path;
  readonly handler: unknown;
  readonly mark: Mark;
}

const GROUP = v.looseObject({ hooks: v.array(v.unknown()) });
const DOCUMENT = v.looseObject({ hooks: v.optional(v.record(v.string(), v.array(v.unknown())), {}) });
const COMMAND = v.looseObject({ command: v.string() });

/** Why nothing can be put into this text; null when it can. A file with nothing in it is one that has no settings. */
export function refusalOf(text: string): string | null {
  if (text.trim() === '') return null;
  const root = rootOf(text);
  if (typeof root === 'string') return root;
  const keys = (root.children ?? []).map((property) => String(property.children?.[0]?.value));
  if (keys.filter((key) => key === 'hooks').length > 1) return 'it has "hooks" twice';
  // To valibot a list is a record, too.
  const isObject = (nodeAt(text, ['hooks'])?.type ?? 'object') === 'object';
  if (!isObject || !v.is(DOCUMENT, parse(text))) return 'its "hooks" is no object of lists';
  return null;
}

/** Marks of ours in this text, each once. */
export function marksIn(text: string): Mark[] {
  const marks = entriesIn(text).map(({ mark }) => mark);
  return [...new Map(marks.map((mark) => [`${mark.scope} ${mark.nonce}`, mark])).values()];
}

/** Whether exactly these are the handlers of ours. */
export function hasExactly(text: string, handlers: Handlers): boolean {
  const entries = entriesIn(text);
  return (
    entries.length === Object.keys(handlers).length &&
    entries.every(({ event, handler }) => isDeepStrictEqual(handler, handlers[event]))
  );
}

/** A text without handlers of ours with these, each in a group of its own behind the user's. */
export function withEntries(text: string, handlers: Handlers): string {
  let edited = text.trim() === '' ? '{}\n' : text;
  for (const [event, handler] of Object.entries(handlers)) {
    const group = { hooks: [handler] };
    if (nodeAt(edited, ['hooks', event]) !== undefined)
      edited = insertMember(edited, ['hooks', event], null, group);
    else if (nodeAt(edited, ['hooks']) !== undefined)
      edited = insertMember(edited, ['hooks'], event, [group]);
    else edited = insertMember(edited, [], 'hooks', { [event]: [group] });
  }
  return edited;
}

/** The text without handlers of ours. What they leave empty goes too, but for what `before` had: the text that they were put into. */
export function withoutEntries(text: string, before: string): string {
  let edited = text;
  for (let [entry] = entriesIn(edited); entry !== undefined; [entry] = entriesIn(edited)) {
    const { event, path } = entry;
    const group = path.slice(0, 3);
    edited = removeMember(edited, path);
    if (isEmpty(edited, [...group, 'hooks'])) edited = removeMember(edited, group);
    for (const above of [['hooks', event], ['hooks']])
      if (isEmpty(edited, above) && isGone(before, above)) edited = removeMember(edited, above);
  }
  return edited;
}

function isEmpty(text: string, path: Path): boolean {
  return nodeAt(text, path)?.children?.length === 0;
}

/** Not there before, or with nothing but ours in it. */
function isGone(before: string, path: Path): boolean {
  const node = before.trim() === '' ? undefined : nodeAt(before, path);
  return node === undefined || (node.children?.length ?? 0) > 0;
}

function entriesIn(text: string): OwnEntry[] {
  if (text.trim() === '' || refusalOf(text) !== null) return [];
  const { hooks } = v.parse(DOCUMENT, parse(text));
  return Object.entries(hooks).flatMap(([event, groups]) =>
    groups.flatMap((group, at) => {
      if (!v.is(GROUP, group)) return [];
      return group.hooks.flatMap((handler, nth) => {
        const mark = v.is(COMMAND, handler) ? markOf(handler.command) : null;
        return mark === null ? [] : [{ event, path: ['hooks', event, at, 'hooks', nth], handler, mark }];
      });
    }),
  );
}
