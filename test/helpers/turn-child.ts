/**
 * A process that runs a turn through the public library, for tests that kill it.
 *
 *     node dist/test/helpers/turn-child.js DIR SCRIPT
 *
 * SCRIPT is a JSON list of steps: `{"call": name}` runs a recorded call that appends its name to the file `effects`
 * outside the ledger, `{"die": true}` kills this process, `{"dieIn": name}` kills it inside a call, `{"fail": name}` is a call
 * that refuses with an error of ours, and the others are a turn's methods by their names. Prints one JSON line at the end.
 */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { plannedFaults } from '../../lib/git/fault.js';
import { processFaultActions } from '../../lib/git/fault-actions.js';
import { systemHost } from '../../lib/host.js';
import { DurableError, isDurableError, openRepository, type Turn } from '../../lib/index.js';

interface Step {
  readonly call?: string;
  readonly die?: boolean;
  readonly dieIn?: string;
  readonly fail?: string;
  /** Two files, `<name>.a` and `<name>.b`, with this text, as one transaction. */
  readonly transaction?: readonly [name: string, text: string];
  readonly checkpoint?: string;
  /** To the checkpoint of the newest `checkpoint` step. */
  readonly restore?: boolean;
  readonly gate?: string;
  readonly deny?: string;
  readonly steer?: string;
  readonly usage?: number;
  /** A call whose effect is a transaction of its own. */
  readonly nested?: string;
}

const [dir, script, options] = process.argv.slice(2);
if (dir === undefined || script === undefined) throw new Error('usage: turn-child DIR SCRIPT [OPTIONS]');
const steps = JSON.parse(script) as Step[];
const { onDoubt } = JSON.parse(options ?? '{}') as { onDoubt?: 'retry' | 'accept' };

const faults = plannedFaults(process.env['DURABLE_FAULTS'], processFaultActions(process.pid));
const repository = await openRepository(dir, systemHost(faults));
let newest = '';

async function done(turn: Turn, step: Step): Promise<unknown> {
  if (step.die === true) process.kill(process.pid, 'SIGKILL');
  if (step.transaction !== undefined) {
    const [name, text] = step.transaction;
    await turn.transaction([write(`${name}.a`, text), write(`${name}.b`, text)]);
    return { wrote: name };
  }
  if (step.nested !== undefined) {
    const { nested } = step;
    const call = { tool: 'nested', args: nested, paths: [], mutates: true };
    return turn.invoke(call, async () => {
      await turn.transaction([write(nested, nested)]);
      await turn.steer(nested);
      return nested;
    });
  }
  if (step.checkpoint !== undefined) {
    newest = (await turn.checkpoint(step.checkpoint)).checkpoint;
    return newest;
  }
  if (step.restore === true) return (await turn.restore({ checkpoint: newest })).restored;
  if (step.steer !== undefined) return turn.steer(step.steer);
  if (step.usage !== undefined) return turn.usage(usageOf(step.usage));
  if (step.deny !== undefined) return turn.deny({ tool: 'shell', args: step.deny }, `not ${step.deny}`);
  if (step.gate !== undefined) return gated(turn, step.gate);
  return called(turn, step);
}

const write = (path: string, text: string) => ({ kind: 'write' as const, path, bytes: Buffer.from(text) });

const usageOf = (inputTokens: number) => ({
  invocation: null,
  model: 'a-model',
  inputTokens,
  outputTokens: 1,
  cacheTokens: null,
  costUsd: null,
  wallMs: null,
});

function effect(name: string): void {
  appendFileSync(join(dir ?? '', '..', 'effects'), `${name}\n`);
}

async function gated(turn: Turn, name: string): Promise<unknown> {
  const answer = await turn.gate({ tool: 'shell', args: name, mutates: false });
  if (answer.state !== 'approved') return answer.state === 'rejected' ? answer.feedback : answer.state;
  if (answer.call.recorded !== undefined) return answer.call.recorded.result?.toString('utf8');
  effect(name);
  await answer.call.end({ state: 'finished', result: Buffer.from(name) });
  return name;
}

async function called(turn: Turn, step: Step): Promise<unknown> {
  const name = step.call ?? step.dieIn ?? step.fail ?? '';
  try {
    return await turn.invoke({ tool: 'effect', args: { name }, mutates: false }, () => {
      effect(name);
      if (step.dieIn !== undefined) process.kill(process.pid, 'SIGKILL');
      if (step.fail !== undefined) throw new DurableError('path-outside', { path: name });
      return { did: name };
    });
  } catch (error) {
    if (step.fail === undefined || !isDurableError(error)) throw error;
    return { refused: error.code, ...error.fields };
  }
}

try {
  const result = await repository.turn(
    {
      objective: 'durable execution',
      key: 'the-turn',
      keeper: false,
      ...(onDoubt === undefined
        ? {}
        : {
            onDoubt: () =>
              onDoubt === 'accept' ? { action: 'accept', result: 'accepted' } : { action: 'retry' },
          }),
    },
    async (turn) => {
      const results: unknown[] = [];
      for (const step of steps) results.push((await done(turn, step)) ?? null);
      return results;
    },
  );
  process.stdout.write(`${JSON.stringify({ result })}\n`);
} catch (error) {
  const code = error instanceof Error && 'code' in error ? error.code : String(error);
  const fields = error instanceof Error && 'fields' in error ? error.fields : null;
  process.stdout.write(`${JSON.stringify({ code, fields })}\n`);
} finally {
  await repository.close();
}
