/** Whose hook it is: the process that its environment names, else the nearest ancestor of the hook that is no shell. */
import { commandOf, entryOf, type ProcessIdentity } from '../lease/processes.js';

const SHELL = /^\S*\b(?:sh|bash|dash|zsh|ksh|fish|env)(?:\s|$)/;

export interface Hooked {
  /** The agent's pid as the environment says it; '' where it does not. */
  readonly agentPid: string;
  /** The hook's parent. */
  readonly parent: number;
}

/** `orDead`: a report may come from a hook that has outlived its agent. Throws without it where there is no such process. */
export function agentProcess({ agentPid, parent }: Hooked, { orDead = false } = {}): ProcessIdentity {
  const said = Number(agentPid);
  let entry = entryOf(said > 0 ? said : parent);
  while (said === 0 && entry !== null && SHELL.test(commandOf(entry.pid))) entry = entryOf(entry.parent);
  if (entry === null && orDead) return { pid: said, start: '' };
  if (entry === null) throw new Error('the process of the agent is not found');
  return { pid: entry.pid, start: entry.start };
}
