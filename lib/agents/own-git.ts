/**
 * Telling an agent's shells where its turns' environment lies (lib/fence/own-git.ts), as each agent lets us:
 *
 *     Claude Code        a line in the file that it names to a SessionStart hook (CLAUDE_ENV_FILE), and runs before each command
 *     OpenCode, Kilo     the plugin reads the file in `shell.env`, and says so to each process of ours (DURABLE_OWN_GIT)
 *     Codex              not at all: its shells start from a login profile, and its settings would have to name one PATH for ever
 *
 * Source: seen in real runs of Claude Code 2.1.332, OpenCode 1.18.33 and Kilo 7.7.9 (test/real-agents).
 */
import { readFileSync } from 'node:fs';
import { isAbsence } from '../git/disk.js';
import type { Storage } from '../git/storage.js';
import { offerOwnGit, takingLine } from '../fence/own-git.js';
import type { AgentProcess } from './own-turn.js';
import type { Step } from './step.js';

/** Where the agent's hook tells of it. Idempotent. Errors: the disk's. */
export function offerOwnGitTo(storage: Storage, { agent, process }: AgentProcess, step: Step): void {
  const { env } = storage.host;
  if (agent !== 'claude-code') {
    if (env['DURABLE_OWN_GIT'] === 'file') offerOwnGit(storage, process);
    return;
  }
  const named = env['CLAUDE_ENV_FILE'];
  if (step.kind !== 'session-start' || named === undefined || named === '') return;
  const line = takingLine(offerOwnGit(storage, process));
  const before = textOf(named);
  // The agent's own file, and other hooks': ours is a line of its own behind theirs.
  if (before.split('\n').includes(line)) return;
  const start = before === '' || before.endsWith('\n') ? '' : '\n';
  storage.disk.appendPassing('agent.file', named, Buffer.from(`${start}${line}\n`, 'utf8'));
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (isAbsence(error)) return '';
    throw error;
  }
}
