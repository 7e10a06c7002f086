/** `doctor`: what is broken and what would mend it; with `--fix` it is mended where that needs no decision. */
import { diagnose, mend, type Problem } from '../../lib/doctor.js';
import type { Storage } from '../../lib/git/storage.js';
import { EXIT } from '../exit.js';
import { LOOKING, withStorage } from '../open.js';
import type { Output } from '../output.js';
import type { VerbContext } from '../verb.js';

export async function run(context: VerbContext): Promise<number> {
  const { output } = context;
  const isMending = context.arguments.flag('fix');
  return withStorage(
    context,
    async (storage) => {
      if (isMending) for (const line of await mend(storage)) output.note(line);
      const found = await output.progress('looking', () => diagnose(storage, { deep: true }));
      // What it needs to read an agent's settings is no part of what a hook loads.
      const { agentProblems } = await import('../../hooks/installed-agents.js');
      const problems = [...found, ...agentProblems(storage)];
      const advised = output.json ? null : await advice(storage);
      output.result({ problems: problems.map(({ code, detail, fix }) => ({ code, detail, fix })) }, () => {
        describe(output, problems);
        if (advised !== null) output.line(advised);
      });
      return problems.length === 0 ? EXIT.done : EXIT.attention;
    },
    isMending ? undefined : LOOKING,
  );
}

/** No problem, but worth knowing: what git itself writes is not flushed as ours is (git-config, core.fsync). */
async function advice(storage: Storage): Promise<string | null> {
  const { code } = await storage.git.run(['config', '--get', 'core.fsync']);
  if (code === 0) return null;
  return "against power cuts while your own git packs refs: git config --global core.fsync 'committed,reference'";
}

function describe(output: Output, problems: readonly Problem[]): void {
  if (problems.length === 0) output.line('nothing is broken');
  for (const { code, detail, fix } of problems) {
    output.table([[{ text: code, style: 'red' }, detail], ...(fix === '' ? [] : [['', `next: ${fix}`]])]);
  }
}
