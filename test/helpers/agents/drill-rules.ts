/** The drill that users have, on the agents that are tested. */
import { mkdirSync, readdirSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import test from 'ava';
import * as v from 'valibot';
import type { AgentName } from '../../../lib/agents/step.js';
import { document } from '../events.js';
import { processesNaming } from '../processes.js';
import { scratch } from '../scratch.js';
import { agentProgram } from './pinned.js';

const ROUND = v.object({
  seed: v.number(),
  killedAfter: v.string(),
  knowsInterrupted: v.boolean(),
  reportsFiles: v.boolean(),
  approvalIntact: v.boolean(),
  gitStatusMatches: v.boolean(),
  orphanFound: v.null(),
  rolledBackExactly: v.null(),
  rolledForwardExactly: v.null(),
  complaints: v.array(v.string()),
  error: v.null(),
});

const DRILL = v.object({
  agent: v.string(),
  bare: v.boolean(),
  rounds: v.array(ROUND),
  passed: v.number(),
  failed: v.number(),
});

/** The kill of this seed falls into the shell command that renames, as the title says. */
const SEED = 1;

export const drilled = test.macro({
  title: (_, name: AgentName) =>
    `${name}: killed in the drill at a command that renames files, it answers all four questions, and alone it does not`,
  exec: (t, name: AgentName) => {
    const place = scratch(t, { repository: false });
    const temporary = join(place.top, 'tmp');
    mkdirSync(temporary);
    const path = [dirname(agentProgram(name)), place.env['PATH']].join(delimiter);
    const env = { PATH: path, TMPDIR: temporary };
    const words = ['drill', '--agent', name, '--rounds', '1', '--seed', String(SEED)];
    const guarded = v.parse(DRILL, document(place, words, { env, codes: [0, 1] }));
    t.deepEqual(
      guarded.rounds.map(({ killedAfter, complaints }) => [killedAfter, complaints]),
      [['call 13: sh tools/rename.sh', []]],
    );
    t.deepEqual([guarded.agent, guarded.bare, guarded.passed, guarded.failed], [name, false, 1, 0]);
    const bare = v.parse(DRILL, document(place, [...words, '--bare'], { env }));
    t.deepEqual(
      bare.rounds.map(({ killedAfter, reportsFiles, approvalIntact, gitStatusMatches }) => [
        ...[killedAfter, reportsFiles, approvalIntact, gitStatusMatches],
      ]),
      [['call 13: sh tools/rename.sh', false, false, false]],
    );
    t.deepEqual([bare.bare, bare.passed, bare.failed], [true, 0, 1]);
    t.deepEqual(readdirSync(temporary), []);
    t.deepEqual(processesNaming(temporary), []);
  },
});
