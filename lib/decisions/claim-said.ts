/**
 * What a turn says of itself at its end, as something to be judged: its structured claim, else what its final text claims.
 *
 * A path in a text is looked for among the files of both checkpoints and those that the turn's calls named. Reads only.
 */
import { hasCode } from '../errors.js';
import { readCheckpoint } from '../files/checkpoint-read.js';
import { splitPaths } from '../git/path.js';
import type { Storage } from '../git/storage.js';
import { isCommand, type RecordedCommand } from './claim-commands.js';
import type { TurnTrees } from './claim-facts.js';
import { KnownPaths } from './claim-paths.js';
import { decodeClaim } from './claim-shape.js';
import { claimsIn, type TextClaim } from './claim-text.js';
import type { PathToken } from './claim-tokens.js';
import type { TurnRecord } from './claim-turn.js';
import type { Claimed } from './claim-verdict.js';

export interface SaidByTurn {
  readonly claimed: Claimed;
  /** Of a final text. */
  readonly text: TextClaim | null;
}

export interface Heard {
  readonly record: TurnRecord;
  readonly trees: TurnTrees;
  readonly commands: readonly RecordedCommand[];
}

/** Null when the turn's end says nothing, or what it said was purged. Errors: 'object-damaged'. */
export async function saidBy(storage: Storage, heard: Heard): Promise<SaidByTurn | null> {
  const { ledger, turn } = heard.record;
  const { claim = null, result = null } = turn.finished?.event ?? {};
  try {
    if (claim !== null) return structured(claim.oid, await ledger.contents.read(claim));
    if (result === null) return null;
    const text = (await ledger.contents.read(result)).toString('utf8');
    return readText(text, await knownPaths(storage, heard), heard.commands);
  } catch (error) {
    if (hasCode(error, 'object-missing')) return null;
    throw error;
  }
}

function structured(oid: string, bytes: Buffer): SaidByTurn {
  const { changed = [], unchanged = [], commands = [], complete = false } = decodeClaim(oid, bytes);
  const token = (path: string): PathToken => ({ said: path, paths: [path] });
  const claimed: Claimed = {
    isStructured: true,
    changed: changed.map(token),
    unchanged: unchanged.map(token),
    commands: commands.map(({ command, exit }) => ({
      command,
      as: exit === 0 ? 'passed' : 'ran',
      ...(exit === undefined ? {} : { exit }),
    })),
    testsPass: false,
    complete,
  };
  return { claimed, text: null };
}

function readText(text: string, known: KnownPaths, recorded: readonly RecordedCommand[]): SaidByTurn {
  const claim = claimsIn(text, { known, isCommand: (span) => isCommand(span, recorded) });
  const { changed, unchanged, commands, testsPass } = claim;
  return {
    claimed: { isStructured: false, changed, unchanged, commands, testsPass, complete: false },
    text: claim,
  };
}

async function knownPaths(storage: Storage, { trees, record }: Heard): Promise<KnownPaths> {
  const files = new Set<string>();
  const links = new Map<string, string>();
  for (const checkpoint of [trees.baseline, trees.after]) {
    if (checkpoint === null) continue;
    for (const [path, link] of await listed(storage, checkpoint)) {
      files.add(path);
      if (link !== null) links.set(path, link);
    }
  }
  for (const { paths } of record.turn.invocations) for (const { path } of paths) files.add(path);
  return new KnownPaths({ files, links: await targetsOf(storage, links), workTree: storage.layout.workTree });
}

/** Paths of a checkpoint; of a link the blob that holds its target. Empty when the checkpoint was pruned. */
async function listed(storage: Storage, checkpoint: string): Promise<Map<string, string | null>> {
  const found = new Map<string, string | null>();
  let tree: string;
  try {
    ({ tree } = await readCheckpoint(storage, checkpoint));
  } catch (error) {
    if (hasCode(error, 'object-missing')) return found;
    throw error;
  }
  for (const line of splitPaths(await storage.git.output(['ls-tree', '-r', '-z', '--full-tree', tree]))) {
    const tab = line.indexOf('\t');
    const [mode, , oid = ''] = line.slice(0, tab).split(' ');
    found.set(line.slice(tab + 1), mode === '120000' ? oid : null);
  }
  return found;
}

/** More links than that are not followed. */
const MOST_LINKS = 2000;

async function targetsOf(storage: Storage, links: ReadonlyMap<string, string>): Promise<Map<string, string>> {
  const targets = new Map<string, string>();
  const entries = [...links].slice(0, MOST_LINKS);
  const bodies = new Map<string, string>();
  for await (const answer of storage.objects.readMany([...new Set(entries.map(([, oid]) => oid))]))
    if (!('missing' in answer)) bodies.set(answer.oid, answer.body.toString('utf8'));
  for (const [path, oid] of entries) {
    const target = bodies.get(oid);
    if (target !== undefined) targets.set(path, target);
  }
  return targets;
}
