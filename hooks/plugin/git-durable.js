/**
 * Plugin of git-durable for OpenCode and Kilo: hands on what the agent's hooks are called with to a process of git-durable, and does
 * with its answer what it says. Written whole by `git durable init`, taken away by `git durable uninstall`: edits are lost.
 *
 * Nothing here is thrown but the refusal of a tool, in 'tool.execute.before': what is thrown elsewhere the agent takes for its own
 * failure. Calls are handed on one after the other, in the order in which they came.
 */
import { spawn } from 'node:child_process';
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';

const INSTALLATION = { command: [], shared: true, hooks: [], timeoutMs: {} };
const QUESTION = 'event:permission.asked';

export const GitDurable = async ({ client, directory, serverUrl }) => {
  /** What the model has to be told, by session, until the next prompt. */
  const told = new Map();
  /** What the model has said last, by session: its final text once it is idle. */
  const texts = new Map();
  let last = Promise.resolve();

  /** The answer, or `{ failed }`; one call at a time. For a question, which may wait for a person, no later call waits. */
  const hand = (hook, input, output) => {
    const isQuestion = hook === QUESTION;
    const limitMs = isQuestion ? INSTALLATION.timeoutMs.question : INSTALLATION.timeoutMs.usual;
    const call = last.then(() => ask({ hook, directory, input, output }, limitMs));
    if (!isQuestion) last = call;
    return call;
  };

  const keep = (session, { context }) => {
    if (typeof context === 'string') told.set(session, [...(told.get(session) ?? []), context]);
  };

  const finalText = (session) => {
    const text = texts.get(session);
    texts.delete(session);
    return text === undefined ? null : { text };
  };

  const onEvent = async (event) => {
    const hook = `event:${event.type}`;
    if (!INSTALLATION.hooks.includes(hook)) return;
    const { sessionID, id } = event.properties;
    const answer = await hand(hook, event, hook === 'event:session.idle' ? finalText(sessionID) : null);
    keep(sessionID, answer);
    if (typeof answer.reply === 'string') await reply({ client, serverUrl }, { sessionID, id }, answer);
    if (event.type === 'session.deleted') told.delete(sessionID);
  };

  /** Sessions whose first prompt has come: what was said at their start is for that one's turn. */
  const prompted = new Set();

  return {
    event: async ({ event }) => {
      await quietly(() => onEvent(event));
    },
    'chat.message': async (input, output) => {
      await quietly(async () => {
        const answer = await hand('chat.message', input, output);
        if (prompted.has(input.sessionID)) told.delete(input.sessionID);
        prompted.add(input.sessionID);
        keep(input.sessionID, answer);
      });
    },
    'tool.execute.before': async (input, output) => {
      const answer = await hand('tool.execute.before', input, output);
      if (typeof answer.deny === 'string') throw new Error(answer.deny);
      if (typeof answer.failed === 'string')
        throw new Error(`git-durable could not record this call, and nothing ran: ${answer.failed}`);
    },
    'tool.execute.after': async (input, output) => {
      await quietly(() => hand('tool.execute.after', input, output));
    },
    // For each command of the shell tool, between the two of its call.
    'shell.env': async (_input, output) => {
      await quietly(() => {
        Object.assign(output.env, turnEnvironment(directory, output.env));
      });
    },
    'experimental.text.complete': async (input, output) => {
      await quietly(() => {
        if (typeof output.text === 'string') texts.set(input.sessionID, output.text);
      });
    },
    'experimental.chat.system.transform': async (input, output) => {
      await quietly(() => {
        output.system.push(...(told.get(input.sessionID) ?? []));
      });
    },
    // Nobody waits for what an event's handler does: 'run' ends as soon as the session is idle, but for this.
    dispose: async () => {
      await last;
    },
  };
};

async function quietly(act) {
  try {
    await act();
  } catch {
    // The agent goes on: what follows a call is never refused.
  }
}

/** What git-durable has put there for the shells of this process (lib/fence/own-git.ts), and the shim first on PATH. Throws where there is nothing. */
function turnEnvironment(directory, { PATH: given = process.env.PATH ?? '' }) {
  const [, start] = /\) \S(?: \S+){18} (\d+) /.exec(readFileSync('/proc/self/stat', 'utf8')) ?? [];
  const file = join(gitDirAbove(realpathSync(directory)), 'durable', 'own-git', `${process.pid}.${start}`);
  const lines = readFileSync(file, 'utf8').matchAll(/^export (DURABLE_[A-Z_]+)='((?:[^']|'\\'')*)'$/gm);
  const variables = Object.fromEntries(
    [...lines].map(([, name, value]) => [name, value.replaceAll("'\\''", "'")]),
  );
  const shim = variables.DURABLE_SHIM;
  if (shim === undefined) return variables;
  const others = given.split(delimiter).filter((folder) => folder !== shim);
  return { ...variables, PATH: [shim, ...others].join(delimiter) };
}

/** As git finds it in all but rare places. */
function gitDirAbove(folder) {
  const path = join(folder, '.git');
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat?.isDirectory()) return path;
  if (stat !== undefined) return resolve(folder, /^gitdir: (.*?)\n?$/s.exec(readFileSync(path, 'utf8'))[1]);
  if (folder === dirname(folder)) throw new Error('no repository');
  return gitDirAbove(dirname(folder));
}

/** Never throws. */
function ask(envelope, limitMs) {
  return new Promise((resolve) => {
    const failed = (why) => resolve({ failed: why });
    try {
      const [program, ...args] = INSTALLATION.command;
      const env = { ...process.env, DURABLE_AGENT_PID: String(process.pid), DURABLE_OWN_GIT: 'file' };
      const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], env });
      const timer = setTimeout(() => {
        child.kill('SIGKILL');
        failed('it did not answer in time');
      }, limitMs);
      const said = { stdout: '', stderr: '' };
      for (const name of ['stdout', 'stderr']) {
        child[name].setEncoding('utf8');
        child[name].on('data', (chunk) => (said[name] += chunk));
      }
      child.stdin.on('error', () => undefined);
      child.on('error', (error) => {
        clearTimeout(timer);
        // A colleague who has not installed it goes on.
        if (INSTALLATION.shared && error.code === 'ENOENT') resolve({});
        else failed(`'${program}' cannot be run (${error.message}); type in a terminal: git durable init`);
      });
      child.on('close', (code) => {
        clearTimeout(timer);
        if (code === 0) resolve(read(said.stdout));
        else failed(said.stderr.trim() || `'${program}' ended with ${String(code)}`);
      });
      child.stdin.end(JSON.stringify(envelope));
    } catch (error) {
      failed(String(error));
    }
  });
}

function read(text) {
  if (text.trim() === '') return {};
  try {
    return JSON.parse(text);
  } catch {
    return { failed: 'its answer is not understood' };
  }
}

/** Answers the agent's own question, in the ways in which its clients have been seen to take it; else the question stands. */
async function reply({ client, serverUrl }, { sessionID, id }, { reply: response, message }) {
  if (typeof client?.postSessionIdPermissionsPermissionId === 'function') {
    await client.postSessionIdPermissionsPermissionId({
      path: { id: sessionID, permissionID: id },
      body: { response },
    });
    return;
  }
  await fetch(new URL(`/permission/${encodeURIComponent(id)}/reply`, serverUrl), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ reply: response, message }),
  });
}
