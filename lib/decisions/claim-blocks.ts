/**
 * A final text in Markdown as blocks: paragraphs and list items on one line each, fenced code, and below which heading they stand.
 *
 * A heading, a line that ends in a colon, or a table's head gives a context to what follows: 'changed' ("Files changed:"), 'ran'
 * ("Commands run"), 'plan' ("Next steps", "How to test": nothing there is a claim), or none. Quotations are left out. Pure.
 */
export type Context = 'changed' | 'ran' | 'plan' | null;

export interface Block {
  readonly kind: 'prose' | 'item' | 'code';
  readonly text: string;
  readonly context: Context;
}

export function blocksOf(text: string): Block[] {
  const cutting = new Cutting();
  for (const line of text.split(/\r\n|\n|\r/)) cutting.line(line);
  return cutting.end();
}

class Cutting {
  readonly #blocks: Block[] = [];
  #open: { kind: Block['kind']; lines: string[] } | null = null;
  /** The fence that ends a block of code; null outside of one. */
  #fence: string | null = null;
  #heading: Context = null;
  /** Of the line that ends in a colon, for the list right below it. */
  #lead: Context | undefined;

  line(line: string): void {
    const fence = /^\s*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})/.exec(line)?.[1];
    if (this.#fence !== null) {
      if (fence?.startsWith(this.#fence) === true && line.trim() === fence) this.#endCode();
      else this.#open?.lines.push(line);
    } else if (fence !== undefined) {
      this.#flush();
      this.#fence = fence;
      this.#open = { kind: 'code', lines: [] };
    } else this.#plain(line);
  }

  end(): Block[] {
    this.#flush();
    return this.#blocks;
  }

  #plain(line: string): void {
    const heading = headingOf(line);
    const item = /^\s*(?:[-*+\u2022]|\d{1,3}[.)])\s+(\[[ xX]\]\s+)?(.*)$/.exec(line);
    if (line.trim() === '') this.#flush();
    else if (/^\s*>/.test(line)) this.#flush();
    else if (heading !== null) this.#head(heading);
    else if (/^\s*\|/.test(line)) this.#row(line);
    // What is not ticked is still to be done.
    else if (item?.[1]?.startsWith('[ ]') === true) this.#flush();
    else if (item !== null) this.#begin('item', item[2] ?? '');
    else if (this.#open === null) this.#begin('prose', line.trim());
    else this.#open.lines.push(line.trim());
  }

  #begin(kind: 'prose' | 'item', text: string): void {
    this.#flush();
    if (kind === 'prose') this.#lead = undefined;
    this.#open = { kind, lines: [text] };
  }

  #head(text: string): void {
    this.#flush();
    this.#heading = contextOf(text);
    this.#lead = undefined;
  }

  /** The first cell of a row is the head of an item. */
  #row(line: string): void {
    this.#flush();
    const cells = line.split('|').map((cell) => cell.trim());
    if (/^[\s|:-]+$/.test(line)) return;
    if (/^\|\s*\**(?:files?|paths?|modules?)\**\s*\|/i.test(line.trim()))
      this.#lead = /chang|modif|did/i.test(line) ? 'changed' : undefined;
    else if (/^\|\s*\**commands?\**\s*\|/i.test(line.trim()))
      this.#lead = /result|outcome|exit/i.test(line) ? 'ran' : undefined;
    else this.#push('item', `${cells[1] ?? ''}: ${cells.slice(2).join(' ')}`);
  }

  #endCode(): void {
    this.#fence = null;
    this.#flush();
  }

  #flush(): void {
    const { kind = 'prose', lines = [] } = this.#open ?? {};
    const isOpen = this.#open !== null;
    this.#open = null;
    this.#fence = null;
    if (!isOpen) return;
    this.#push(kind, lines.join(kind === 'code' ? '\n' : ' '));
  }

  #push(kind: Block['kind'], text: string): void {
    const context = kind === 'item' && this.#lead !== undefined ? this.#lead : this.#heading;
    // A sentence that says what the list below it is, is itself only read as a sentence.
    this.#blocks.push({ kind, text, context });
    if (kind !== 'code' && /:\s*\**\s*$/.test(text)) this.#lead = contextOf(text) ?? context;
  }
}

/** `## Text`, or a line that is bold and nothing else. */
function headingOf(line: string): string | null {
  const found = /^\s{0,3}#{1,6}\s+(.*?)\s*#*$/.exec(line) ?? /^\s*\*\*([^*]+)\*\*:?\s*$/.exec(line);
  return found?.[1] ?? null;
}

const PLAN =
  /\b(?:next steps?|to ?do|follow[- ]?ups?|suggest\w*|recommend\w*|remaining|how to|to (?:run|test|verify|try|use|reproduce)|usage|you|not|no|none|nothing|never|without|\w+n['\u2019]t|out of scope|left (?:alone|out|for)|unchanged|untouched|plan(?:ned)?|propos\w+|options?|questions?|caveats?|limitations?|known issues?|future|optional|if|would|could|might|should|still|previously|earlier|background|pre-existing|instructions)\b/i;

/** Only where the words are about what was changed: "files that use the changed parser" is no such list. */
const CHANGED = [
  /^\W*(?:(?:the|all|key|main|code|my|summary|list|of|other|more|further|and)\s+)*(?:changes?|edits|modifications)(?:\s+made)?\W*$/i,
  /^\W*(?:summary|list) of (?:the )?(?:changes|edits)\b/i,
  /\bfiles? (?:i |we )?(?:have |were |are )?(?:changed|modified|created|added|updated|edited|touched|deleted|removed)\W*(?:\(\d+\)\W*)?$/i,
  /^\W*(?:changed|modified|created|added|updated|edited|new|deleted|removed)(?: files?)?\W*(?:\(\d+\)\W*)?$/i,
  /\bwhat(?: has|['\u2019]s)? changed\W*$|\bwhat (?:i|we) (?:did|changed|added)\W*$/i,
  /\b(?:i|we)(?:['\u2019]ve| have)?(?: also| now| just)? (?:changed|modified|updated|edited|created|added|touched) (?:these|the following|\w+) (?:\w+ )?files\W*$/i,
  /\bmade (?:the following|these|\w+) (?:\w+ )?(?:changes|edits)\W*$/i,
];

const RAN = /^\W*(?:commands? (?:i |we )?(?:ran|run)|(?:checks|tests) run|(?:i|we) (?:also )?ran)\b/i;

function contextOf(text: string): Context {
  // Of a paragraph that leads in, its last sentence.
  const said = text.split(/(?<=[.!?])\s+/).at(-1) ?? '';
  if (PLAN.test(said) || /\?\s*$/.test(said)) return 'plan';
  if (RAN.test(said)) return 'ran';
  return CHANGED.some((one) => one.test(said)) ? 'changed' : null;
}
