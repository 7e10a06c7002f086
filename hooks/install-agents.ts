/**
 * Hooks of ours in the files of Claude Code, Codex, OpenCode and Kilo: what `init --agent` puts there and `uninstall` takes out again.
 *
 * Calling order of an installation: `planAgents` looks at everything and refuses before anything is written · `installAgents` does the
 * plan, file by file: on record with its bytes from before, kept out of `git status`, replaced in one rename. Killed in between, each
 * file is the old or the new one, and either verb done again finishes.
 *
 * One installation an agent: where the repository has the shared one, a local one would fire every hook twice, so none is added; a
 * shared one takes the local one's place. What is current is left as it is, with its nonce; anything else of ours is replaced.
 */
import { join } from 'node:path';
import { excludeAgents, excludeFile, wantsExcluding } from '../lib/fence/exclude.js';
import { DurableError, isDurableError } from '../lib/errors.js';
import type { AgentName } from '../lib/agents/step.js';
import { AGENTS } from '../lib/agents/step.js';
import type { Storage } from '../lib/git/storage.js';
import { freshId } from '../lib/host.js';
import {
  besideOf,
  isTracked,
  missingFolders,
  readAgentFile,
  replaceAgentFile,
  type AgentFile,
} from './agents/agent-file.js';
import { hasExactly, marksIn, refusalOf, withEntries, withoutEntries } from './agents/hook-entries.js';
import {
  freshMark,
  handlersOf,
  HOSTS,
  isRunnable,
  pluginMark,
  pluginText,
  type Mark,
  type Scope,
} from './agents/hosts.js';
import {
  bytesBefore,
  digestOf,
  forget,
  isSame,
  record,
  recordedElsewhere,
  recordedIn,
  type Recorded,
} from './agents/record.js';

export { agentsFound, type Scope } from './agents/hosts.js';

export interface AgentChange {
  readonly agent: AgentName;
  /** Of the hooks that are in place afterwards. */
  readonly scope: Scope;
  /** Absolute. */
  readonly file: string;
  /** 'none': they are there and current. */
  readonly change: 'created' | 'edited' | 'none';
}

interface PlannedEdit {
  readonly known: AgentFile;
  readonly bytes: Buffer | null;
  /** What to put on record, with the bytes of before; null for a file that goes back to what it was. */
  readonly recorded: Recorded;
  readonly isRemoval: boolean;
  readonly base: Buffer | null;
}

export interface AgentPlan {
  readonly changes: readonly AgentChange[];
  readonly edits: readonly PlannedEdit[];
  /** Absolute paths that are made: files, and folders with a slash at their end. */
  readonly created: readonly string[];
  /** Absolute paths of files that are there and are written. */
  readonly edited: readonly string[];
}

/** Writes nothing. Throws 'agent-file', 'path-outside', 'path-refused' where an agent's file cannot take them, the disk's. */
export async function planAgents(
  storage: Storage,
  agents: readonly AgentName[],
  scope: Scope,
): Promise<AgentPlan> {
  const plans: { change: AgentChange; edits: PlannedEdit[] }[] = [];
  for (const agent of new Set(agents)) plans.push(await planOne(storage, agent, scope));
  const changes = plans.map(({ change }) => change);
  const edits = plans.flatMap((plan) => plan.edits);
  const { workTree } = storage.layout;
  const made = edits.filter(({ known }) => known.bytes === null);
  const folders = new Set(made.flatMap(({ recorded }) => missingFolders(storage, recorded.path)));
  const excluding = wantsExcluding(storage, excludedAfter(storage, edits)) ? [excludeFile(storage)] : [];
  return {
    changes,
    edits,
    created: [
      ...[...folders].map((folder) => `${join(workTree, folder)}/`),
      ...made.map(({ known }) => known.file),
    ],
    edited: [
      ...edits.filter(({ known }) => known.bytes !== null).map(({ known }) => known.file),
      ...excluding,
    ],
  };
}

/** Errors: 'agent-file' where a file was written meanwhile, the disk's. */
export function installAgents(storage: Storage, { edits }: AgentPlan): void {
  const excluded = excludedAfter(storage, edits);
  for (const { recorded, isRemoval, base } of edits) if (!isRemoval) record(storage, recorded, base);
  // Of everything on record: nothing is shown before what it is about has gone.
  if (edits.length > 0) excludeAgents(storage, excludedAfter(storage, []));
  for (const { known, bytes, recorded, isRemoval } of edits) {
    replaceAgentFile(storage, known, bytes);
    if (isRemoval) removed(storage, recorded);
  }
  excludeAgents(storage, excluded);
}

export interface AgentsRemoved {
  /** Absolute paths of files and folders that were there and are gone. */
  readonly removed: readonly string[];
  /** Absolute paths of files that are without our hooks again. */
  readonly restored: readonly string[];
  /** Absolute paths in which hooks of ours still are. */
  readonly residue: readonly string[];
}

