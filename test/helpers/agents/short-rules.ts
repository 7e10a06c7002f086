/** Rules that every agent is held to, at fixed moments; each is one test. */
import test from 'ava';
import type { AgentName } from '../../../lib/agents/step.js';
import { document, type Line } from '../events.js';
import { stateOf } from '../processes.js';
import { durable, startDurable } from '../program.js';
import { LONG, Scene } from './scene.js';
import { told } from '../../../cli/drill/agents/scripted-model.js';

/** How each agent calls its tools in what its hooks say. */
export const TOOLS: { readonly [A in AgentName]: { readonly write: string; readonly shell: string } } = {
  'claude-code': { write: 'Write', shell: 'Bash' },
  codex: { write: 'apply_patch', shell: 'Bash' },
  opencode: { write: 'write', shell: 'bash' },
  kilo: { write: 'write', shell: 'bash' },
};

/** A killed Codex takes the shell of its call along; the others were seen to leave it running. */
const TAKES_SHELL_ALONG: readonly AgentName[] = ['codex'];

export const cleanTurn = test.macro({
  title: (_, name: AgentName) => `${name}: a clean turn is recorded call by call, with its exact arguments`,
  exec: async (t, name: AgentName) => {
    const scene = await Scene.open(t);
    const agent = scene.agent(name);
    const command = `printf 'x\\n' > "b c"; printf %s "é"`;
    scene.model.follow({ '#first': [{ write: 'a.txt', content: 'one\ntwo\n' }, { shell: command }] });
    const run = await agent.run({ prompt: 'do #first' });
    t.is(await run.ended, 0, run.said);
    t.is(scene.file('a.txt'), 'one\ntwo\n');
    const proposed = scene.events('invocation.proposed');
    t.deepEqual(
      proposed.map(({ tool }) => tool),
      [TOOLS[name].write, TOOLS[name].shell],
    );
    const [written, ran] = proposed.map((event) => scene.argumentsOf(event) as Line);
    t.true(JSON.stringify(written).includes(JSON.stringify('one').slice(1, -1)), JSON.stringify(written));
    t.is(ran?.['command'], command);
    const ends = scene.events('invocation.finished');
    t.deepEqual(
      ends.map(({ invocation, state }) => [invocation, state]),
      proposed.map(({ invocation }) => [invocation, 'finished']),
    );
    t.deepEqual(
      scene.events('turn.started').map(({ agent: by }) => by),
      [name],
    );
    t.deepEqual(
      scene.events('turn.finished').map(({ outcome }) => outcome),
      ['completed'],
    );
    t.is(document(scene.place, ['status'])['lease'], null);
    t.is(durable(scene.place, ['verify']).code, 0);
    t.is(scene.place.git('status', '--porcelain'), '?? a.txt\n?? "b c"');
  },
});

export const refused = test.macro({
  title: (_, name: AgentName) =>
    `${name}: while another turn holds the work tree the model may read, and is told who refuses its change`,
  exec: async (t, name: AgentName) => {
    const scene = await Scene.open(t);
    const agent = scene.agent(name);
    const command = ['--objective', 'hold it a while', '--', 'sh', '-c', 'echo held; read -r _'];
    const holder = startDurable(t, scene.place, ['run', ...command]);
    t.is(await holder.line(), 'held', holder.said);
    const steps = [{ read: 'README' }, { write: 'a.txt', content: 'a\n' }, { shell: 'touch b.txt' }];
    scene.model.follow({ '#first': steps });
    const run = await agent.run({ prompt: 'do #first' });
    const requests = scene.model.requests('#first');
    t.regex(told(requests[0], 'system', 'person'), /git-durable: this turn is read-only/, run.said);
    const results = requests.at(-1)?.heard.filter(({ from }) => from === 'tool') ?? [];
    t.is(results.length, 3);
    t.false(results[0]?.text.includes('git-durable'));
    for (const { text } of results.slice(1)) {
      t.regex(text, /nothing ran/);
      for (const word of ['hold it a while', String(holder.pid)]) t.true(text.includes(word), text);
    }
    t.deepEqual([scene.file('a.txt'), scene.file('b.txt')], [null, null]);
    t.deepEqual(
      scene.events('invocation.proposed').map(({ tool }) => tool),
      ['run'],
    );
    holder.child.stdin.end('\n');
    t.is((await holder.ended).code, 0);
  },
});

export const killedInShell = test.macro({
  title: (_, name: AgentName) =>
    `${name}: killed in a shell command, the call is in doubt, what it left runs on and is listed, and the next request says so`,
  exec: async (t, name: AgentName) => {
    const scene = await Scene.open(t);
    const agent = scene.agent(name);
    scene.model.follow({ '#first': [{ write: 'a.txt', content: 'a\n' }, { shell: LONG }] });
    const run = await agent.started({ prompt: 'do #first' });
    const shell = Number(await scene.line('at'));
    await run.kill();
    const found = scene.interrupted();
    t.deepEqual(
      found.invocations.map(({ tool, state }) => [tool, state]),
      [
        [TOOLS[name].write, 'finished'],
        [TOOLS[name].shell, 'in-doubt'],
      ],
    );
    const orphans = found.orphans.map(({ pid }) => pid);
    const isLeft = !['', 'Z'].includes(stateOf(shell));
    t.is(isLeft, !TAKES_SHELL_ALONG.includes(name));
    t.is(orphans.includes(shell), isLeft, `${String(shell)} in ${JSON.stringify(found.orphans)}`);
    t.true(found.gitStatusMatches);
    t.deepEqual(found.files.map(({ path }) => path).sort(), ['a.txt', 'at']);
    scene.model.follow({ '#second': [{ shell: 'true' }] });
    const again = await agent.run({ prompt: 'go on with #second', isResumed: true });
    const said = told(scene.model.requests('#second')[0], 'system', 'person');
    t.regex(said, /git-durable: earlier work in this repository was interrupted/, again.said);
    t.regex(said, new RegExp(`call ${TOOLS[name].shell} \\(in-doubt\\): .*exec sleep 600`));
    t.regex(said, /file at: /);
    t.regex(said, /do #first/);
    if (isLeft) t.regex(said, new RegExp(`process ${String(shell)} still runs`));
    t.is(durable(scene.place, ['verify']).code, 0);
    t.is(scene.events('turn.finished').length, 1);
  },
});
