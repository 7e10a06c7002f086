/**
 * Text as it may stand in a ledger: redacted by the caller's rule, then cut to what the format holds (lib/event.ts).
 *
 * By member name, at any depth: `command` inside a process as well as `summary` at the top.
 */
import type { EventDraft, EventType } from '../event.js';
import { cut } from './subject.js';

export type Redact = (text: string) => string;

const TEXT = 2000;
const SUMMARY = 200;

const LIMITS: Readonly<Record<string, number>> = {
  objective: TEXT,
  message: TEXT,
  text: TEXT,
  feedbackSummary: TEXT,
  summary: SUMMARY,
  reason: SUMMARY,
  command: SUMMARY,
  proof: SUMMARY,
  what: SUMMARY,
};

/** Where a name is longer in one type than in the others. */
const LONGER: { readonly [T in EventType]?: Readonly<Record<string, number>> } = {
  'turn.finished': { summary: TEXT },
  'conversation.rewound': { reason: TEXT },
};

export function fitted(draft: EventDraft, redact: Redact): Readonly<Record<string, unknown>> {
  const limits = { ...LIMITS, ...LONGER[draft.type] };
  return members(draft, (name, text) => {
    const limit = limits[name];
    return limit === undefined ? text : cut(redact(text), limit);
  });
}

type Fit = (name: string, text: string) => string;

function members(value: object, fit: Fit): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, fittedMember(name, member, fit)]),
  );
}

function fittedMember(name: string, value: unknown, fit: Fit): unknown {
  if (typeof value === 'string') return fit(name, value);
  if (Array.isArray(value)) return value.map((item: unknown) => fittedMember(name, item, fit));
  return typeof value === 'object' && value !== null ? members(value, fit) : value;
}
