/** What a drill with a real agent needs of this machine; each sentence says what to install. */
import { spawnSync } from 'node:child_process';
import type { AgentName } from '../../../lib/agents/step.js';
import { findProgram } from '../../run/program.js';
import { INSIDE } from './scripted-model.js';

const AGENT: { readonly [A in AgentName]: { readonly program: string; readonly install: string } } = {
  'claude-code': { program: 'claude', install: 'npm install -g @anthropic-ai/claude-code' },
  codex: { program: 'codex', install: 'npm install -g @openai/codex' },
  opencode: { program: 'opencode', install: 'npm install -g opencode-ai' },
  kilo: { program: 'kilo', install: 'npm install -g @kilocode/cli' },
};

const TOOLS: Readonly<Record<string, string>> = {
  unshare: 'util-linux',
  nsenter: 'util-linux',
  ip: 'iproute2',
};

export type Needs =
  { readonly program: string; readonly missing: null } | { readonly program: null; readonly missing: string };

const missing = (text: string): Needs => ({ program: null, missing: text });

/** `program`: the agent's, absolute. */
export function needsOf(name: AgentName, { dir, path }: { dir: string; path: string | undefined }): Needs {
  if (process.platform !== 'linux')
    return missing(
      "a drill with a real agent needs a Linux network namespace; drill the scripted agent: type 'git durable drill'",
    );
  const { program, install } = AGENT[name];
  const found = findProgram(program, dir, path);
  if (!found.found)
    return missing(`${found.why}; to drill ${name} install it: ${install} (or put its folder on PATH)`);
  for (const [tool, packaged] of Object.entries(TOOLS))
    if (!findProgram(tool, dir, path).found)
      return missing(
        `the agent is kept off the network by '${tool}', which is not on PATH; install the package ${packaged}`,
      );
  const [first, ...rest] = [...INSIDE, 'true'];
  const tried = spawnSync(first, rest, { encoding: 'utf8' });
  if (tried.status !== 0)
    return missing(
      `the agent cannot be kept off the network: ${tried.stderr.trim()}; allow network namespaces here (as root, or unprivileged user namespaces), or drill the scripted agent: type 'git durable drill'`,
    );
  return { program: found.path, missing: null };
}
