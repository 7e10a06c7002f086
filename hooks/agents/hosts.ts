/**
 * Where each agent reads its hooks, and what stands there for us.
 *
 * Two forms: 'local' calls this very program by its path, 'shared' what is called `git-durable` on whoever's PATH and, where that is nothing,
 * nothing: a colleague who has not installed it goes on. Both end with the agent's name and a nonce; with it the program knows
 * the hooks of this installation by what they say when they fire (lib/agents/seen.ts).
 */
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import * as v from 'valibot';
import { QUESTION_SECONDS, USUAL_SECONDS } from '../../lib/agents/limits.js';
import { AGENTS, type AgentName } from '../../lib/agents/step.js';
import { PLUGIN_HOOKS } from '../../lib/agents/plugin-payload.js';
import { packageFile, PROGRAMS } from '../../lib/package.js';
import { shellQuoted } from '../../lib/shell-quoted.js';

export type Scope = 'local' | 'shared';

export interface AgentHost {
  /** The agent's program. */
  readonly program: string;
  /** Relative to the work tree's top. */
  readonly files: { readonly [S in Scope]: string };
  /** 'entries' among what is the user's own, or a 'plugin' that is a file of ours. */
  readonly kind: 'entries' | 'plugin';
}

const both = (path: string): AgentHost['files'] => ({ local: path, shared: path });

export const HOSTS: { readonly [A in AgentName]: AgentHost } = {
  'claude-code': {
    program: 'claude',
    // From a folder below the top Claude Code reads the top's local settings only, not its committed ones.
    files: { local: '.claude/settings.local.json', shared: '.claude/settings.json' },
    kind: 'entries',
  },
  codex: { program: 'codex', files: both('.codex/hooks.json'), kind: 'entries' },
  opencode: { program: 'opencode', files: both('.opencode/plugin/git-durable.js'), kind: 'plugin' },
  kilo: { program: 'kilo', files: both('.kilo/plugin/git-durable.js'), kind: 'plugin' },
};

/** Agents whose program is on PATH. */
export function agentsFound(env: Readonly<Record<string, string | undefined>>): AgentName[] {
  return AGENTS.filter((agent) => isOnPath(env, HOSTS[agent].program));
}

export function isOnPath(env: Readonly<Record<string, string | undefined>>, program: string): boolean {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.some((folder) => isProgram(join(folder, program)));
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Seconds. */
const SHORT = 30;
/** Codex ends the last two events after 3 s whatever stands here, and prints an error where it is more. */
const LAST = 3;

const EVENTS: { readonly [A in 'claude-code' | 'codex']: Readonly<Record<string, number>> } = {
  'claude-code': {
    SessionStart: USUAL_SECONDS,
    UserPromptSubmit: USUAL_SECONDS,
    PreToolUse: USUAL_SECONDS,
    PermissionRequest: QUESTION_SECONDS,
    PostToolUse: USUAL_SECONDS,
    PostToolUseFailure: USUAL_SECONDS,
    Stop: USUAL_SECONDS,
    StopFailure: USUAL_SECONDS,
    // Unsaid it would be 1.5 s.
    SessionEnd: SHORT,
  },
  codex: {
    SessionStart: USUAL_SECONDS,
    UserPromptSubmit: USUAL_SECONDS,
    PreToolUse: USUAL_SECONDS,
    PermissionRequest: QUESTION_SECONDS,
    PostToolUse: USUAL_SECONDS,
    Stop: USUAL_SECONDS,
    Interrupt: LAST,
    SessionEnd: LAST,
  },
};

export interface Handler {
  readonly type: 'command';
  readonly command: string;
  /** Seconds. */
  readonly timeout: number;
  readonly onFailure?: 'block';
}

export interface Mark {
  readonly scope: Scope;
  readonly nonce: string;
  /** The node that it is run with; null in the shared form. */
  readonly node: string | null;
}

/** Of a new installation by this process. */
export function freshMark(scope: Scope, nonce: string): Mark {
  return { scope, nonce, node: scope === 'local' ? process.execPath : null };
}

/** False for a node that is gone: what it is to run cannot be run. */
export const isRunnable = ({ node }: Mark): boolean => node === null || isProgram(node);

/** Our handler for each event that this agent's decoder reads. */
export function handlersOf(agent: 'claude-code' | 'codex', mark: Mark): Readonly<Record<string, Handler>> {
  const command = commandOf(agent, mark);
  const handler = ([event, timeout]: [string, number]): [string, Handler] => {
    const waits = agent === 'claude-code' && event === 'PreToolUse';
    return [event, { type: 'command', command, timeout, ...(waits ? { onFailure: 'block' } : {}) }];
  };
  return Object.fromEntries(Object.entries(EVENTS[agent]).map(handler));
}

/** Agents hand it to a shell. */
function commandOf(agent: AgentName, { node, nonce }: Mark): string {
  if (node !== null) return `${shellQuoted(node)} ${shellQuoted(PROGRAMS.hook)} ${agent} ${nonce}`;
  return `! command -v git-durable >/dev/null 2>&1 || git-durable hook ${agent} ${nonce}`;
}

const unquoted = (word: string): string => word.slice(1, -1).replaceAll(`'\\''`, "'");

const ANY = `(?:${AGENTS.join('|')})`;
const NONCE = '[a-z2-7]{16}';
const LOCAL = new RegExp(`^('(?:[^']|'\\\\'')*') '.*/hook-entry\\.js' ${ANY} (${NONCE})$`);
const SHARED = new RegExp(`\\bgit-durable hook ${ANY} (${NONCE})$`);

/** Whose a command of a hook is; null when it is not ours. */
export function markOf(command: string): Mark | null {
  const [, node, local] = LOCAL.exec(command) ?? [];
  if (node !== undefined && local !== undefined)
    return { scope: 'local', nonce: local, node: unquoted(node) };
  const shared = SHARED.exec(command)?.[1];
  return shared === undefined ? null : { scope: 'shared', nonce: shared, node: null };
}

const PLUGIN = packageFile('hooks/plugin/git-durable.js');
const PLACE = /^const INSTALLATION = (.*);$/m;
const PLUGIN_MARK = new RegExp(`^// git-durable plugin: (local|shared) (${NONCE})\\n`);
const INSTALLATION = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({ command: v.tupleWithRest([v.string()], v.string()) }),
);

/** The whole plugin file of OpenCode or Kilo. */
export function pluginText(agent: AgentName, { scope, nonce, node }: Mark): string {
  const command = node === null ? ['git-durable', 'hook'] : [node, PROGRAMS.hook];
  const installation = {
    command: [...command, agent, nonce],
    shared: scope === 'shared',
    hooks: PLUGIN_HOOKS,
    timeoutMs: { usual: USUAL_SECONDS * 1000, question: QUESTION_SECONDS * 1000 },
  };
  const body = readFileSync(PLUGIN, 'utf8').replace(
    PLACE,
    () => `const INSTALLATION = ${JSON.stringify(installation)};`,
  );
  return `// git-durable plugin: ${scope} ${nonce}\n${body}`;
}

/** Null for a file that is not our plugin. */
export function pluginMark(text: string): Mark | null {
  const [, scope, nonce] = PLUGIN_MARK.exec(text) ?? [];
  if (nonce === undefined) return null;
  if (scope === 'shared') return { scope, nonce, node: null };
  const said = v.safeParse(INSTALLATION, PLACE.exec(text)?.[1]);
  return { scope: 'local', nonce, node: said.success ? said.output.command[0] : '' };
}
