/**
 * Members put into a JSON document with comments, and taken out again, without a byte of the rest being written anew.
 *
 * `insertMember` adds a comma and, before the closing bracket, lines of its own; `removeMember` takes the same away. (jsonc-parser's own
 * `modify` puts a new member in front of the comment that stands behind the last one, so that the comment then speaks of another
 * value; only its parser and its scanner are used here.) Offsets are those of JavaScript strings.
 */
import { createScanner, findNodeAtLocation, parseTree, type Node, type ParseError } from 'jsonc-parser';

export type Path = readonly (string | number)[];

/** The document's root, or why it is none. Trailing commas are taken as agents take them. */
export function rootOf(text: string): Node | string {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first !== undefined) return `it is no JSON from character ${String(first.offset)} on`;
  return root?.type === 'object' ? root : 'it holds no JSON object';
}

/** The node at a path; undefined where there is none. */
export function nodeAt(text: string, path: Path): Node | undefined {
  const root = rootOf(text);
  return typeof root === 'string' ? undefined : findNodeAtLocation(root, [...path]);
}

/** Adds a last member to the object or the list at `path`: `key` names it in an object, and is null in a list. */
export function insertMember(text: string, path: Path, key: string | null, value: unknown): string {
  const container = nodeAt(text, path);
  if (container === undefined) throw new RangeError(`no container at ${path.join('.')}`);
  const { eol, unit } = styleOf(text);
  const last = container.children?.at(-1);
  const close = container.offset + container.length - 1;
  const own = indentOfLine(text, container.offset);
  const indent =
    last === undefined || !startsLine(text, last.offset) ? own + unit : indentOfLine(text, last.offset);
  const name = key === null ? '' : `${JSON.stringify(key)}: `;
  const lines = `${name}${JSON.stringify(value, null, unit)}`.replaceAll('\n', `${eol}${indent}`);
  const at = endOfContent(text, container.offset + 1, close);
  const isClosedOnOwnLine = /[\r\n]/.test(text.slice(at, close));
  const inserted = `${eol}${indent}${lines}${isClosedOnOwnLine ? '' : `${eol}${own}`}`;
  const comma = last === undefined || hasComma(text, endOf(last), close) ? '' : ',';
  const end = last === undefined ? at : endOf(last);
  return text.slice(0, end) + comma + text.slice(end, at) + inserted + text.slice(at);
}

/** Takes the member at `path` away, with the comma that joined it. Nothing where there is none. */
export function removeMember(text: string, path: Path): string {
  const value = nodeAt(text, path);
  const node = value?.parent?.type === 'property' ? value.parent : value;
  const container = node?.parent;
  if (node === undefined || container === undefined) return text;
  const siblings = container.children ?? [];
  const previous = siblings[siblings.indexOf(node) - 1];
  const next = siblings[siblings.indexOf(node) + 1];
  const close = container.offset + container.length - 1;
  const from = endOfContent(
    text,
    previous === undefined ? container.offset + 1 : endOf(previous),
    node.offset,
  );
  const comma = commaAfter(text, endOf(node), next?.offset ?? close);
  let before = text.slice(0, from);
  if (previous !== undefined && comma === null) {
    const joined = commaAfter(text, endOf(previous), node.offset);
    if (joined !== null) before = text.slice(0, joined) + text.slice(joined + 1, Math.max(from, joined + 1));
  }
  const rest = text.slice(comma === null ? endOf(node) : comma + 1);
  const isBare = siblings.length === 1 && from === container.offset + 1 && /^\s*[\]}]/.test(rest);
  return before + (isBare ? rest.trimStart() : rest);
}

const endOf = (node: Node): number => node.offset + node.length;

const hasComma = (text: string, from: number, to: number): boolean => commaAfter(text, from, to) !== null;

/** Where the comma between two members stands; null where there is none. A comma in a comment is none. */
function commaAfter(text: string, from: number, to: number): number | null {
  const between = text.slice(from, to);
  const scanner = createScanner(between, true);
  scanner.scan();
  const offset = scanner.getTokenOffset();
  return between[offset] === ',' ? from + offset : null;
}

/** The end of what is not white space in `from..to`, comments included: at least `from`. */
function endOfContent(text: string, from: number, to: number): number {
  return from + text.slice(from, to).trimEnd().length;
}

function styleOf(text: string): { eol: string; unit: string } {
  return {
    eol: text.includes('\r\n') ? '\r\n' : '\n',
    unit: /^([ \t]+)\S/m.exec(text)?.[1]?.slice(0, 8) ?? '  ',
  };
}

function indentOfLine(text: string, offset: number): string {
  const start = text.lastIndexOf('\n', offset - 1) + 1;
  return /^[ \t]*/.exec(text.slice(start, offset))?.[0] ?? '';
}

const startsLine = (text: string, offset: number): boolean =>
  text.lastIndexOf('\n', offset - 1) >= 0 && /\n[ \t]*$/.test(text.slice(0, offset));
