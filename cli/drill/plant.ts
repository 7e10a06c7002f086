/**
 * What somebody else does to the work tree after the kill and before anybody asks: a report must tell it from the turn's
 * own work, and no repair may take it away.
 */
import { chmodSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Chance } from './chance.js';
import type { Story } from './expectation.js';
import { put, type ScratchRepository } from './scratch.js';
import { DENIED } from './wording.js';

export type Planting = 'nothing' | 'foreign' | 'deleted' | 'reverted' | 'drift' | 'clean-drift' | 'both';

const PLANTINGS: readonly Planting[] = [
  'nothing',
  'nothing',
  'foreign',
  'deleted',
  'reverted',
  'drift',
  'clean-drift',
  'both',
];

export function choosePlanting(chance: Chance): Planting {
  return chance.pick(PLANTINGS);
}

/**
 * Changes bytes on disk. A command whose effect nobody could tell may be behind any change while it is in doubt, so
 * nothing is planted then; foreign bytes go only where other bytes are expected.
 */
export function plant(
  repository: ScratchRepository,
  kind: Planting,
  scene: { chance: Chance; stories: readonly Story[]; certain: ReadonlySet<number> },
): void {
  const { chance, stories, certain } = scene;
  const acts = stories.flatMap((story) => story.steps.map((step) => step.act));
  if (acts.some((act) => act.kind === 'shell' && !act.reached.has('after'))) return;
  const mine = stories.filter((story) =>
    story.steps.every((step) => certain.has(step.act.at) && step.expected !== 'unknown'),
  );
  if (kind === 'foreign' || kind === 'both') plantForeign(repository, chance, mine);
  if (kind === 'deleted') plantDeletion(repository, chance, mine);
  if (kind === 'reverted') plantOldBytes(repository, chance, mine);
  if (kind === 'drift' || kind === 'both') {
    put(repository, 'somebody/else.txt', 'not of this turn\n');
    put(repository, chance.pick(['LICENSE.txt', DENIED.path]), 'edited by somebody else\n');
  }
  // The user threw an edit of before the turn away: git status no longer shows it.
  if (kind === 'clean-drift') rmSync(join(repository.dir, 'scratch pad.txt'));
}

function plantForeign(repository: ScratchRepository, chance: Chance, mine: readonly Story[]): void {
  for (const { path } of chance.shuffled(mine).slice(0, 2)) {
    // First away: a link would be written through.
    rmSync(join(repository.dir, path), { force: true });
    put(repository, path, `somebody else was here: ${path}\n`);
  }
}

/** As an editor's undo does: the file is as the turn found it, and the turn's own word is that it has written it. */
function plantOldBytes(repository: ScratchRepository, chance: Chance, mine: readonly Story[]): void {
  for (const { path, before } of chance.shuffled(mine).slice(0, 2)) {
    rmSync(join(repository.dir, path), { force: true });
    if (before === undefined) continue;
    put(repository, path, before.bytes);
    chmodSync(join(repository.dir, path), before.mode === '100755' ? 0o755 : 0o644);
  }
}

function plantDeletion(repository: ScratchRepository, chance: Chance, mine: readonly Story[]): void {
  const there = mine.filter((one) => one.now !== undefined && one.before !== undefined);
  if (there.length > 0) rmSync(join(repository.dir, chance.pick(there).path));
}
