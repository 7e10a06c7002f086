#!/usr/bin/env node
/**
 * The program `git-durable` (also `durable`, and `git durable` through git).
 *
 * It reads what the library may not read by itself (arguments, environment, clock, fault plan), calls one verb, and is
 * the one place that ends the process. Errors are one sentence on standard error that begins with `git-durable:`.
 */
import type { Writable } from 'node:stream';
import { plannedFaults } from '../lib/git/fault.js';
import { processFaultActions } from '../lib/git/fault-actions.js';
import { systemHost } from '../lib/host.js';
import { packageVersion } from '../lib/package.js';
import { EXIT, exitCodeOf, sentenceOf, traceOf } from './exit.js';
import { callersFolder } from './folder.js';
import { Output } from './output.js';
import { givenWords } from './words.js';

const WITHOUT_TERMINAL = 80;

async function main(words: readonly string[]): Promise<number> {
  const options = words.includes('--') ? words.slice(0, words.indexOf('--')) : words;
  const output = new Output(process.stdout, process.stderr, {
    json: options.includes('--json'),
    env: process.env,
  });
  try {
    const code = await dispatch(words, output);
    await said();
    if (output.failure === null) return code;
    output.note(`standard output cannot be written: ${output.failure.message}`);
    return EXIT.failed;
  } catch (error) {
    output.note(sentenceOf(error));
    const trace = traceOf(error);
    if (trace !== null) process.stderr.write(`${trace}\n`);
    return exitCodeOf(error);
  }
}

async function dispatch(words: readonly string[], output: Output): Promise<number> {
  const version = packageVersion();
  if (words[0] === '--version') {
    output.line(version);
    return EXIT.done;
  }
  const { VERBS } = await import('./verbs.js');
  const { parse } = await import('./parse.js');
  const parsed = parse(words, VERBS);
  if (parsed.kind === 'help') {
    const { helpOf } = await import('./help.js');
    output.line(
      await helpOf(parsed.verb, VERBS, process.stdout.isTTY ? process.stdout.columns : WITHOUT_TERMINAL),
    );
    return EXIT.done;
  }
  if (parsed.kind === 'version') {
    output.line(version);
    return EXIT.done;
  }
  const { run } = await parsed.verb.load();
  return run({
    host: systemHost(plannedFaults(process.env['DURABLE_FAULTS'], processFaultActions(process.pid))),
    dir: callersFolder(parsed.arguments.text('C')),
    output,
    arguments: parsed.arguments,
    command: parsed.command,
    version,
  });
}

/** A write that failed is reported by an event of the next turn of the loop. */
function said(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** A pipe takes what fits; what its reader has not made room for yet, the end of the process would cut off. */
function drained(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    // Called in the order of the writes, and where the reader has gone as well.
    stream.write('', () => {
      resolve();
    });
  });
}

// What an agent's shared hooks call. It reads its own arguments and ends by itself, without any verb's modules.
if (process.argv[2] === 'hook') await import('../hooks/hook-entry.js');
else {
  const code = await main(givenWords(process.argv, process.execArgv));
  await Promise.all([process.stdout, process.stderr].map(drained));
  process.exit(code);
}
