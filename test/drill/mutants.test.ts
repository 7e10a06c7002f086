/** The drill has teeth: a build that breaks one promise fails it, and by the question that is about this promise. */
import test from 'ava';
import { PIECES } from '../../cli/drill/script.js';
import { runDrill, type DrillDocument } from '../helpers/drill-run.js';
import { seedWhere, type Drawn } from '../helpers/drill-seeds.js';
import { mutant, type Patch } from '../helpers/mutant.js';
import * as mutations from '../helpers/mutations.js';
import { scratch } from '../helpers/scratch.js';

type Question = Exclude<keyof DrillDocument['rounds'][number], 'seed' | 'killedAfter' | 'complaints'>;

const late = ({ lines }: Drawn): boolean => lines > 200;
const calm = (drawn: Drawn): boolean => late(drawn) && drawn.planted === 'nothing';

/** The kill comes between the small writes of a rewriting, the sixth one of them. */
const inPieces = ({ script, lines, planted }: Drawn): boolean => {
  const length = { rewrite: PIECES + 4, again: PIECES + 4, create: PIECES + 4 };
  let before = 0;
  for (const { kind } of script) {
    if (kind === 'rewrite' && lines === before + 8) return planted === 'nothing';
    before +=
      kind in length
        ? PIECES + 4
        : kind.endsWith('shell')
          ? 5
          : kind === 'failed' || kind === 'background'
            ? 3
            : 2;
  }
  return false;
};

/** What is broken, the patches, the rounds in which it must show, and the questions that must fail. */
const CASES: readonly [string, readonly Patch[], (drawn: Drawn) => boolean, readonly Question[]][] = [
  [
    'changes files before it records transaction.prepared',
    mutations.WITHOUT_PREPARED,
    calm,
    ['reportsFiles', 'rolledBackExactly'],
  ],
  ['keeps no image from before', mutations.WITHOUT_BEFORE_IMAGE, calm, ['reportsFiles', 'rolledBackExactly']],
  [
    'records a call when it is done',
    mutations.INTENT_AFTER_EFFECT,
    inPieces,
    ['knowsInterrupted', 'reportsFiles', 'rolledBackExactly'],
  ],
  ['changes one letter of the arguments', mutations.ARGUMENTS_NORMALIZED, calm, ['approvalIntact']],
  [
    'overwrites what somebody else wrote',
    mutations.FOREIGN_OVERWRITTEN,
    (drawn) => late(drawn) && drawn.planted === 'foreign',
    ['rolledBackExactly', 'rolledForwardExactly'],
  ],
  [
    'takes back only the last change of a file',
    mutations.ROLLED_BACK_ONE_STEP,
    (drawn) => calm(drawn) && drawn.script.findIndex(({ kind }) => kind === 'again') < 10,
    ['rolledBackExactly'],
  ],
  ['takes a file in part for a whole one', mutations.PARTIAL_TAKEN_FOR_WRITTEN, inPieces, ['reportsFiles']],
  [
    'does not see what drifted',
    mutations.DRIFT_UNSEEN,
    (drawn) => late(drawn) && drawn.planted === 'drift',
    ['gitStatusMatches'],
  ],
  [
    'lets an answer be used twice',
    mutations.ANSWER_NOT_USED_UP,
    (drawn) => calm(drawn) && drawn.answer !== 'pending',
    ['approvalIntact'],
  ],
  [
    'asks anew what was answered while the agent was dead',
    mutations.ANSWER_FORGOTTEN,
    (drawn) => calm(drawn) && drawn.answer !== 'pending',
    ['approvalIntact'],
  ],
  ['writes a path that has an open conflict', mutations.CONFLICT_BLOCKS_NOTHING, calm, ['conflictIntact']],
  ['ends nothing of what outlived the agent', mutations.ORPHANS_LEFT, calm, ['orphanFound']],
  ['does not see what outlived the agent', mutations.ORPHANS_UNSEEN, calm, ['orphanFound']],
];

/** On a busy machine a kill can come later than it was meant to, in a round that shows less. */
const TRIES = 4;

for (const [what, patches, fits, questions] of CASES) {
  test.serial(`a build that ${what} fails by ${questions.join(' and ')}`, (t) => {
    const place = scratch(t, { repository: false });
    const build = mutant(t, patches);
    const unseen = new Set<Question>(questions);
    const rounds: unknown[] = [];
    for (let [tries, seed] = [0, 0]; tries < TRIES && unseen.size > 0; tries += 1) {
      seed = seedWhere(fits, seed + 1);
      const { document } = runDrill(place, build, { rounds: 1, seed });
      const [round] = document.rounds;
      rounds.push(round);
      for (const question of questions) if (round?.[question] === false) unseen.delete(question);
    }
    t.deepEqual([...unseen], [], JSON.stringify(rounds));
  });
}
