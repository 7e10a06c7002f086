/**
 * One round: a fresh repository, a scripted agent, a kill, the answers of fresh processes, in most rounds a person's answer to the
 * request that stands, what outlived the agent ended, two repairs, a successor that asks again, and the judgement.
 *
 * The two repairs start from the same bytes in the same folder: after the first one the state of the kill is put back
 * from a copy. A second folder would not do: a copied git dir has another inode and is another workspace for the product
 * (a file synchroniser's copy must not take part in the original's turn), so its repair would be another question.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { readUserState, repairAndJudge, repairedTree, type Direction } from './aftermath.js';
import { Product, type Answers } from './answers.js';
import { Chance } from './chance.js';
import { conflictIntact } from './contested.js';
import { endOrphans, orphansEnded, startBystander, type Ending } from './ending.js';
import { foldRecord, mustBeKnown, storiesOf, verdictOf, type ActRecord, type Trees } from './expectation.js';
import { gone, killedAgent, type Build, type RoundPlan, type Stage } from './kill.js';
import * as judge from './judge.js';
import { choosePlanting, plant, type Planting } from './plant.js';
import { end, processes, type Seen } from './processes.js';
import { readRecord } from './record.js';
import { dirtyPaths, INSTRUCTION_FILES, makeScratch, type ScratchRepository } from './scratch.js';
import { answerForTheDead, answerHonoured, conflictHeld, playSuccessor, type Answered } from './successor.js';
import { difference, readFolders, readTree, type Tree } from './tree.js';
import { backgroundCommand } from './wording.js';

/** The questions of a round, in their order. */
export const CHECKS = [
  'knowsInterrupted',
  'reportsFiles',
  'approvalIntact',
  'conflictIntact',
  'gitStatusMatches',
  'orphanFound',
  'rolledBackExactly',
  'rolledForwardExactly',
] as const;

export type Check = (typeof CHECKS)[number];
export type Checks = { readonly [C in Check]: judge.Complaints };

export interface Round {
  readonly plan: RoundPlan;
  /** Where the kill fell: the last line of the independent record. */
  readonly killedAfter: string;
  readonly planted: Planting;
  readonly checks: Checks;
  readonly facts: judge.Facts;
  readonly answers: Answers;
  /** What a person said while the agent was dead. */
  readonly answered: Answered;
  readonly ending: Ending;
}

/** Throws when the drill itself cannot go on (the agent fails by itself, a verb prints no document). */
export async function runRound(build: Build, plan: RoundPlan): Promise<Round> {
  const chance = new Chance(plan.seed);
  const { repository, head } = makeScratch(chance.split('repository'), plan.format);
  const background = backgroundCommand(plan.seed);
  try {
    const bystander = startBystander(plan.seed);
    return await played({ build, plan, chance, repository, head, background, bystander });
  } finally {
    for (const one of living(background)) end(one);
    rmSync(repository.top, { recursive: true, force: true });
  }
}

interface Scene extends Stage {
  readonly head: Tree;
  /** Command line of the process that outlives the agent. */
  readonly background: string;
  /** A process with that command line which is not of the turn. */
  readonly bystander: Seen;
}

