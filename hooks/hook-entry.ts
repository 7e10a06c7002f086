/**
 * The program that an agent's hook runs: `node hook-entry.js AGENT NONCE`, or `git-durable hook AGENT NONCE`, the payload on standard input, the agent's own answer
 * on standard output.
 *
 * Inside a turn its keeper takes the step, through a socket (ask-keeper.ts), and this process loads no more than that needs; at a turn's
 * begin and end, and without a keeper, it does the same by itself (direct.ts, then the library, loaded only then). What little is
 * loaded at its start counts twice a tool call: it is one CommonJS file (.build.mjs), reads its input without a stream, and takes the
 * time from process.uptime. Against a bare node's 36 ms of processor time that took 39; as modules, with streams, 55.
 *
 * Exit code 0 always, since an agent takes another one for an error of the hook: a refusal is said in the answer. Where the
 * payload cannot be read, or the gate fails before a tool that may change files, the tool is refused; after a tool nothing
 * is: what cannot be recorded is kept (lib/agents/report.ts), and what went wrong is one line on standard error. Outside of a repository it does nothing.
 *
 * The agent's process is, in this order: DURABLE_AGENT_PID (a plugin says it), CLAUDE_PID, the nearest ancestor that is no shell.
 */
import { readSync } from 'node:fs';
import { AGENTS } from '../lib/agents/step.js';
import { askKeeper, type Handed } from './ask-keeper.js';

const [NAME, NONCE] = process.argv.slice(process.argv[2] === 'hook' ? 3 : 2);

const PIECE = 64 * 1024;

async function main(name: string | undefined): Promise<void> {
  const agent = AGENTS.find((one) => one === name);
  if (agent === undefined) {
    note(`no agent is called '${name ?? ''}'; there are ${AGENTS.join(', ')}`);
    return;
  }
  const agentPid = process.env['DURABLE_AGENT_PID'] ?? process.env['CLAUDE_PID'] ?? '';
  const answer = await answerTo({ agent, nonce: NONCE ?? '', agentPid, payload: await input() });
  if (answer === '') process.exit(0);
  // What a refused call had begun must not go on behind the answer.
  process.stdout.write(answer, () => process.exit(0));
}

async function answerTo(handed: Handed): Promise<string> {
  const answered = await askKeeper(handed);
  if (answered !== null) {
    answered.notes.forEach(note);
    return answered.answer;
  }
  const { answerDirectly } = await import('./direct.js');
  const { agent, nonce, agentPid, payload } = handed;
  return answerDirectly({ agent, nonce, note }, payload.toString('utf8'), agentPid);
}

/** All of standard input. */
async function input(): Promise<Buffer> {
  const pieces: Buffer[] = [];
  try {
    for (;;) {
      const piece = Buffer.allocUnsafe(PIECE);
      const size = readSync(0, piece);
      if (size === 0) return Buffer.concat(pieces);
      pieces.push(piece.subarray(0, size));
    }
  } catch (error) {
    // A host may give a pipe that does not block.
    if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error;
  }
  for await (const piece of process.stdin) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

function note(line: string): void {
  process.stderr.write(`git-durable: ${line}\n`);
}

void main(NAME);
