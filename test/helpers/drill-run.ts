/** Runs `drill --json` of some build with a temporary folder of its own, and decodes what it printed. */
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import type { Scratch } from './scratch.js';

const round = v.object({
  seed: v.number(),
  killedAfter: v.string(),
  knowsInterrupted: v.boolean(),
  reportsFiles: v.boolean(),
  approvalIntact: v.boolean(),
  conflictIntact: v.boolean(),
  gitStatusMatches: v.boolean(),
  orphanFound: v.boolean(),
  rolledBackExactly: v.boolean(),
  rolledForwardExactly: v.boolean(),
  keeperKilled: v.boolean(),
  complaints: v.array(v.string()),
});

const counts = v.record(v.string(), v.number());

const document = v.object({
  agent: v.string(),
  rounds: v.array(round),
  passed: v.number(),
  failed: v.number(),
  seen: v.object({ files: counts, invocations: counts }),
});

export type DrillDocument = v.InferOutput<typeof document>;

export interface DrillRun {
  readonly code: number | null;
  readonly document: DrillDocument;
  readonly stderr: string;
  /** What the drill left in its temporary folder. */
  readonly left: readonly string[];
}

export function runDrill(
  place: Scratch,
  program: string,
  options: { rounds: number; seed: number },
): DrillRun {
  const temporary = join(place.top, 'tmp');
  mkdirSync(temporary, { recursive: true });
  const ran = place.run(
    process.execPath,
    [program, 'drill', '--json', '--rounds', String(options.rounds), '--seed', String(options.seed)],
    { env: { TMPDIR: temporary } },
  );
  const left = readdirSync(temporary);
  try {
    return { code: ran.code, document: v.parse(document, JSON.parse(ran.stdout)), stderr: ran.stderr, left };
  } catch (error) {
    throw new Error(`drill ended with ${String(ran.code)}: ${ran.stdout.slice(0, 500)} ${ran.stderr}`, {
      cause: error,
    });
  }
}