async function played(stage: Scene): Promise<Round> {
  const { repository, plan, chance } = stage;
  const before = readTree(repository.dir);
  const folders = readFolders(repository.dir);
  const dirtyBefore = dirtyPaths(repository);
  const user = readUserState(repository);
  const { record, keeper, heard } = await killedAgent(stage);
  const acts = foldRecord(readRecord(record));
  const killed = readTree(repository.dir);
  const planted = choosePlanting(chance.split('plant'));
  const found = storiesOf(acts, { before, killed, now: killed });
  const certain = mustBeKnown(found, acts, killed);
  plant(repository, planted, { chance: chance.split('planting'), stories: found, certain });
  const trees: Trees = { before, killed, now: readTree(repository.dir) };
  const facts: judge.Facts = {
    format: plan.format,
    acts,
    stories: storiesOf(acts, trees),
    certain,
    head: stage.head,
    instructions: instructionsIn(before),
    dirtyBefore,
    dirtyNow: dirtyPaths(repository),
    alive: living(stage.background).filter(({ pid }) => pid !== stage.bystander.pid),
    keeper: plan.keeperToo ? 'killed' : heard ? 'heard' : 'speaking',
  };
  const product = new Product(stage.build.program, repository);
  const answers = await product.answers();
  const moved = difference(trees.now, readTree(repository.dir));
  await gone(keeper, 'the keeper');
  const answered = await answerForTheDead(product, answers, chance.split('answer'));
  const known = { outlived: facts.alive, bystander: stage.bystander };
  const early = chance.split('orphans').often(1, 2)
    ? await endOrphans(product, 'before the repairs', known)
    : null;
  const repairs = await bothRepairs({ stage, product, facts, answers, trees, folders, user });
  const ending = early ?? (await endOrphans(product, 'after the repairs', known));
  const { agent } = stage.build;
  const sequel = await playSuccessor({ agent, repository }, product, judge.factOf(facts, 'turn')?.task ?? '');
  return {
    plan,
    killedAfter: lastWords(acts),
    planted,
    facts,
    answers,
    answered,
    ending,
    checks: {
      knowsInterrupted: judge.knowsInterrupted(facts, answers),
      reportsFiles: [
        ...judge.reportsFiles(facts, answers),
        ...moved.map((path) => `a question changed '${path}'`),
      ],
      approvalIntact: [...judge.approvalIntact(facts, answers), ...answerHonoured(acts, answered, sequel)],
      conflictIntact: [...conflictIntact(facts, answers), ...conflictHeld(answers, sequel)],
      gitStatusMatches: judge.gitStatusMatches(facts, answers),
      orphanFound: [...judge.orphanFound(facts, answers), ...orphansEnded(facts.alive, ending)],
      ...repairs,
    },
  };
}

function living(command: string): Seen[] {
  return processes().filter((one) => one.command === command);
}

function instructionsIn(tree: Tree): Map<string, string> {
  const found = [...tree].filter(([path]) => INSTRUCTION_FILES.includes(path));
  return new Map(found.map(([path, { sha256 }]) => [path, sha256]));
}

interface Repairs {
  readonly stage: Scene;
  readonly product: Product;
  readonly facts: judge.Facts;
  readonly answers: Answers;
  readonly trees: Trees;
  /** As the turn found them. */
  readonly folders: readonly string[];
  readonly user: ReturnType<typeof readUserState>;
}

async function bothRepairs(
  repairs: Repairs,
): Promise<Pick<Checks, 'rolledBackExactly' | 'rolledForwardExactly'>> {
  const { repository } = repairs.stage;
  const copy = join(repository.top, 'copy');
  copyFolder(repository.dir, copy);
  const rolledBackExactly = await oneRepair(repairs, 'roll-back');
  putBack(repository, copy);
  const rolledForwardExactly = await oneRepair(repairs, 'roll-forward');
  return { rolledBackExactly, rolledForwardExactly };
}

async function oneRepair(repairs: Repairs, direction: Direction): Promise<judge.Complaints> {
  const { stage, product, facts, answers, trees, folders, user } = repairs;
  const [report] = answers.recover.document.interrupted;
  if (report === undefined) return ['nothing to repair is reported'];
  const { stories } = facts;
  const known = judge.knownActs(facts, report);
  const foreign = stories.filter((story) => verdictOf(story, known)?.state === 'foreign');
  try {
    return await repairAndJudge({
      direction,
      product,
      repository: stage.repository,
      turn: report.turn,
      before: trees.now,
      folders: { before: folders, now: readFolders(stage.repository.dir) },
      wanted: repairedTree(direction, trees.now, { stories, known }),
      foreign: foreign.map((story) => story.path),
      user,
    });
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

/** With modes, times and hard links, which `fs.cp` does not keep. */
function copyFolder(from: string, to: string): void {
  const ran = spawnSync('cp', ['-a', from, to], { encoding: 'utf8' });
  if (ran.status !== 0) throw new Error(`cp -a: ${ran.stderr}`);
}

/** The bytes of the copy in the old place; work tree and git dir stay the same folders. */
function putBack(repository: ScratchRepository, copy: string): void {
  for (const name of readdirSync(repository.dir)) {
    if (name !== '.git') rmSync(join(repository.dir, name), { recursive: true });
  }
  const gitDir = join(repository.dir, '.git');
  for (const name of readdirSync(gitDir)) rmSync(join(gitDir, name), { recursive: true });
  copyFolder(`${copy}/.`, repository.dir);
}

function lastWords(acts: readonly ActRecord[]): string {
  const last = acts.at(-1);
  const phase = [...(last?.reached ?? [])].at(-1) ?? '';
  return last === undefined ? 'nothing' : `${last.detail}, ${phase}`;
}
