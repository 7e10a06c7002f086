import test from 'ava';
import fc from 'fast-check';
import { parse, type ParseError } from 'jsonc-parser';
import { handlersOf, freshMark } from '../../hooks/agents/hosts.js';
import {
  hasExactly,
  marksIn,
  refusalOf,
  withEntries,
  withoutEntries,
} from '../../hooks/agents/hook-entries.js';
import { HOOK_EVENTS } from '../../lib/agents/hook-payload.js';

const LOCAL = freshMark('local', 'abcdefghijklmnop');
const HANDLERS = handlersOf('claude-code', LOCAL);

test('each event that is read is installed for an agent that has it, and no other', (t) => {
  const installed = (['claude-code', 'codex'] as const).flatMap((agent) =>
    Object.keys(handlersOf(agent, LOCAL)),
  );
  t.deepEqual([...new Set(installed)].sort(), [...HOOK_EVENTS].sort());
});

test('only what waits for an answer of ours before a change blocks when our program fails', (t) => {
  const blocking = Object.entries(HANDLERS).filter(([, handler]) => handler.onFailure !== undefined);
  t.deepEqual(
    blocking.map(([event]) => event),
    ['PreToolUse'],
  );
  t.true(Object.values(handlersOf('codex', LOCAL)).every((handler) => !('onFailure' in handler)));
  const { SessionEnd, Interrupt } = handlersOf('codex', LOCAL);
  t.true((SessionEnd?.timeout ?? 9) <= 3 && (Interrupt?.timeout ?? 9) <= 3);
});

/** White space and comments, as they may stand between any two tokens. */
const gap = fc.constantFrom(
  '',
  ' ',
  '\n',
  '\r\n\t',
  ' // a , ] } comment\n',
  '/* [ , */',
  '\n\n  // "hooks": {\n  ',
);

const user = fc.constantFrom(
  '{"hooks":[{"type":"command","command":"mine"}]}',
  '{"matcher":"Write","hooks":[]}',
  '{"matcher":"","hooks":[{"type":"http","url":"a url"}]}',
);

const list = (items: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .tuple(fc.array(fc.tuple(gap, items, gap), { maxLength: 3 }), fc.boolean(), gap)
    .map(([all, hasTail, inner]) => {
      const body = all.map(([before, item, after]) => `${before}${item}${after}`).join(',');
      return `${body}${all.length > 0 && hasTail ? ',' : ''}${inner}`;
    });

const named = (...names: readonly string[]): fc.Arbitrary<string> =>
  fc
    .tuple(fc.subarray([...names]), gap, gap, fc.infiniteStream(list(user)), fc.boolean())
    .map(([events, before, after, lists, hasTail]) => {
      const body = events.map(
        (event) => `${before}"${event}"${after}:${before}[${lists.next().value as string}]${after}`,
      );
      return `{${body.join(',')}${body.length > 0 && hasTail ? ',' : ''}${after}}`;
    });

const settings = fc
  .tuple(gap, fc.option(named('PreToolUse', 'Stop', 'Mine'), { nil: null }), gap, fc.boolean(), fc.boolean())
  .map(([outer, hooks, inner, hasFirst, hasLast]) => {
    const members = [
      ...(hasFirst ? [`"first"${inner}: [1, {"a": null}]`] : []),
      ...(hooks === null ? [] : [`"hooks":${inner}${hooks}`]),
      ...(hasLast ? [`"last": "x"${inner}`] : []),
    ];
    return `${outer}{${inner}${members.join(`${inner},${inner}`)}${inner}}${outer}`;
  });

test('in any settings with comments, what is not ours stays, and what is ours is found and taken out again', (t) => {
  fc.assert(
    fc.property(settings, (text) => {
      fc.pre(refusalOf(text) === null);
      const edited = withEntries(text, HANDLERS);
      const errors: ParseError[] = [];
      parse(edited, errors, { allowTrailingComma: true });
      t.deepEqual(errors, [], edited);
      t.true(hasExactly(edited, HANDLERS), edited);
      t.deepEqual(marksIn(edited), [LOCAL]);
      t.is(withoutAdded(edited, text), '', `${text}\n---\n${edited}`);
      const back = withoutEntries(edited, text);
      t.deepEqual(parse(back), parse(text), `${text}\n---\n${back}`);
      t.deepEqual(comments(back), comments(text));
    }),
    { numRuns: 300 },
  );
});

/** What of the shorter text does not come, in its order, in the longer one. */
function withoutAdded(longer: string, text: string): string {
  let at = 0;
  for (const character of longer) if (text[at] === character) at += 1;
  return text.slice(at);
}

const comments = (text: string): string[] => text.match(/\/\/[^\n]*|\/\*.*?\*\//g) ?? [];
