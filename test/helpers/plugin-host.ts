/**
 * A process that loads a plugin file as OpenCode and Kilo do, and calls its hooks as they come: lines `{hook, input, output}` on standard
 * input, for each one `{thrown, output}` on standard output. `event` hooks take `{event}`.
 */
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

type Hook = (input: unknown, output: unknown) => Promise<void>;
type Plugin = (context: unknown) => Promise<Readonly<Record<string, Hook>>>;

const [file = '', directory = ''] = process.argv.slice(2);
const exported = (await import(pathToFileURL(file).href)) as Readonly<Record<string, Plugin>>;
const replies: unknown[] = [];
const client = {
  postSessionIdPermissionsPermissionId: (reply: unknown): Promise<void> => {
    replies.push(reply);
    return Promise.resolve();
  },
};
const plugins = await Promise.all(Object.values(exported).map((plugin) => plugin({ client, directory })));

for await (const line of createInterface({ input: process.stdin })) {
  const { hook, input, output } = JSON.parse(line) as { hook: string; input: unknown; output: unknown };
  let thrown: string | null = null;
  try {
    for (const plugin of plugins) await plugin[hook]?.(input, output);
  } catch (error) {
    thrown = error instanceof Error ? error.message : String(error);
  }
  process.stdout.write(`${JSON.stringify({ thrown, output, replies })}\n`);
}