/** Idempotent. Errors: the disk's, those of `readAgentFile`. */
export function uninstallAgents(storage: Storage): AgentsRemoved {
  const gone: string[] = [];
  const restored: string[] = [];
  const residue: string[] = [];
  for (const agent of AGENTS) {
    for (const scope of ['local', 'shared'] as const) {
      const edit = withdrawal(storage, agent, scope);
      if (edit === null) continue;
      const { known, bytes, recorded } = edit;
      if (edit.isUnclear) residue.push(known.file);
      else if (known.bytes !== null && bytes?.equals(known.bytes) !== true) {
        replaceAgentFile(storage, known, bytes);
        (bytes === null ? gone : restored).push(known.file);
      }
      gone.push(...removed(storage, recorded));
    }
  }
  excludeAgents(storage, excludedBy(recordedElsewhere(storage)));
  return { removed: gone, restored, residue };
}

async function planOne(
  storage: Storage,
  agent: AgentName,
  scope: Scope,
): Promise<{ change: AgentChange; edits: PlannedEdit[] }> {
  const { files } = HOSTS[agent];
  const committed = readable(storage, files.shared);
  const marks = committed === null ? [] : marksOf(agent, committed);
  const shared = marks.find((mark) => mark.scope === 'shared');
  const other = scope === 'shared' || shared !== undefined ? 'local' : null;
  const leaving = other === null || files.local === files.shared ? null : withdrawal(storage, agent, other);
  const edits = leaving === null || !leaving.isOurs ? [] : [{ ...leaving, isRemoval: true }];
  if (scope === 'local' && shared !== undefined) {
    const file = join(storage.layout.workTree, files.shared);
    return { change: { agent, scope: 'shared', file, change: 'none' }, edits };
  }
  const edit = await placing(storage, agent, scope, leaving?.recorded.madeDirs ?? []);
  const file = join(storage.layout.workTree, files[scope]);
  if (edit === null) return { change: { agent, scope, file, change: 'none' }, edits };
  const change = edit.known.bytes === null ? 'created' : 'edited';
  return { change: { agent, scope, file, change }, edits: [...edits, edit] };
}

/** Null where they are there and current. `made`: folders that were made for the file whose place this one takes. */
async function placing(
  storage: Storage,
  agent: AgentName,
  scope: Scope,
  made: readonly string[],
): Promise<PlannedEdit | null> {
  const known = readAgentFile(storage, HOSTS[agent].files[scope]);
  const { path, bytes } = known;
  if (scope === 'local' && (await isTracked(storage, path))) {
    const todo = `install for everybody with 'git durable init --agent ${agent} --shared', or take it out of the index with 'git rm --cached'`;
    throw new DurableError('agent-file', { path, why: 'git tracks it', todo });
  }
  const text = bytes === null ? '' : textOf(known);
  const marks = marksOf(agent, known);
  const [mark] = marks;
  if (mark?.scope === scope && marks.length === 1 && isRunnable(mark) && isCurrent(agent, text, mark))
    return null;
  const recorded = recordOf(storage, agent, path);
  const digest = bytes === null ? null : digestOf(bytes);
  const isOurs = recorded !== undefined && digest !== null && recorded.after.includes(digest);
  const kept = isOurs && recorded.before !== null ? bytesBefore(storage, recorded) : null;
  const isKnown = isOurs && (recorded.before === null || kept !== null);
  const base = isKnown ? kept : baseOf(agent, known, marks.length > 0);
  const fresh = freshMark(scope, freshId(storage.host, 16));
  const after = Buffer.from(textWith(agent, base?.toString('utf8') ?? '', fresh), 'utf8');
  const madeDirs = new Set([...made, ...(recorded?.madeDirs ?? []), ...missingFolders(storage, path)]);
  return {
    known,
    bytes: after,
    base,
    isRemoval: false,
    recorded: {
      agent,
      scope,
      path,
      before: base === null ? null : digestOf(base),
      after: [...(isKnown ? recorded.after.slice(-1) : []), digestOf(after)],
      madeDirs: [...madeDirs],
    },
  };
}

/** What a file would be without ours, where nobody knows what it was; null for none. */
function baseOf(agent: AgentName, known: AgentFile, hasOurs: boolean): Buffer | null {
  if (known.bytes === null || (hasOurs && HOSTS[agent].kind === 'plugin')) return null;
  return hasOurs ? Buffer.from(withoutEntries(known.bytes.toString('utf8'), ''), 'utf8') : known.bytes;
}

function textWith(agent: AgentName, base: string, mark: Mark): string {
  return agent === 'claude-code' || agent === 'codex'
    ? withEntries(base, handlersOf(agent, mark))
    : pluginText(agent, mark);
}

export function isCurrent(agent: AgentName, text: string, mark: Mark): boolean {
  return agent === 'claude-code' || agent === 'codex'
    ? hasExactly(text, handlersOf(agent, mark))
    : text === pluginText(agent, mark);
}

