/**
 * What an agent's own transcript says at the end of a turn: how long it is by then, and what the turn has used.
 *
 * Only numbers and the model's name are taken; no word of a conversation leaves the file. Of Claude Code the sum over the answers
 * after the prompt, each once (its lines repeat an answer's usage); subagents that write a transcript of their own are not in it. Of Codex the
 * last record of the turn, which sums itself. Neither says what a turn cost; OpenCode and Kilo name no transcript.
 *
 * Source: transcripts recorded from Claude Code 2.1.332 and Codex CLI 0.171.0 (test/fixtures/transcripts). Lines of other kinds are passed
 * over. Where the turn's beginning is not within the last MOST_BYTES, or a line is not as it was seen, nobody knows the usage.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import * as v from 'valibot';
import { count } from '../event-shapes.js';
import type { Used } from '../turn/used.js';
import type { AgentName, StepOf } from './step.js';

export interface Transcript {
  readonly path: string;
  /** Its length. */
  readonly bytes: number;
}

export interface TranscriptSaid {
  /** Null where the agent names none, or it is not there. */
  readonly transcript: Transcript | null;
  /** Null where nobody knows it. */
  readonly used: Used | null;
}

const MOST_BYTES = 16 * 1024 * 1024;
const LONGEST_PATH = 4096;

const NOTHING: TranscriptSaid = { transcript: null, used: null };

/** Never throws: what cannot be read says nothing. */
export function readTranscript(agent: AgentName, step: StepOf<'stop'>): TranscriptSaid {
  const { transcript: path, turn } = step;
  if (path === null || path.length > LONGEST_PATH) return NOTHING;
  try {
    const { bytes, tail } = tailOf(path);
    const used = turn === null ? null : usedIn(agent, tail.split('\n'), { turn, model: step.model });
    return { transcript: { path, bytes }, used };
  } catch {
    // The agent's own file, which it may write at this moment, or may have put elsewhere.
    return NOTHING;
  }
}

function tailOf(path: string): { bytes: number; tail: string } {
  const file = openSync(path, 'r');
  try {
    const bytes = fstatSync(file).size;
    const tail = Buffer.alloc(Math.min(bytes, MOST_BYTES));
    const read = readSync(file, tail, 0, tail.length, bytes - tail.length);
    return { bytes, tail: tail.toString('utf8', 0, read) };
  } finally {
    closeSync(file);
  }
}

interface Of {
  readonly turn: string;
  readonly model: string | null;
}

function usedIn(agent: AgentName, lines: readonly string[], of: Of): Used | null {
  if (agent === 'claude-code') return usedInClaude(lines, of);
  return agent === 'codex' ? usedInCodex(lines, of) : null;
}

const parsed = <S extends v.GenericSchema>(schema: S, line: string): v.InferOutput<S> | null => {
  const result = v.safeParse(v.pipe(v.string(), v.parseJson(), schema), line);
  return result.success ? result.output : null;
};

const ANSWER = v.object({
  type: v.literal('assistant'),
  message: v.object({
    id: v.string(),
    model: v.string(),
    usage: v.object({
      input_tokens: count,
      output_tokens: count,
      cache_creation_input_tokens: v.optional(count, 0),
      cache_read_input_tokens: v.optional(count, 0),
    }),
  }),
});

function usedInClaude(lines: readonly string[], { turn }: Of): Used | null {
  const begin = lines.findIndex((line) => line.includes(`"promptId":${JSON.stringify(turn)}`));
  if (begin === -1) return null;
  const answers = new Map<string, v.InferOutput<typeof ANSWER>['message']>();
  for (const line of lines.slice(begin)) {
    const answer = line.includes('"assistant"') ? parsed(ANSWER, line) : null;
    if (answer !== null) answers.set(answer.message.id, answer.message);
  }
  const all = [...answers.values()];
  if (all.length === 0) return null;
  const sum = (of: (usage: (typeof all)[number]['usage']) => number): number =>
    all.reduce((total, { usage }) => total + of(usage), 0);
  return {
    invocation: null,
    model: all.at(-1)?.model ?? null,
    inputTokens: sum(({ input_tokens }) => input_tokens),
    outputTokens: sum(({ output_tokens }) => output_tokens),
    cacheTokens: sum((usage) => usage.cache_creation_input_tokens + usage.cache_read_input_tokens),
    costUsd: null,
    wallMs: null,
  };
}

const RECORD = v.object({
  type: v.literal('token_usage_record'),
  payload: v.object({
    turn_id: v.string(),
    turn_token_usage: v.object({
      input_tokens: count,
      output_tokens: count,
      cached_input_tokens: v.optional(count, 0),
    }),
  }),
});

function usedInCodex(lines: readonly string[], { turn, model }: Of): Used | null {
  for (const line of lines.toReversed()) {
    const record = line.includes('"token_usage_record"') ? parsed(RECORD, line) : null;
    if (record?.payload.turn_id !== turn) continue;
    const { input_tokens, output_tokens, cached_input_tokens } = record.payload.turn_token_usage;
    return {
      invocation: null,
      model,
      inputTokens: input_tokens,
      outputTokens: output_tokens,
      cacheTokens: cached_input_tokens,
      costUsd: null,
      wallMs: null,
    };
  }
  return null;
}
