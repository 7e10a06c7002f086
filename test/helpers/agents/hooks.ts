/** Our hooks in an agent's own configuration, in the HOME of the test. */
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AgentName } from '../../../lib/agents/step.js';
import type { Scratch } from '../scratch.js';

const ENTRY = fileURLToPath(new URL('../../../hooks/hook-entry.js', import.meta.url));
const EVENTS = ['SessionStart', 'UserPromptSubmit', 'PreToolUse', 'PostToolUse', 'PermissionRequest', 'Stop'];
const CLAUDE_EVENTS = [...EVENTS, 'PostToolUseFailure', 'StopFailure', 'SessionEnd'];

export function installHooks(place: Scratch, agent: AgentName): void {
  const home = place.env['HOME'] ?? '';
  if (agent !== 'claude-code' && agent !== 'codex') throw new Error(`${agent} has plugins, not hooks`);
  const command = `'${process.execPath}' '${ENTRY}' ${agent}`;
  const events = agent === 'codex' ? [...EVENTS, 'Interrupt', 'SessionEnd'] : CLAUDE_EVENTS;
  const hooks = Object.fromEntries(
    events.map((event) => [event, [{ hooks: [{ type: 'command', command }] }]]),
  );
  const path = agent === 'codex' ? '.codex/hooks.json' : '.claude/settings.json';
  const at = join(agent === 'codex' ? place.dir : home, path);
  mkdirSync(dirname(at), { recursive: true });
  writeFileSync(at, JSON.stringify({ hooks }));
  appendFileSync(join(place.dir, '.git', 'info', 'exclude'), '/.codex/\n');
}
