/**
 * What one clause of a final text says, its paths, commands and code being marks (claim-tokens.ts).
 *
 * A clause is read as a claim only when the writer says in it what was done, in the past: by "I", "we" or nobody (a list's item).
 * Each rule names the shape it accepts; what fits none says nothing. Pure.
 */
import type { Block } from './claim-blocks.js';

/** Indexes of tokens, in the order they stand. */
export interface Said {
  readonly changed: readonly number[];
  readonly unchanged: readonly number[];
  readonly ran: readonly number[];
  readonly passed: readonly number[];
  readonly testsPass: boolean;
  /** Says that something was taken back: what is `named`, or what was said last. */
  readonly takesBack: boolean;
  readonly named: readonly number[];
}

/** Nobody writes longer ones, and the rules below cost more than their length. Characters. */
const LONGEST = 1500;

/** Made once: a text has thousands of clauses. Declared before the rules that are made when this module is loaded. */
const RULES = new Map<string, RegExp>();

/** Sentences, and within them what "but" and its like divide. */
export function clausesOf(text: string): string[] {
  return text
    .split(
      /(?<=[.!?;])\s+|,?\s+(?:but|however|although|though|while|whereas)\s+|\s+[\u2014\u2013]\s+(?=(?:i|we|no|not)\b)|,?\s+and\s+(?=\u0001c\d+\u0001\s+(?:is|was|pass|fail|succeed|exit)|(?:all\s+|the\s+|\d+\s+|existing\s+|unit\s+)*tests?\s+pass)/i,
    )
    .map((clause) => clause.trim())
    .filter((clause) => clause !== '' && clause.length <= LONGEST);
}

const NOTHING: Said = {
  changed: [],
  unchanged: [],
  ran: [],
  passed: [],
  testsPass: false,
  takesBack: false,
  named: [],
};

export function readClause(clause: string, block: Block): Said {
  if (/\?\W*$/.test(clause)) return NOTHING;
  const named = indexes(clause, /\u0001[pm](\d+)\u0001/g);
  if (TAKES_BACK.test(clause)) return { ...NOTHING, takesBack: true, named };
  if (!clause.includes('\u0001')) return { ...NOTHING, testsPass: commandsIn(clause, block).testsPass };
  const unchanged =
    NOT_OURS.test(clause) || SAVE.test(clause) ? [] : UNCHANGED.flatMap((rule) => listsIn(clause, rule));
  if (unchanged.length > 0) return { ...NOTHING, unchanged, named };
  return { ...NOTHING, ...commandsIn(clause, block), changed: changedIn(clause, block), named };
}

/** A path, known or not; any mark; several paths. */
const PATH = String.raw`\u0001[pm]\d+\u0001`;
const MARK = String.raw`\u0001\w\d+\u0001`;
const LIST = String.raw`(?:${PATH}(?:\s*(?:,\s*and|,|and|&|\+)\s*(?:the\s+|also\s+)?${PATH})*)`;

const TAKES_BACK =
  /\b(?:reverted|undid|undone|restored|rolled back|backed out|took back|put back|temporar\w+|(?:added|created|wrote)[^.]*\band (?:then |later )?(?:removed|deleted))\b/i;

