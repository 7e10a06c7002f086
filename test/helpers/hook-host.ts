/**
 * An agent that somebody else starts: each line on standard input is a payload, handed to the hook entry as the agent named by the first
 * argument would; on standard output a line with what the hook printed. Lines `{"write": [PATH, CONTENT]}` write a file instead. Ends with 7.
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const ENTRY = fileURLToPath(new URL('../../program/hooks/hook-entry.js', import.meta.url));
const [agent = '', bare = ''] = process.argv.slice(2);

for await (const line of createInterface({ input: process.stdin })) {
  const said = JSON.parse(line) as { write?: [string, string] };
  if (said.write !== undefined) writeFileSync(...said.write);
  const env: NodeJS.ProcessEnv = { ...process.env, DURABLE_AGENT_PID: String(process.pid) };
  if (bare === 'bare') delete env['DURABLE_MARKER'];
  const ran =
    said.write === undefined
      ? spawnSync(process.execPath, [ENTRY, agent], { input: line, env, encoding: 'utf8' })
      : { stdout: '', stderr: '' };
  process.stdout.write(`${JSON.stringify({ stdout: ran.stdout, stderr: ran.stderr })}\n`);
}
process.exitCode = 7;
