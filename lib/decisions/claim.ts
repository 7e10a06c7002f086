/**
 * A turn's final result held against its baseline and its events.
 *
 *     const { verdict, findings } = await checkTurn(storage, record);
 *
 * What is claimed comes from the structured claim of the turn's end, else from its final text (claim-text.ts); it is judged by what
 * is on record (claim-verdict.ts), as of the turn's last checkpoint, and never by what somebody did to the tree since. Reads only.
 * Of a tree as large as you like the lists are bounded, and their true lengths are beside them.
 */
import type { Event } from '../event.js';
import type { Storage } from '../git/storage.js';
import type { RecordedCommand } from './claim-commands.js';
import { commandsOf, factsOf, treesOf } from './claim-facts.js';
import type { TurnRecord } from './claim-turn.js';
import { saidBy, type SaidByTurn } from './claim-said.js';
import {
  judge,
  type Claimed,
  type ClaimFinding,
  type CommandEvidence,
  type CommandResult,
  type FileEvidence,
  type Judged,
  type TurnFacts,
} from './claim-verdict.js';

/** 'not-judged': something is claimed, and of none of it the record says whether it is so. */
export type ClaimVerdict = 'holds' | 'does-not-hold' | 'nothing-claimed' | 'not-judged';

export interface ClaimCheck {
  readonly turn: string;
  readonly task: string;
  readonly agent: string;
  readonly objective: string;
  readonly state: 'open' | 'finished' | 'interrupted' | 'recovered';
  readonly outcome: Event<'turn.finished'>['outcome'] | null;
  /** Time of the turn's end, ISO 8601; null without one. */
  readonly finishedAt: string | null;
  readonly verdict: ClaimVerdict;
  /** Where the claim comes from; null when there is none. */
  readonly source: 'structured' | 'text' | null;
  /** What makes it false. */
  readonly findings: readonly ClaimFinding[];
  readonly files: readonly FileEvidence[];
  /** Changed and neither claimed nor named, sorted; 1,000 at most. */
  readonly unclaimed: readonly string[];
  readonly unclaimedCount: number;
  /** Named in the text, without a claim. */
  readonly named: readonly string[];
  /** As the text wrote them: claimed as changed, and in no tree of the turn. Not judged. */
  readonly missing: readonly string[];
  readonly commands: readonly CommandEvidence[];
  /** Where the text says that tests pass; else null. */
  readonly tests: CommandResult | null;
  /** The newest 1,000. */
  readonly ran: readonly RecordedCommand[];
  readonly ranCount: number;
  readonly tree: {
    readonly baseline: string | null;
    /** The work tree at the moment of the claim. */
    readonly after: string | null;
    /** Files that differ between the two; null when one of them is not there. */
    readonly changed: number | null;
  };
}

const MOST = 1000;

/** Errors: 'ledger-damaged', 'object-damaged'. */
export async function checkTurn(storage: Storage, record: TurnRecord): Promise<ClaimCheck> {
  const { turn } = record;
  const trees = await treesOf(storage, record);
  const commands = await commandsOf(record);
  const said = await saidBy(storage, { record, trees, commands });
  const paths = said?.claimed.changed.flatMap((one) => one.paths) ?? [];
  const known = new Set((trees.differences ?? []).map(({ path }) => path));
  const absent = said?.claimed.isStructured === true ? paths.filter((path) => !known.has(path)) : [];
  const facts = await factsOf(storage, record, { trees, commands, absent });
  const judged = judge(said?.claimed ?? NOTHING, facts, said?.text?.named ?? []);
  const finished = turn.finished?.event;
  const { task, agent, objective } = turn.started.event;
  return {
    turn: turn.id,
    task,
    agent,
    objective,
    state: turn.state,
    outcome: finished?.outcome ?? null,
    finishedAt: finished?.at ?? null,
    verdict: verdictOf(said, judged),
    source: said === null ? null : said.claimed.isStructured ? 'structured' : 'text',
    findings: judged.findings.slice(0, MOST),
    files: judged.files,
    unclaimed: judged.unclaimed.slice(0, MOST),
    unclaimedCount: judged.unclaimed.length,
    named: said?.text?.named.map(({ paths: [path = ''] }) => path) ?? [],
    missing: said?.text?.missing ?? [],
    commands: judged.commands,
    tests: judged.tests,
    ...ranOf(facts),
    tree: {
      baseline: trees.baseline,
      after: trees.after,
      changed: trees.differences?.length ?? null,
    },
  };
}

function ranOf({ commands }: TurnFacts): Pick<ClaimCheck, 'ran' | 'ranCount'> {
  const ran = commands.filter(({ line }) => line !== null);
  return { ran: ran.slice(-MOST), ranCount: ran.length };
}

const NOTHING: Claimed = {
  isStructured: false,
  changed: [],
  unchanged: [],
  commands: [],
  testsPass: false,
  complete: false,
};

function verdictOf(said: SaidByTurn | null, { findings, files, commands, tests }: Judged): ClaimVerdict {
  if (findings.length > 0) return 'does-not-hold';
  if (said === null) return 'nothing-claimed';
  const results = [...files, ...commands].map(({ result }): string => result);
  if (tests !== null) results.push(tests);
  if (results.length === 0) return said.claimed.isStructured ? 'holds' : 'nothing-claimed';
  return results.every((result) => result === 'not-judged') ? 'not-judged' : 'holds';
}