/** What somebody else did, or did at another time, or is only to be done. */
const NOT_OURS =
  /\b(?:already|previously|earlier|originally|yesterday|last (?:turn|week|time|session)|(?:previous|prior|earlier|last) (?:turn|commit|session|change|pr|step)|upstream|by (?:you|the user|someone|somebody|another|others)|you(?:r)?|user|someone|somebody|in (?:commit|pr|v\d)|since v?\d|would|should|could|might|may|must|will|going to|plan(?:ned|s|ning)? to|want(?:ed)? to|tried|try|attempted|failed to|unable to|let me|let['\u2019]s|please|if|unless|once|until|supposed|expected)\b/i;
/** "Apart from comments": what it takes away nobody can weigh. */
const SAVE = /\b(?:except|apart from|aside from|other than|besides|beyond|save for)\b/i;
const NEGATIVE = /\b(?:not|no|none|nothing|never|neither|nor|without|cannot|\w+n['\u2019]t)\b/i;

const UNTOUCHED = String.raw`(?:unchanged|untouched|unmodified|not (?:touched|changed|modified|edited))`;
const END = String.raw`(?=\s*(?:[.,;:!)]|$|(?:at all|either|and|so|as|because|since|itself|here)\b))`;

const UNCHANGED = [
  rule(
    String.raw`\b(?:did not|didn['\u2019]t|have not|haven['\u2019]t|has not|never|without)\s+(?:(?:need|have) to\s+)?(?:touch|chang|modif|edit|alter)\w*\s+(?:the\s+|any of\s+|files?\s+)*(${LIST})${END}`,
  ),
  rule(
    String.raw`(?:^|[,:]\s+|\band\s+)(?:the\s+|both\s+|files?\s+)*(${LIST})\s+(?:itself\s+|themselves\s+)?(?:is|are|was|were|remains?|remained|stays?|stayed)\s+(?:left\s+|still\s+|completely\s+)*${UNTOUCHED}${END}`,
  ),
  rule(
    String.raw`\b(?:left|leaving|kept)\s+(?:the\s+|both\s+|files?\s+)*(${LIST})\s+(?:alone|unchanged|untouched|unmodified|as[- ]is|as it (?:is|was))${END}`,
  ),
  rule(
    String.raw`\b(?:no|zero)\s+(?:changes|edits|modifications)\s+(?:were\s+|was\s+)?(?:made\s+)?(?:to|in)\s+(?:the\s+|files?\s+)*(${LIST})${END}`,
  ),
];

const ADDING = 'added|appended|inserted|introduced|included|registered|wired(?: up)?|implemented';
const TAKING = 'removed|dropped|deleted|trimmed|stripped';
const MOVING = 'moved|renamed|split|extracted|copied|ported|migrated';
const FIXING = 'fixed|corrected|repaired|patched';
const OTHERS =
  'adjusted|bumped|changed|cleaned up|converted|created|edited|enabled|expanded|extended|formatted|generated|improved|inlined|merged|modified|refactored|regenerated|relaxed|reordered|reorganized|reorganised|replaced|reworked|rewrote|rewritten|simplified|tightened|touched|updated|wrote|written';
const PAST = `${ADDING}|${TAKING}|${MOVING}|${FIXING}|${OTHERS}`;
/** As a list of changes names them: "Add a guard to". */
const PRESENT =
  'adds?|changes?|creates?|deletes?|edits?|extends?|fix(?:es)?|implements?|introduces?|moves?|refactors?|removes?|renames?|rewrites?|simplif(?:y|ies)|updates?|writes?';

/** Words that begin another thought: between a verb and a path they cut the path off. */
const STOP =
  'of|for|with|about|on|by|per|via|using|than|that|which|who|where|when|while|because|since|so|as|like|to|in|into|from|at|inside|within|under|over|after|before|until|if|unless|and|or|not|no|nothing|none|never|neither|nor|is|are|was|were|be|been|being|has|have|had|do|does|did|can|could|will|would|should|may|might|must|how|what|why|its|described|defined|documented|declared|mentioned|listed|referenced|used|found|reported|seen|shown|called|exported|imported|pointing|matching|following|calling|referring|linking';
const WORD = String.raw`(?:(?:of\s+(?:the\s+|a\s+)?)?(?:(?!(?:${STOP})\b)[\w'\u2019/+-]+|\u0001[oc]\d+\u0001))`;
const SOME = String.raw`(?:${WORD},?\s+){0,5}`;

/** What may follow a path that is a verb's object; a noun may not ("changed `a.json` parsing"). */
const AFTER = String.raw`(?=\s*(?:[.,;:!)(\u2014\u2013\u2192]|--?\s|->|=>|$|['\u2019]s\b|(?:and|to|so|with|by|for|in|from|which|where|that|accordingly|too|as|because|since|after|again|via|using|itself|instead|now|only|also|first|into|under|at|on|when|while|covering|containing|including|exporting|adding|making|removing|implementing|file|module|script|helper|component|tests?)\b))`;

const HEAD = String.raw`(?:^|[:,.]\s+|\band\s+|\bthen\s+)\W*(?:(?:also|then|and|finally|additionally|next|first|second|third|lastly|now|newly|in addition|along the way|as requested|done)[,:.!]?\s+)*(?:(?:i|we)(?:['\u2019]ve|\s+have)?\s+)?(?:(?:also|then|only|just|now|both|have|slightly|carefully|simply|manually|first)\s+)*`;

function changedIn(clause: string, { context, kind }: Block): number[] {
  const found = new Set<number>();
  const isList = context === 'changed' && kind === 'item';
  for (const at of headOf(clause, isList)) found.add(at);
  const verbs = isList ? `${PAST}|${PRESENT}` : PAST;
  for (const match of clause.matchAll(rule(String.raw`${HEAD}(${verbs})\s+`))) {
    const start = match.index + match[0].length;
    if (NOT_OURS.test(withoutMarks(clause)) || NEGATIVE.test(clause.slice(0, start))) continue;
    for (const at of objectOf((match[1] ?? '').toLowerCase(), clause.slice(start))) found.add(at);
  }
  if (NOT_OURS.test(withoutMarks(clause)) || NEGATIVE.test(clause)) return [...found];
  for (const one of OTHER_SHAPES) for (const at of listsIn(clause, one)) found.add(at);
  return [...found];
}

/** `lib/a.ts` (new), "`lib/a.ts`: added …", and in a list of changes any path that heads its item. */
function headOf(clause: string, isList: boolean): number[] {
  const head = rule(
    String.raw`^\W*((?:files?\s+)?(?:new|added|created|modified|updated|changed|edited|deleted|removed)(?:\s+files?)?:\s+)?(${LIST})(.*)$`,
  ).exec(clause);
  const [, label, list = '', rest = ''] = head ?? [];
  const words = withoutMarks(rest);
  if (
    list === '' ||
    NOT_OURS.test(words) ||
    NEGATIVE.test(words.slice(0, 40)) ||
    /unchanged|untouched/i.test(words)
  )
    return [];
  const isMarked =
    /^\s*[([](?:new|added|created|modified|updated|changed|edited|deleted|removed|renamed)\b/i.test(rest);
  const isTold = rule(String.raw`^\s*(?:\([^)]*\)\s*)?(?::|[\u2014\u2013]|--?\s)\s*(?:${PAST})\b`).test(rest);
  const isHead = isList && /^\s*(?:$|[:.,;(\u2014\u2013]|--?\s|->|=>|\u2192)/.test(rest);
  return label !== undefined || isMarked || isTold || isHead ? indexes(list, /\u0001[pm](\d+)\u0001/g) : [];
}

/** Shapes without one of the verbs in front. */
const OTHER_SHAPES = [
  // "`a.ts` was renamed"
  rule(
    String.raw`(?:^\W*|,\s+|\band\s+)(?:the\s+|both\s+|files?\s+|new\s+)*(${LIST})\s+(?:file\s+|module\s+)?(?:has been|have been|was|were|is now|are now)\s+(?:also\s+|now\s+|newly\s+|all\s+)*(?:${PAST})(?=\s*(?:[.,;:!)]|$|(?:to|so|with|and|accordingly|as well)\b))`,
  ),
  // "made two changes to `a.ts`"
  rule(
    String.raw`\bmade\s+(?:${WORD}\s+){0,3}(?:changes?|edits?|modifications?|updates?|improvements?|adjustments?)\s+(?:to|in)\s+(?:the\s+|files?\s+)*(${LIST})${AFTER}`,
  ),
  // "In `a.ts`, I added a guard"
  rule(
    String.raw`^\W*in\s+(?:the\s+|both\s+)*(${LIST})\s*[,:]\s*(?:(?:i|we)\s+(?:also\s+)?)?(?:${PAST})\b(?!\s+(?:${LIST}))`,
  ),
];

/** Where the thing said has its path: the object itself, or what it was put into. */
function objectOf(verb: string, rest: string): number[] {
  const direct = rule(String.raw`^${SOME}(?:\(\s*)?(${LIST})${AFTER}`).exec(rest);
  if (direct === null) return placeOf(verb, rest);
  const [whole, list = ''] = direct;
  const after = rest.slice(whole.length);
  const isMoving = is(MOVING, verb);
  if (isMoving) return [...all(list), ...moves(after)];
  const isPart = rule(
    String.raw`^\s*(?:to|in|into|from|under|at|on)\s+(?:${MARK}|(?:the|our|your|its|a|an|this|that|both|all|each)\b)`,
  );
  if ((is(ADDING, verb) || is(TAKING, verb)) && isPart.test(after)) return placeOf(verb, `it${after}`);
  if (verb.startsWith('replac') && /^\s*(?:with|by)\b/.test(after)) return [];
  // A failing test is mended elsewhere as often as in its file.
  if (is(FIXING, verb) && /\b(?:by|via)\b/i.test(after)) return [];
  return all(list);
}

function placeOf(verb: string, rest: string): number[] {
  const isMoving = is(MOVING, verb);
  const isTaking = is(TAKING, verb);
  const prepositions = isMoving || isTaking ? 'in|to|into|inside|from|out of' : 'in|to|into|inside|within';
  const place = rule(
    String.raw`^(${SOME})(${prepositions})\s+(?:(?:the|both|our|new|existing|files?|all|each)\s+)*(${LIST})${AFTER}`,
  ).exec(rest);
  if (place === null) return [];
  const [whole, thing = '', preposition = '', list = ''] = place;
  const after = rest.slice(whole.length);
  if (thing.trim() === '' && !/^(?:added|appended|wrote|written|moved)/.test(verb)) return [];
  if (preposition.toLowerCase() === 'to' && REFERS.test(thing)) return [];
  if (preposition.toLowerCase() === 'to' && !is(ADDING, verb) && !isMoving) return [];
  if (
    is(FIXING, verb) &&
    (/test|fail|error|crash|flak|warning|issue|problem/i.test(thing) || /\b(?:by|via)\b/i.test(after))
  )
    return [];
  return isMoving ? [...all(list), ...moves(after)] : all(list);
}

/** "a link to `a.ts`" is in another file. */
const REFERS =
  /\b(?:links?|references?|pointers?|redirects?|mentions?|paths?|symlinks?|alias(?:es)?|calls?|imports?|access|credits?)\s*$/i;

/** The other end of a move. */
function moves(after: string): number[] {
  return listsIn(
    after,
    rule(
      String.raw`^.{0,60}?(?:\bto|\binto|\bfrom|\bout of|\u2192|->|=>)\s+(?:the\s+|a\s+|new\s+|files?\s+)*(${LIST})`,
    ),
  );
}

type Commands = Pick<Said, 'ran' | 'passed' | 'testsPass'>;

const NO_COMMANDS: Commands = { ran: [], passed: [], testsPass: false };

function commandsIn(clause: string, { context, kind }: Block): Commands {
  const words = withoutMarks(clause);
  const all = indexes(clause, /\u0001c(\d+)\u0001/g);
  if (NOT_OURS.test(words) || NEGATIVE.test(words.replace(NO_ERRORS, ''))) return NO_COMMANDS;
  if (all.length === 0)
    return {
      ...NO_COMMANDS,
      testsPass: TESTS_PASS.test(words) && !SAVE.test(words) && !/\bbefore\b/i.test(words),
    };
  const ranFirst = RAN.test(clause) || (context === 'ran' && kind === 'item' && /^\W*\u0001c/.test(clause));
  const isResult = rule(
    String.raw`^\W*(?:(?:and|the|both|finally|then)\s+)*\u0001c\d+\u0001(?:\s*(?:,|and|&|\+)\s*(?:and\s+)?\u0001c\d+\u0001)*\s*(.*)$`,
  ).exec(clause);
  const passes = PASSES.test(words) && !FAILS.test(words) && !SAVE.test(words);
  if (passes && (isResult !== null || ranFirst)) return { ...NO_COMMANDS, passed: all };
  const saysRan =
    isResult !== null && /^(?:was|were) (?:also )?run\b|^(?:fails|failed)\b/i.test(isResult[1] ?? '');
  return ranFirst || saysRan ? { ...NO_COMMANDS, ran: all } : NO_COMMANDS;
}

const NO_ERRORS =
  /\b(?:no|without|0|zero)\s+(?:\w+\s+){0,2}(?:errors?|failures?|warnings?|issues?|problems?)\b/gi;
const PASSES =
  /\b(?:pass|passes|passed|passing|succeeds?|succeeded|green|clean|cleanly|ok)\b|\bexit(?:s|ed)? (?:with )?(?:code |status )?0\b|\u2713|\u2705|\bcompleted successfully\b|\b(?:no|without|0|zero)\s+(?:\w+\s+)?(?:errors?|failures?)\b/i;
const FAILS = /\b(?:[1-9]\d* (?:tests? )?fail\w*|fails|failed|failing|before|flaky)\b/i;
const RAN =
  /(?:^|[,:]\s+|\band\s+|\bthen\s+)\W*(?:(?:also|then|finally|and)[,]?\s+)*(?:(?:i|we)(?:['\u2019]ve|\s+have)?\s+)?(?:(?:also|then|just|have)\s+)*(?:ran|executed|re-?ran|verified (?:\w+ )?(?:with|via|using|by running)|checked (?:\w+ )?(?:with|via|using|by running)|tested (?:\w+ )?(?:with|via|using|by running)|confirmed (?:\w+ )?(?:with|via|using|by running)|after running|by running)\s+(?:the\s+|both\s+|full\s+)*\u0001c|\b(?:i|we) have run \u0001c/i;
const TESTS_PASS =
  /^\W*(?:(?:and|now|finally|the|all|existing|unit|full|whole|entire|integration|test|of|my|our|new|\d+(?:\/\d+)?)\s+)*(?:tests?|suite|specs?)\s+(?:(?:now|still|all|are|is|also|continue to|have)\s+)*(?:pass|passes|passed|passing|green|succeed|succeeds|succeeded)\b(?!\s+(?:locally for you|in ci))/i;

function rule(source: string, flags = source.startsWith('^') ? 'iu' : 'giu'): RegExp {
  const known = RULES.get(`${flags} ${source}`);
  if (known !== undefined) return known;
  const made = new RegExp(source, flags);
  RULES.set(`${flags} ${source}`, made);
  return made;
}

const is = (verbs: string, verb: string): boolean => rule(`^(?:${verbs})$`).test(verb);
const withoutMarks = (text: string): string => text.replace(/\u0001\w\d+\u0001/g, '\u0001');
const all = (list: string): number[] => indexes(list, /\u0001[pm](\d+)\u0001/g);

function listsIn(text: string, shape: RegExp): number[] {
  return [...text.matchAll(rule(shape.source, 'giu'))].flatMap((match) => all(match[1] ?? ''));
}

function indexes(text: string, marks: RegExp): number[] {
  return [...text.matchAll(marks)].map((match) => Number(match[1]));
}
