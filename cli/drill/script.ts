/**
 * What the scripted agent does in one turn: a list of acts drawn from the seed.
 *
 * It begins with the approval that stays pending, the conflict that stays open and the background process, so that most kills
 * find all three; the rest is
 * in random order: ten of the nineteen files by two transactions, nine one by one and in place, one file created,
 * one deleted, a rename with a mode and a link in one transaction, one file edited a second time, a call that fails, one
 * that is denied, and two shell calls (one says which path it will write, one does not).
 */
import type { Chance } from './chance.js';
import { LEGACY_FILE, SYMBOL_FILES } from './scratch.js';

/** Small writes that one file is rewritten in. */
export const PIECES = 24;

/** How a file is rewritten in place. 'over': from the start over the old bytes. 'truncated': emptied first. */
export type Style = 'over' | 'truncated';

export type Act =
  | { readonly kind: 'turn' | 'approval' | 'conflict' | 'background' | 'failed' | 'denied' }
  | { readonly kind: 'shell' | 'declared-shell' | 'mixed' }
  | { readonly kind: 'transaction'; readonly paths: readonly string[] }
  | { readonly kind: 'delete' | 'create'; readonly path: string }
  /** 'again': a file that the first transaction has changed already. */
  | { readonly kind: 'rewrite' | 'again'; readonly path: string; readonly style: Style };

export type ActKind = Act['kind'];

export const CREATED_FILE = 'docs/renamed/parseConfig.md';

export function writeScript(chance: Chance): Act[] {
  const files = chance.shuffled(SYMBOL_FILES);
  const style = (): Style => chance.pick(['over', 'truncated']);
  const rewrites = files.slice(10).map((path): Act => ({ kind: 'rewrite', path, style: style() }));
  const first: Act = { kind: 'transaction', paths: files.slice(0, 6) };
  const rest = chance.shuffled<Act>([
    ...rewrites,
    first,
    { kind: 'transaction', paths: files.slice(6, 10) },
    { kind: 'mixed' },
    { kind: 'create', path: CREATED_FILE },
    { kind: 'delete', path: LEGACY_FILE },
    { kind: 'failed' },
    { kind: 'denied' },
    { kind: 'shell' },
    { kind: 'declared-shell' },
  ]);
  const after = rest.indexOf(first) + 1;
  const again: Act = { kind: 'again', path: chance.pick(first.paths), style: style() };
  rest.splice(after + chance.below(rest.length - after + 1), 0, again);
  const standing = chance.shuffled<Act>([{ kind: 'approval' }, { kind: 'conflict' }, { kind: 'background' }]);
  return [{ kind: 'turn' }, ...standing, ...rest];
}

/** How many lines an act adds to the record when nothing disturbs it. */
const LINES: { readonly [K in ActKind]: number } = {
  turn: 2,
  approval: 2,
  conflict: 2,
  background: 3,
  failed: 3,
  denied: 2,
  shell: 5,
  'declared-shell': 5,
  transaction: 2,
  mixed: 2,
  delete: 2,
  create: PIECES + 4,
  rewrite: PIECES + 4,
  again: PIECES + 4,
};

export interface KillMoment {
  /** The kill comes when the record has this many lines … */
  readonly lines: number;
  /** … and this long after, in units of what the request for approval took in this very turn: machines differ, and load. */
  readonly units: number;
  /** How many lines the record has when that request is made; it is answered with the next one. */
  readonly sample: number;
}

/** How long the product's part of an act takes at most, in those units (measured on two cores under load). */
const LENGTHS: { readonly [K in ActKind]: number } = {
  turn: 20,
  approval: 1,
  conflict: 2,
  background: 1,
  failed: 3,
  denied: 2,
  shell: 9,
  'declared-shell': 2,
  mixed: 6,
  transaction: 6,
  delete: 2,
  create: 2,
  rewrite: 2,
  again: 2,
};

/**
 * Any act after the turn's start, transactions three times as often as others (they are few, and a kill between their
 * renames is what they are for); then any line of it, or for an act that is one call of the product mostly inside it;
 * then any moment up to the next.
 */
export function chooseKill(chance: Chance, script: readonly Act[]): KillMoment {
  const places = [...script.keys()].slice(1).flatMap((at) => Array<number>(weightOf(script[at])).fill(at));
  const at = chance.pick(places);
  const kind = script[at]?.kind ?? 'turn';
  const length = LINES[kind];
  const line = length === 2 && chance.often(1, 2) ? 1 : 1 + chance.below(length);
  const inPieces = length > PIECES && line > 2 && line < PIECES + 2;
  const units = (chance.below(1000) / 1000) * (inPieces ? ONE_WRITE : LENGTHS[kind]);
  const asked = script.findIndex((act) => act.kind === 'approval');
  return { lines: linesBefore(script, at) + line, units, sample: linesBefore(script, asked) + 1 };
}

/** A small write and its line take about this part of a call. */
const ONE_WRITE = 0.05;

function linesBefore(script: readonly Act[], at: number): number {
  return script.slice(0, at).reduce((sum, act) => sum + LINES[act.kind], 0);
}

const TRANSACTIONS: readonly (ActKind | undefined)[] = ['transaction', 'mixed', 'delete'];

function weightOf(act: Act | undefined): number {
  return TRANSACTIONS.includes(act?.kind) ? 3 : 1;
}
