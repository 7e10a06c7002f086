/**
 * What an agent's own tools do to the work tree, as far as their input tells it.
 *
 * A tool that is not known here is taken for one that may write anything: a checkpoint before and after it. Expected bytes are
 * given only where the host writes them as they stand in the input; OpenCode and Kilo may run a formatter on what they wrote, and a
 * wrong expectation would make recovery call the agent's own file a stranger's.
 */
import { posix } from 'node:path';
import * as v from 'valibot';
import type { AgentName } from './step.js';

export interface WrittenPath {
  /** As the tool was given it: absolute, or relative to the tool's folder. */
  readonly path: string;
  /** The whole content there will be, null for a deletion, 'unknown' where the input does not tell. */
  readonly expected: Uint8Array | null | 'unknown';
}

/** 'reads': changes nothing here. 'anything': nobody can tell beforehand. Else the files it names. */
export type Effect = 'reads' | 'anything' | readonly WrittenPath[];

const READING = new Set(
  [
    ['Read', 'Grep', 'Glob', 'LS', 'NotebookRead', 'WebFetch', 'WebSearch', 'TodoWrite', 'TodoRead'],
    ['Agent', 'Task', 'BashOutput', 'AskUserQuestion', 'ExitPlanMode', 'ToolSearch'],
    ['read', 'grep', 'glob', 'list', 'webfetch', 'websearch', 'todowrite', 'todoread', 'task', 'question'],
    ['view_image', 'update_plan', 'web_search'],
  ].flat(),
);

const FILE = v.object({ file_path: v.string(), content: v.optional(v.string()) });
const NOTEBOOK = v.object({ notebook_path: v.string() });
const PLUGIN_FILE = v.object({ filePath: v.string() });
const PATCH = v.object({ command: v.string() });

export function effectOf(agent: AgentName, tool: string, input: unknown): Effect {
  if (READING.has(tool)) return 'reads';
  if (agent === 'codex') return tool === 'apply_patch' ? patched(input) : 'anything';
  if (agent === 'claude-code') return ofClaude(tool, input);
  return tool === 'write' || tool === 'edit'
    ? named(PLUGIN_FILE, input, ({ filePath }) => filePath)
    : 'anything';
}

function ofClaude(tool: string, input: unknown): Effect {
  if (tool === 'Write') {
    const said = v.safeParse(FILE, input);
    if (!said.success) return 'anything';
    const { file_path: path, content } = said.output;
    return [{ path, expected: content === undefined ? 'unknown' : Buffer.from(content, 'utf8') }];
  }
  if (tool === 'Edit' || tool === 'MultiEdit') return named(FILE, input, ({ file_path }) => file_path);
  if (tool === 'NotebookEdit') return named(NOTEBOOK, input, ({ notebook_path }) => notebook_path);
  return 'anything';
}

function named<S extends v.GenericSchema>(
  schema: S,
  input: unknown,
  pathOf: (said: v.InferOutput<S>) => string,
): Effect {
  const said = v.safeParse(schema, input);
  return said.success ? [{ path: pathOf(said.output), expected: 'unknown' }] : 'anything';
}

/** The files of a patch in Codex's own format. A file that is moved away is deleted; what it becomes is not computed. */
function patched(input: unknown): Effect {
  const said = v.safeParse(PATCH, input);
  if (!said.success || !said.output.command.includes('*** Begin Patch')) return 'anything';
  const files = new Map<string, WrittenPath['expected']>();
  let updated: string | null = null;
  for (const line of said.output.command.split('\n')) {
    const [, what, path] = /^\*\*\* (Add File|Update File|Delete File|Move to): (.+?)\r?$/.exec(line) ?? [];
    if (what === undefined || path === undefined) continue;
    files.set(path, what === 'Delete File' ? null : 'unknown');
    if (what === 'Move to' && updated !== null) files.set(updated, null);
    updated = what === 'Update File' ? path : null;
  }
  return files.size === 0 ? 'anything' : [...files].map(([path, expected]) => ({ path, expected }));
}

/** Relative to the work tree, `/`-separated; null for a path outside of it. Says nothing of links on the way. */
export function insideTree(workTree: string, cwd: string, path: string): string | null {
  const within = posix.relative(workTree, posix.resolve(cwd, path));
  return within === '' || within === '..' || within.startsWith('../') ? null : within;
}
