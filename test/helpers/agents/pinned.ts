/**
 * The real agents that are tested, each as the one npm package that holds its program, in a version that was seen to work.
 *
 * They are kept outside of the repository, in `$XDG_CACHE_HOME/git-durable-agents` of whoever runs the tests, one folder a version.
 * A folder that is there is whole: it is filled under another name and renamed.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { AgentName } from '../../../lib/agents/step.js';

interface Pinned {
  readonly spec: string;
  /** Of the program, below `node_modules`. */
  readonly program: string;
}

const HERE = `${process.platform}-${process.arch}`;
const TRIPLE = { x64: 'x86_64', arm64: 'aarch64' }[process.arch as string] ?? process.arch;

/** Kilo 7.8.1 names native packages that the registry does not have: 7.7.9 is the newest one that installs. */
const PINNED: { readonly [A in AgentName]: Pinned } = {
  'claude-code': {
    spec: `@anthropic-ai/claude-code-${HERE}@2.1.332`,
    program: `@anthropic-ai/claude-code-${HERE}/claude`,
  },
  codex: {
    spec: `codex-native@npm:@openai/codex@0.171.0-${HERE}`,
    program: `codex-native/vendor/${TRIPLE}-unknown-linux-musl/bin/codex`,
  },
  opencode: { spec: `opencode-${HERE}@1.18.33`, program: `opencode-${HERE}/bin/opencode` },
  kilo: { spec: `@kilocode/cli-${HERE}@7.7.9`, program: `@kilocode/cli-${HERE}/bin/kilo` },
};

const CACHE = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'git-durable-agents');

export const versionOf = (agent: AgentName): string => /@(\d+\.\d+\.\d+)/.exec(PINNED[agent].spec)?.[1] ?? '';

/** The program's absolute path. Throws with what npm said where it cannot be installed. */
export function agentProgram(agent: AgentName): string {
  const { spec, program } = PINNED[agent];
  const folder = join(CACHE, spec.replaceAll(/[/:]/g, '+'));
  const path = join(folder, 'node_modules', program);
  if (!existsSync(path)) install(agent, folder);
  if (!existsSync(path)) throw new Error(`${agent}: ${spec} is installed, and has no ${program}`);
  return path;
}

function install(agent: AgentName, folder: string): void {
  const { spec } = PINNED[agent];
  mkdirSync(CACHE, { recursive: true });
  const filling = mkdtempSync(join(CACHE, 'filling-'));
  try {
    writeFileSync(join(filling, 'package.json'), '{"private":true}\n');
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier'];
    const ran = spawnSync('npm', ['install', ...flags, '--', spec], { cwd: filling, encoding: 'utf8' });
    if (ran.status !== 0) throw new Error(`${agent}: npm install ${spec} failed: ${ran.stdout}${ran.stderr}`);
    // Another test may have put it there meanwhile.
    if (!existsSync(folder)) renameSync(filling, folder);
  } finally {
    rmSync(filling, { recursive: true, force: true });
  }
}
