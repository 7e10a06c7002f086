/**
 * `ask`: a decision on exact arguments, from any script or harness inside a turn.
 *
 * With `-- CMD` an approval is consumed in the same ref move that starts the call it allows, the command runs, and its end
 * is recorded; killed in between, the call is in doubt and needs a new approval. Without a command the answer is
 * reported and stays unconsumed. With `--expires` or `--invalid-on-change` the request ends by itself (lib/decisions/lapse.ts): one
 * that waits already is taken up when it ends no later, and its end is said; else this is another request.
 */
import { messageOf } from '../../lib/errors.js';
import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { jsonFault } from '../../lib/exact-json.js';
import type { Repository } from '../../lib/repository.js';
import type { Ask } from '../../lib/turn/gate.js';
import type { Turn } from '../../lib/turn/turn.js';
import { usage } from '../arguments.js';
import { EXIT } from '../exit.js';
import { withRepository } from '../open.js';
import { callersFile } from '../paths.js';
import { runOpen } from '../run/command.js';
import { Signals } from '../run/signals.js';
import type { VerbContext } from '../verb.js';

type State = 'approved' | 'rejected' | 'pending' | 'expired' | 'invalidated' | 'consumed';

export async function run(context: VerbContext): Promise<number> {
  const call = callOf(context);
  const waitMs = (context.arguments.seconds('wait') ?? 0) * 1000;
  return withRepository(context, async (repository) => {
    const turn = await repository.attachTurn();
    if (context.command !== null) return askAndRun({ context, repository, turn, call, waitMs });
    const asked = await turn.requestApproval(call);
    const { state, feedback } = await turn.awaitAnswer(asked, waitMs);
    return tell(context, { ...asked, state, feedback });
  });
}

function callOf(context: VerbContext): Ask {
  const tool = context.arguments.text('tool');
  const args = context.arguments.text('args');
  if (tool === null || tool === '') throw usage('name the tool: git durable ask --tool NAME --args JSON');
  if (args === null)
    throw usage('give its exact arguments: git durable ask --tool NAME --args JSON, or @FILE');
  if (context.command?.length === 0)
    throw usage("'--' stands before a command: git durable ask --tool NAME --args JSON -- CMD");
  const expires = context.arguments.seconds('expires');
  const expiresAt = expires === null ? null : new Date(context.host.now().getTime() + expires * 1000);
  const invalidOnChange = context.arguments.flag('invalid-on-change');
  return { tool, args: argumentsText(context, args), cwd: context.dir, expiresAt, invalidOnChange };
}

/** The text byte for byte; that it is JSON, and that every reader takes it alike, is checked. */
function argumentsText(context: VerbContext, given: string): string {
  const text = given.startsWith('@') ? readArguments(context, given.slice(1)) : given;
  try {
    JSON.parse(text);
  } catch (error) {
    throw usage(`--args is not JSON (${messageOf(error)}); give JSON, or @FILE for what is in a file`);
  }
  const fault = jsonFault(text);
  if (fault !== null)
    throw usage(`--args can be read in two ways: ${fault}; write it so that it has one meaning`);
  return text;
}

function readArguments(context: VerbContext, name: string): string {
  try {
    const bytes = readFileSync(callersFile(context, name));
    if (isUtf8(bytes)) return bytes.toString('utf8');
  } catch (error) {
    throw usage(
      `--args @${name} cannot be read (${messageOf(error)}); name another file, or give the JSON itself`,
    );
  }
  throw usage(`--args @${name} is not JSON: it is not valid UTF-8; write it in UTF-8`);
}

interface Asking {
  readonly context: VerbContext;
  readonly repository: Repository;
  readonly turn: Turn;
  readonly call: Ask;
  readonly waitMs: number;
}

async function askAndRun({ context, repository, turn, call, waitMs }: Asking): Promise<number> {
  const command = context.command ?? [];
  const answer = await turn.gate({ ...call, command, waitMs });
  if (answer.state !== 'approved') return tell(context, answer);
  const signals = new Signals(context.host.pid);
  try {
    const ended = await runOpen({ context, repository, turn, call, command, signals }, answer.call);
    signals.settle(() => undefined);
    await ended.record();
    return ended.code;
  } finally {
    signals.close();
  }
}

interface Answer {
  readonly approval: string;
  readonly state: State;
  readonly feedback?: string;
  readonly expiresAt?: string | null;
  readonly invalidOnChange?: boolean;
}

/** A rejection's text comes out as it was given, nothing added: it is the tool's result. */
function tell({ output }: VerbContext, answer: Answer): number {
  const { approval, state, feedback = '' } = answer;
  output.result({ approval, state, feedback }, () => {
    if (state === 'rejected') output.raw(feedback);
  });
  const next = NEXT[state]?.(answer) ?? '';
  output.note(`approval ${approval} is ${state}${next}`);
  return CODES[state];
}

const NEXT: { readonly [S in State]?: (answer: Answer) => string } = {
  pending: (answer) => `${untilOf(answer)}; answer it: git durable approve ${answer.approval}`,
  expired: () => ': it was not answered and used in time; ask again',
  invalidated: () => ': the work tree has changed since, or the conversation was rewound; ask again',
};

/** A request that waited already may end earlier than what was asked for. */
function untilOf({ expiresAt = null, invalidOnChange = false }: Answer): string {
  const ends = [
    ...(expiresAt === null ? [] : [expiresAt]),
    ...(invalidOnChange ? ['the work tree changes'] : []),
  ];
  return ends.length === 0 ? '' : ` until ${ends.join(', or ')}`;
}

const CODES: Readonly<Record<State, number>> = {
  approved: EXIT.done,
  rejected: EXIT.rejected,
  pending: EXIT.attention,
  expired: EXIT.failed,
  invalidated: EXIT.failed,
  consumed: EXIT.failed,
};
