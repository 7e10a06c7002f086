/** `init`: the workspace id, the fence's hooks, and the hooks of the agents that are named, or else found. */
import { install, type Installed } from '../../hooks/install.js';
import { agentsFound } from '../../hooks/install-agents.js';
import { AGENTS, type AgentName } from '../../lib/agents/step.js';
import { openStorage } from '../../lib/git/storage.js';
import { EXIT } from '../exit.js';
import type { Output } from '../output.js';
import type { VerbContext } from '../verb.js';

const MODES = ['strict', 'hooks', 'off'] as const;

export async function run(context: VerbContext): Promise<number> {
  const { output } = context;
  const given = context.arguments.text('fence');
  const fence = MODES.find((mode) => mode === given) ?? null;
  const dryRun = context.arguments.flag('dry-run');
  const agents = agentsOf(context);
  const shared = context.arguments.flag('shared');
  const storage = await openStorage(context.dir, context.host);
  try {
    const done = await install(storage, { dryRun, fence, agents: agents ?? [], shared });
    const { workspace, created, files, edited } = done;
    const mode = fence ?? storage.settings.fence;
    output.result({ workspace, created, dryRun, fence: mode, files, edited, agents: done.agents }, () => {
      describe(output, done, dryRun);
      if (agents?.length === 0) output.line(NONE_FOUND);
      const wasMode = storage.settings.fence;
      const isSet = fence !== null && fence !== wasMode;
      if (isSet) output.line(`durable.fence ${dryRun ? 'would be' : 'is'} '${fence}' (it was '${wasMode}')`);
      else if (files.length + edited.length === 0)
        output.line('nothing to do: this work tree has its id and its hooks');
      output.line(dryRun ? 'next: git durable init' : nextOf(done));
    });
    return EXIT.done;
  } finally {
    await storage.close();
  }
}

const NONE_FOUND = `no agent is on PATH (${AGENTS.join(', ')}): their hooks come with 'git durable init --agent NAME'`;

/** Null for nobody's, as told. */
function agentsOf(context: VerbContext): AgentName[] | null {
  const named = context.arguments.all('agent');
  if (named.length === 0) return agentsFound(context.host.env);
  return named.includes('none') ? null : AGENTS.filter((agent) => named.includes(agent));
}

function describe(output: Output, { files, edited, agents }: Installed, dryRun: boolean): void {
  for (const file of files) output.table([[dryRun ? 'would create' : 'created', file]]);
  for (const file of edited) output.table([[dryRun ? 'would edit' : 'edited', file]]);
  for (const { agent, scope, file, change } of agents)
    if (change === 'none') output.line(`${agent} has its ${scope} hooks: ${file}`);
}

function nextOf({ agents }: Installed): string {
  const fresh = agents.filter(({ change }) => change !== 'none').map(({ agent }) => agent);
  if (fresh.length === 0) return 'next: git durable run -- CMD';
  const trust = fresh.includes('codex') ? ', and trust its hooks when it asks' : '';
  return `next: start ${fresh.join(' or ')} here${trust}; 'git durable doctor' then says whether its hooks fire`;
}