/** Throws 'agent-file' for what cannot take hooks of ours. */
function textOf({ path, bytes }: AgentFile): string {
  const text = (bytes ?? Buffer.alloc(0)).toString('utf8');
  const isText = bytes === null || Buffer.from(text, 'utf8').equals(bytes);
  const agent = AGENTS.find((one) => Object.values(HOSTS[one].files).includes(path));
  const isPlugin = agent !== undefined && HOSTS[agent].kind === 'plugin';
  if (isPlugin && pluginMark(text) === null)
    throw new DurableError('agent-file', {
      path,
      why: 'it is no file of git-durable',
      todo: 'give it another name, and type the same again',
    });
  const why = isText ? (isPlugin ? null : refusalOf(text)) : 'it is not UTF-8';
  if (why === null) return text;
  throw new DurableError('agent-file', { path, why, todo: 'mend it, and type the same again' });
}

/** Marks of ours in a file; none in one that is not understood. */
export function marksOf(agent: AgentName, { bytes }: AgentFile): Mark[] {
  const text = bytes?.toString('utf8') ?? '';
  if (HOSTS[agent].kind === 'entries') return marksIn(text);
  const mark = pluginMark(text);
  return mark === null ? [] : [mark];
}

const recordOf = ({ layout }: Storage, agent: AgentName, path: string): Recorded | undefined =>
  recordedIn(layout.gitDir).find((one) => isSame(one, { agent, path }));

interface Withdrawal extends PlannedEdit {
  /** Hooks of ours are in it. */
  readonly isOurs: boolean;
  /** It is not understood any more, and something of ours is in it. */
  readonly isUnclear: boolean;
}

/**
 * How a file is without ours: as it was, byte for byte, when nobody has changed it since; else without our members. Null where there
 * is nothing of ours: shared hooks that are on no record here are others'.
 */
function withdrawal(storage: Storage, agent: AgentName, scope: Scope): Withdrawal | null {
  const path = HOSTS[agent].files[scope];
  const recorded = recordOf(storage, agent, path);
  const known = readable(storage, path);
  if (known === null) return null;
  const ours = marksOf(agent, known).filter((mark) => recorded !== undefined || mark.scope === scope);
  if (recorded === undefined && (ours.length === 0 || scope === 'shared')) return null;
  const told = recorded ?? { agent, scope, path, before: null, after: [], madeDirs: [] };
  const edit = { known, recorded: told, base: null, isRemoval: true, isOurs: ours.length > 0 };
  const { bytes } = known;
  if (bytes === null || digestOf(bytes) === told.before) return { ...edit, bytes, isUnclear: false };
  const before = told.before === null ? null : bytesBefore(storage, told);
  if (told.after.includes(digestOf(bytes)) && (told.before === null || before !== null))
    return { ...edit, bytes: before, isUnclear: false };
  if (HOSTS[agent].kind === 'plugin')
    return { ...edit, bytes: ours.length > 0 ? null : bytes, isUnclear: false };
  const text = bytes.toString('utf8');
  if (refusalOf(text) !== null)
    return { ...edit, bytes, isUnclear: /git-durable hook|hook-entry\.js'/.test(text) };
  const left = withoutEntries(text, before?.toString('utf8') ?? '');
  const isBare = recorded !== undefined && told.before === null && /^\s*\{\s*\}\s*$/.test(left);
  return { ...edit, bytes: isBare ? null : Buffer.from(left, 'utf8'), isUnclear: false };
}

/** Null for what `readAgentFile` refuses: nothing of ours was ever put through a link. */
function readable(storage: Storage, path: string): AgentFile | null {
  try {
    return readAgentFile(storage, path);
  } catch (error) {
    if (isDurableError(error) && ['agent-file', 'path-outside', 'path-refused'].includes(error.code))
      return null;
    throw error;
  }
}

/** After a file of ours has gone: the folders made for it that hold nothing else, and its record. */
function removed(storage: Storage, recorded: Recorded): string[] {
  const { disk, layout } = storage;
  const folders = recorded.madeDirs.map((folder) => join(layout.workTree, folder)).reverse();
  const gone = folders.filter((folder) => disk.removeDir('agent.file', folder));
  if (recordOf(storage, recorded.agent, recorded.path) !== undefined) forget(storage, recorded);
  return gone;
}

const excludedBy = (recorded: readonly Recorded[]): string[] =>
  recorded
    .filter(({ scope }) => scope === 'local')
    .flatMap(({ path }) => [path, besideOf(path)])
    .sort();

/** What has to be kept out of `git status` once these edits are done. */
function excludedAfter(storage: Storage, edits: readonly PlannedEdit[]): string[] {
  const isEdited = (one: Recorded): boolean => edits.some(({ recorded }) => isSame(recorded, one));
  const own = recordedIn(storage.layout.gitDir).filter((one) => !isEdited(one));
  const fresh = edits.filter(({ isRemoval }) => !isRemoval).map(({ recorded }) => recorded);
  return excludedBy([...recordedElsewhere(storage), ...own, ...fresh]);
}
