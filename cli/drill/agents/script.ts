/**
 * What a scripted model does, in words that fit every agent, and what it heard.
 *
 * A script has a list of steps for each key. A request belongs to the last key of the script that its conversation names, and is
 * answered with the step whose number is that of the tool results since that key was last named. After the last step the model
 * says that it is done. So two sessions can be driven at once, and a context that quotes an earlier prompt does no harm.
 */
export type ModelStep =
  | { readonly write: string; readonly content: string }
  /** In a file that was read before: the whole line `from`, which is there once, becomes `to`. */
  | { readonly edit: string; readonly from: string; readonly to: string }
  /** `isOutside`: to be run outside of the sandbox, for which Codex asks. */
  | { readonly shell: string; readonly isOutside?: true }
  | { readonly read: string }
  | { readonly say: string }
  /** The answer never comes. */
  | { readonly silent: true };

export type ModelScript = Readonly<Record<string, readonly ModelStep[]>>;

/** One thing said to the model, in the order of the conversation. */
export interface Heard {
  readonly from: 'system' | 'person' | 'model' | 'tool';
  readonly text: string;
}

export interface ModelRequest {
  /** Null for a request that asks for no step: a title, say. */
  readonly key: string | null;
  readonly step: number;
  readonly heard: readonly Heard[];
}

/** Which step a conversation has come to. `key` is null where none is named. */
export function stepOf(script: ModelScript, heard: readonly Heard[]): { key: string | null; step: number } {
  for (const key of Object.keys(script).reverse()) {
    const at = heard.findLastIndex(({ from, text }) => from === 'person' && text.includes(key));
    if (at === -1) continue;
    return { key, step: heard.slice(at).filter(({ from }) => from === 'tool').length };
  }
  return { key: null, step: 0 };
}
