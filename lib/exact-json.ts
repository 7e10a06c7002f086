/**
 * JSON whose text is the evidence. A parsed value forgets what the text said: 9007199254740993 is rounded, 1e400 becomes
 * infinite, of two members with one name the first is gone. So exact arguments travel as their text.
 *
 * `exactJson` wraps a text, `ExactJson.text` is what was recorded, and `jsonFault` names what readers of a text could take
 * differently (RFC 8259 section 4: names should be unique, section 6: numbers beyond binary64 are not interoperable, section 8.2: nor is half
 * of a surrogate pair).
 */
export class ExactJson {
  /** Valid JSON, byte for byte as it was recorded. */
  readonly text: string;

  constructor(text: string) {
    JSON.parse(text);
    this.text = text;
  }

  /** The text without the white space between its tokens: one line. */
  get line(): string {
    return [...tokens(this.text)].join('');
  }

  /** The value as JavaScript reads it: numbers beyond binary64 are rounded, of equal names the last one counts. */
  get value(): unknown {
    return JSON.parse(this.text) as unknown;
  }

  /** For JSON.stringify, which cannot carry a text: the value. */
  toJSON(): unknown {
    return this.value;
  }
}

/** The text as JSON where it is JSON, else the text itself. */
export function exactJson(text: string): ExactJson | string {
  try {
    return new ExactJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}

/** Why two readers could take a valid JSON text differently; null when they cannot. */
export function jsonFault(text: string): string | null {
  const open: (Set<string> | null)[] = [];
  let before = '';
  for (const token of tokens(text)) {
    if (token.startsWith('"') && !String(JSON.parse(token)).isWellFormed())
      return `${token} has half a character, which has no UTF-8`;
    const names = open.at(-1) ?? null;
    if (token === '{') open.push(new Set());
    else if (token === '[') open.push(null);
    else if (token === '}' || token === ']') open.pop();
    else if (names !== null && token.startsWith('"') && (before === '{' || before === ',')) {
      const name = String(JSON.parse(token));
      if (names.has(name)) return `the name ${token} stands twice in one object`;
      names.add(name);
    } else if (/^[-\d]/u.test(token) && !Number.isFinite(Number(token)))
      return `${token} is beyond any number`;
    before = token;
  }
  return null;
}

/** Strings, punctuation, and runs of anything else, of a text that is known to be JSON. */
function* tokens(text: string): Generator<string> {
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/gu)) yield token;
}
