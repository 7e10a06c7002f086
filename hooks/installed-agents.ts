/**
 * Whether agents' hooks are there, are those of this program, and fire: looks only, and never writes what an agent trusts.
 *
 *   agent-hooks-missing   `init` put them there and they are gone, or they call a program that is not there
 *   agent-hooks-changed   they are not what this program installs: edited, of another place of it, or of another version
 *   agent-hooks-unseen    none of this installation has fired yet: an agent that skips them says nothing
 *
 * That they fire is known by the nonce in their command (lib/agents/seen.ts). An agent without hooks of ours is no problem.
 */
import { seenOf } from '../lib/agents/seen.js';
import { AGENTS, type AgentName } from '../lib/agents/step.js';
import type { Problem } from '../lib/doctor.js';
import { isDurableError } from '../lib/errors.js';
import type { Storage } from '../lib/git/storage.js';
import { readAgentFile } from './agents/agent-file.js';
import { HOSTS, isOnPath, isRunnable, type Mark } from './agents/hosts.js';
import { recordedIn } from './agents/record.js';
import { isCurrent, marksOf } from './install-agents.js';

/** Never throws for what it finds. */
export function agentProblems(storage: Storage): Problem[] {
  return AGENTS.flatMap((agent) => problemsOf(storage, agent));
}

interface Placed {
  readonly path: string;
  readonly text: string;
  readonly marks: readonly Mark[];
}

function problemsOf(storage: Storage, agent: AgentName): Problem[] {
  const recorded = recordedIn(storage.layout.gitDir).filter((one) => one.agent === agent);
  const files = [...new Set([...Object.values(HOSTS[agent].files), ...recorded.map(({ path }) => path)])];
  const placed = files.map((path) => placedIn(storage, agent, path)).filter(({ marks }) => marks.length > 0);
  const [first, ...more] = placed;
  if (first === undefined)
    return recorded.map(({ path, scope }) => ({
      code: 'agent-hooks-missing',
      detail: `the hooks of ${agent} are gone from '${path}': what it does is not recorded`,
      fix: installing(agent, scope),
    }));
  const [mark, ...others] = first.marks;
  if (mark === undefined) return [];
  const fix = installing(agent, mark.scope);
  if (more.length > 0) {
    const where = placed.map(({ path }) => `'${path}'`).join(' and ');
    return [
      {
        code: 'agent-hooks-changed',
        detail: `the hooks of ${agent} stand in ${where}: each fires twice`,
        fix,
      },
    ];
  }
  if (!canRun(storage, mark)) {
    const what =
      mark.node === null ? 'git-durable, which is not on PATH' : `'${mark.node}', which is not there`;
    const detail = `the hooks of ${agent} in '${first.path}' call ${what}`;
    return [
      { code: 'agent-hooks-missing', detail, fix: mark.node === null ? 'put git-durable on PATH' : fix },
    ];
  }
  if (others.length > 0 || !isCurrent(agent, first.text, mark)) {
    const detail = `the hooks of ${agent} in '${first.path}' are not those that this program installs`;
    return [{ code: 'agent-hooks-changed', detail, fix }];
  }
  return seenOf(storage, agent)?.nonce === mark.nonce ? [] : [unseen(agent, first.path)];
}

function placedIn(storage: Storage, agent: AgentName, path: string): Placed {
  try {
    const file = readAgentFile(storage, path);
    return { path, text: file.bytes?.toString('utf8') ?? '', marks: marksOf(agent, file) };
  } catch (error) {
    // Nothing of ours is put where it refuses to look.
    if (!isDurableError(error)) throw error;
    return { path, text: '', marks: [] };
  }
}

function canRun({ host }: Storage, mark: Mark): boolean {
  return mark.node === null ? isOnPath(host.env, 'git-durable') : isRunnable(mark);
}

const installing = (agent: AgentName, scope: Mark['scope']): string =>
  `git durable init --agent ${agent}${scope === 'shared' ? ' --shared' : ''}`;

function unseen(agent: AgentName, path: string): Problem {
  const detail = `the hooks of ${agent} in '${path}' were never seen to fire`;
  return { code: 'agent-hooks-unseen', detail: `${detail}${SILENT[agent]}`, fix: START[agent] };
}

/** Why an agent may skip hooks without a word. */
const SILENT: { readonly [A in AgentName]: string } = {
  'claude-code':
    ' (its interactive form runs none before you trust the folder; "disableAllHooks" and --bare turn all off)',
  codex:
    ' (it skips them silently until you trust two things, each in its terminal: the project, and these hooks; after a change of theirs, again)',
  opencode: ' (--pure turns plugins off)',
  kilo: '',
};

const again = "then 'git durable doctor' again";

const START: { readonly [A in AgentName]: string } = {
  'claude-code': `start claude here and send it a prompt, ${again}`,
  codex: `start codex here, trust the project and the hooks ("Hooks need review") when it asks, send it a prompt, ${again}`,
  opencode: `start opencode here and send it a prompt, ${again}`,
  kilo: `start kilo here and send it a prompt, ${again}`,
};
