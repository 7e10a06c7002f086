/** `approvals`: what waits for a decision, and what was decided, oldest first, in this turn or any before it. */
import type { ListedApproval } from '../../lib/decisions/approval.js';
import { isWaiting, type Lapse } from '../../lib/decisions/lapse.js';
import { Ledger } from '../../lib/ledger/ledger.js';
import type { Repository } from '../../lib/repository.js';
import type { ExactJson } from '../../lib/exact-json.js';
import { readArguments, readCommand, readText } from '../contents.js';
import { EXIT } from '../exit.js';
import { noteDamage, withRepository } from '../open.js';
import { argumentsText, type Cell } from '../output.js';
import { commandLine } from '../run/command.js';
import type { VerbContext } from '../verb.js';

export async function run(context: VerbContext): Promise<number> {
  const { output } = context;
  return withRepository(context, async (repository) => {
    await noteDamage(context, repository.storage);
    const all = await repository.approvals();
    const pending = await Promise.all(all.filter(isPending).map((one) => requestOf(repository, one)));
    const resolved = await Promise.all(
      all.filter((one) => !isPending(one)).map((one) => answerOf(repository, one)),
    );
    output.result({ pending, resolved }, () => {
      output.table([...pending.map(pendingRow), ...resolved.slice(-MOST_ROWS).map(resolvedRow)]);
      const hidden = resolved.length - MOST_ROWS;
      if (hidden > 0)
        output.line(`${String(hidden)} earlier ones are not shown: git durable approvals --json`);
      const first = pending.find(({ lapsed }) => lapsed === null) ?? pending[0];
      output.line(first === undefined ? 'nothing waits' : `next: git durable approve ${first.id}`);
    });
    return EXIT.done;
  });
}

/** Of what was decided; what waits must not be lost among it. */
const MOST_ROWS = 20;

const isPending = ({ approval, lapsed }: ListedApproval): boolean => isWaiting(approval, lapsed);

interface Request {
  readonly id: string;
  readonly task: string;
  readonly turn: string | null;
  readonly tool: string;
  readonly args: ExactJson | string | null;
  /** What `ask -- CMD` runs once approved; null when it only asks. */
  readonly command: readonly string[] | null;
  readonly cwd: string;
  readonly fingerprint: string;
  readonly requestedAt: string;
  /** When it ends by itself; null: never. */
  readonly expiresAt: string | null;
  /** It ends once the work tree differs from what it was at the request. */
  readonly invalidOnChange: boolean;
  /** What an answer, or a use, would find now and record; 'invalidated' only while the work tree is as it is. */
  readonly lapsed: Lapse | null;
}

interface Answer extends Request {
  readonly state: string;
  readonly by: string | null;
  readonly resolvedAt: string | null;
  readonly feedback: string | null;
}

async function requestOf(repository: Repository, listed: ListedApproval): Promise<Request> {
  const { event } = listed.approval.requested;
  const { contents } = Ledger.open(repository.storage, listed.task);
  return {
    id: listed.approval.id,
    task: listed.task,
    turn: event.turn,
    tool: event.tool,
    args: await readArguments(contents, event.args),
    command: event.command === null ? null : await readCommand(contents, event.command),
    cwd: event.cwd,
    fingerprint: event.fingerprint,
    requestedAt: event.at,
    expiresAt: event.expiresAt,
    invalidOnChange: event.invalidOnChange,
    lapsed: listed.lapsed,
  };
}

async function answerOf(repository: Repository, listed: ListedApproval): Promise<Answer> {
  const { lapsed } = listed;
  const { state, resolved } = listed.approval;
  const { contents } = Ledger.open(repository.storage, listed.task);
  const feedback = resolved?.event.feedback ?? null;
  return {
    ...(await requestOf(repository, listed)),
    state: lapsed === 'expired' ? lapsed : state,
    by: resolved?.event.by ?? null,
    resolvedAt: resolved?.event.at ?? null,
    feedback: feedback === null ? null : await readText(contents, feedback),
  };
}

/** Everything the decision covers but the folder and the task. */
const whatOf = (one: Request): string =>
  one.command === null
    ? argumentsText(one.args)
    : `${argumentsText(one.args)} -- ${commandLine(one.command)}`;

const pendingRow = (one: Request): (Cell | string)[] => [
  one.id,
  { text: 'pending', style: 'yellow' },
  one.tool,
  whatOf(one),
  ...endsOf(one),
];

const endsOf = ({ expiresAt, invalidOnChange, lapsed }: Request): string[] => [
  ...(expiresAt === null ? [] : [`until ${expiresAt}`]),
  ...(lapsed === 'invalidated' ? [CHANGED] : invalidOnChange ? ['until the work tree changes'] : []),
];

const CHANGED = 'the work tree has changed: answered or used now, it ends as invalidated';

const resolvedRow = (one: Answer): (Cell | string)[] => [
  one.id,
  { text: one.state, style: 'dim' },
  one.tool,
  whatOf(one),
  ...(one.lapsed === 'invalidated' ? [CHANGED] : []),
];
