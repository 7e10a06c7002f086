/** Turns that say what they did, of `run` and of a program that records its calls, and what `check` finds of it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openRepository, systemHost, type Claim, type Repository, type Turn } from '../../lib/index.js';
import { document } from './events.js';
import { durable } from './program.js';
import type { Scratch } from './scratch.js';

export interface Check {
  readonly turn: string;
  readonly verdict: string;
  readonly source: string | null;
  readonly findings: readonly { readonly code: string; readonly subject: string }[];
  readonly files: readonly { readonly path: string; readonly as: string; readonly result: string }[];
  readonly commands: readonly {
    readonly command: string;
    readonly result: string;
    readonly exit: number | null;
  }[];
  readonly tests: string | null;
  readonly unclaimed: readonly string[];
  readonly unclaimedCount: number;
  readonly missing: readonly string[];
  readonly named: readonly string[];
  readonly ran: readonly { readonly command: string; readonly exit: number | null }[];
  readonly tree: { readonly changed: number | null; readonly since: number | null };
}

export const check = (place: Scratch, ...words: string[]): Check =>
  document<Check>(place, ['check', ...words], { codes: [0, 5] });

export const codes = ({ findings }: Check): string[] =>
  findings.map(({ code, subject }) => `${code} ${subject}`);

/** `script` runs as a turn's agent, whose final text is `text`. */
export function said(place: Scratch, text: string, script: string): Check {
  writeFileSync(join(place.top, 'final text.md'), text);
  const words = [
    'run',
    '--result',
    '../result.md',
    '--',
    'sh',
    '-c',
    `${script}\ncp ../'final text.md' ../result.md`,
  ];
  const ran = durable(place, words);
  if (ran.code !== 0) throw new Error(ran.stderr);
  return check(place);
}

export function withFiles(place: Scratch, ...paths: string[]): void {
  for (const path of paths) place.write(path, `${path}\n`);
}

export const open = (place: Scratch): Promise<Repository> =>
  openRepository(place.dir, { ...systemHost(), env: place.env });

export const start = (repository: Repository): Promise<Turn> =>
  repository.startTurn({ objective: 'work', task: 'talk', keeper: false });

/** A call as an agent's hook records it: a command and its exit code. */
export async function command(turn: Turn, line: string, exit: number): Promise<void> {
  const call = await turn.begin({ tool: 'Bash', args: { command: line }, mutates: false });
  await call.end({ state: exit === 0 ? 'finished' : 'failed', exit });
}

export async function edit(place: Scratch, turn: Turn, path: string): Promise<void> {
  const bytes = Buffer.from(`${path} changed\n`);
  await turn.invoke({ tool: 'Edit', args: { path }, paths: [{ path, expected: bytes }] }, () => {
    place.write(path, bytes);
  });
}

/** One turn of a program that records its calls, checked through the binary. */
export async function told(
  place: Scratch,
  end: { readonly result?: string; readonly claim?: Claim; readonly checkpoint?: boolean },
  work: (turn: Turn) => Promise<void> = () => Promise.resolve(),
): Promise<Check> {
  const repository = await open(place);
  const turn = await start(repository);
  await work(turn);
  await turn.finish({ outcome: 'completed', ...end });
  await repository.close();
  return check(place);
}
