import { readFileSync } from 'node:fs';
import test from 'ava';
import { marked, README } from '../helpers/event-table.js';
import { finish, openTurn, proposal, steering } from '../helpers/turn.js';

test('the six lines of shell in the README recompute the chain with git and sha256sum alone', async (t) => {
  const { scratch, ledger, append } = await openTurn(t);
  await append(proposal('inv-1', 0), steering(`quote ' " \\ $HOME \`x\` %s\n{ "looks": "like a line" }`));
  await append(steering('ümlaut 😀 \ud83d half'), finish());
  const lines = marked(readFileSync(README, 'utf8'), 'chain')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('```'));
  t.is(lines.length, 6);
  const ran = scratch.run('sh', ['-eu', '-c', lines.join('\n')], { env: { task: ledger.task } });
  const { ok, chain } = await ledger.verify();
  t.true(ok);
  t.is(ran.stdout, `sha256:${chain ?? ''}\n`);
  const trailer = scratch.git('log', '-1', '--format=%(trailers:key=Durable-Chain,valueonly)', ledger.ref);
  t.is(trailer.trim(), `sha256:${chain ?? ''}`);
});
