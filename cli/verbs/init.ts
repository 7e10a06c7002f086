/** `init`: the workspace id and the fence's hooks. What later versions will install is refused by name, so that nobody counts on it. */
import { install } from '../../hooks/install.js';
import { openStorage } from '../../lib/git/storage.js';
import { usage, type Arguments } from '../arguments.js';
import { EXIT } from '../exit.js';
import type { VerbContext } from '../verb.js';

const MODES = ['strict', 'hooks', 'off'] as const;

export async function run(context: VerbContext): Promise<number> {
  const { output } = context;
  refuseLater(context.arguments, context.version);
  const given = context.arguments.text('fence');
  const fence = MODES.find((mode) => mode === given) ?? null;
  const dryRun = context.arguments.flag('dry-run');
  const storage = await openStorage(context.dir, context.host);
  try {
    const { workspace, created, files } = await install(storage, { dryRun, fence });
    output.result({ workspace, created, dryRun, fence: fence ?? storage.settings.fence, files }, () => {
      for (const file of files) output.table([[dryRun ? 'would create' : 'created', file]]);
      const wasMode = storage.settings.fence;
      const isSet = fence !== null && fence !== wasMode;
      if (isSet) output.line(`durable.fence ${dryRun ? 'would be' : 'is'} '${fence}' (it was '${wasMode}')`);
      else if (files.length === 0) output.line('nothing to do: this work tree has its id and its hooks');
      output.line(dryRun ? 'next: git durable init' : 'next: git durable run -- CMD');
    });
    return EXIT.done;
  } finally {
    await storage.close();
  }
}

function refuseLater(words: Arguments, version: string): void {
  const agent = words.text('agent');
  if (agent !== null)
    throw usage(
      `git-durable ${version} installs no hooks of '${agent}' yet; start it with: git durable run -- ${agent}`,
    );
  if (words.flag('shared'))
    throw usage(`git-durable ${version} installs nothing that is shared; leave --shared out`);
}
