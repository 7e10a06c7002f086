/**
 * Runs a program under strace(1) and gives its file system calls, git's and every other child's included.
 *
 * strace stops one thread at a time at the entry and the end of a call, so the order of the lines is an order in which
 * the calls may have happened; a call stands where it ended. All strings are printed in hex (`-xx`), so that a path or a
 * content can hold any byte and a line is split without guessing. Bytes are kept as latin1 text: one character, one byte.
 */
import { spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';

/** One system call that ended without an error (an access of a fault point: with one). */
export interface Call {
  readonly thread: number;
  readonly name: string;
  readonly args: readonly string[];
  readonly result: number;
}

const CALLS = [
  ...['open', 'openat', 'creat', 'close', 'dup', 'dup2', 'dup3', 'fcntl', 'lseek'],
  ...['write', 'writev', 'pwrite64', 'pwritev', 'pwritev2', 'truncate', 'ftruncate', 'fallocate'],
  ...['copy_file_range', 'sendfile', 'splice', 'mmap', 'fsync', 'fdatasync'],
  ...['rename', 'renameat', 'renameat2', 'link', 'linkat', 'unlink', 'unlinkat', 'symlink', 'symlinkat'],
  ...['mkdir', 'mkdirat', 'rmdir', 'chmod', 'fchmod', 'fchmodat'],
  ...['chdir', 'fchdir', 'clone', 'clone3', 'fork', 'vfork', 'execve', 'access', 'faccessat', 'faccessat2'],
];

/** Longest single write that is recorded whole; a longer one is an error when the trace is read. */
const LONGEST_WRITE = 64 << 20;

export interface StraceOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Where strace writes; removed when it has been read. */
  readonly file: string;
  /** More of strace's own options, such as an `inject=` that delays a call. */
  readonly more?: readonly string[];
}

export interface Straced {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly calls: readonly Call[];
}

export async function strace(command: readonly string[], options: StraceOptions): Promise<Straced> {
  const args = ['-f', '-y', '-xx', '-s', String(LONGEST_WRITE), '--seccomp-bpf', '-e', 'signal=none'];
  args.push('-e', `trace=${CALLS.map((name) => `?${name}`).join(',')}`, ...(options.more ?? []));
  args.push('-o', options.file, '--', ...command);
  // io_uring writes no line in a trace of system calls.
  const env = { ...options.env, UV_USE_IO_URING: '0' };
  const child = spawn('strace', args, { cwd: options.cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  const calls = parseTrace(readFileSync(options.file, 'latin1'));
  rmSync(options.file);
  return { code, stdout, stderr, calls };
}

/**
 * The calls of a trace in the order of their ends, those that failed or never ended left out, but for access. A flush beside which other
 * calls were made has a `flushing` where it began.
 */
export function parseTrace(text: string): Call[] {
  const unfinished = new Map<number, string>();
  const calls: Call[] = [];
  for (const line of text.split('\n')) {
    const match = /^(\d+)\s+/.exec(line);
    if (match === null) continue;
    const thread = Number(match[1]);
    const rest = line.slice(match[0].length);
    const whole = joined(rest, thread, unfinished);
    const call = whole === undefined ? begun(thread, rest) : parseCall(thread, whole);
    if (call !== undefined) calls.push(call);
  }
  return calls;
}

const UNFINISHED = ' <unfinished ...>';

function joined(line: string, thread: number, unfinished: Map<number, string>): string | undefined {
  if (line.endsWith(UNFINISHED)) {
    unfinished.set(thread, line.slice(0, -UNFINISHED.length));
    return undefined;
  }
  const resumed = /^<\.\.\. \S+ resumed>/.exec(line);
  if (resumed === null) return line;
  const start = unfinished.get(thread) ?? '';
  unfinished.delete(thread);
  return start + line.slice(resumed[0].length);
}

function begun(thread: number, line: string): Call | undefined {
  const args = /^f(?:data)?sync\((.*) <unfinished \.\.\.>$/.exec(line)?.[1];
  return args === undefined ? undefined : { thread, name: 'flushing', args: splitArgs(args), result: 0 };
}

function parseCall(thread: number, line: string): Call | undefined {
  const open = line.indexOf('(');
  const end = line.lastIndexOf(' = ');
  if (open < 0 || end < 0) return undefined;
  const name = line.slice(0, open);
  const result = /^(?:0x)?[0-9a-f]+/.exec(line.slice(end + 3));
  // A fault point is an access of a file that does not exist.
  if (result === null && !/access/.test(name)) return undefined;
  const inner = line.slice(open + 1, line.lastIndexOf(')', end));
  return { thread, name, args: splitArgs(inner), result: result === null ? -1 : Number(result[0]) };
}

/** Arguments at the top level; commas inside `{}` and `[]` do not count, and a string holds only hex. */
function splitArgs(inner: string): string[] {
  const args: string[] = [];
  let depth = 0;
  let start = 0;
  for (const match of inner.matchAll(/[{}[\],]/g)) {
    if (match[0] === '{' || match[0] === '[') depth += 1;
    else if (match[0] === '}' || match[0] === ']') depth -= 1;
    else if (depth === 0) {
      args.push(inner.slice(start, match.index).trim());
      start = match.index + 1;
    }
  }
  args.push(inner.slice(start).trim());
  return args;
}

/** The bytes of a quoted hex string, as latin1 text. */
export function quoted(arg: string | undefined): string {
  const match = /^"((?:\\x[0-9a-f]{2})*)"$/.exec(arg ?? '');
  if (match === null) throw new Error(`strace did not print a whole string: ${(arg ?? '').slice(-80)}`);
  return unhex(match[1] ?? '');
}

/** All bytes of the vectors of a writev. */
export function vectors(arg: string | undefined): string {
  return [...(arg ?? '').matchAll(/iov_base=("[^"]*"(?:\.\.\.)?)/g)]
    .map((match) => quoted(match[1]))
    .join('');
}

export interface Descriptor {
  /** -1 for AT_FDCWD. */
  readonly fd: number;
  /** What the descriptor was open on, at the time of the call; undefined when that name is gone. */
  readonly path: string | undefined;
}

export function descriptor(arg: string | undefined): Descriptor {
  const match = /^(\d+|AT_FDCWD)(?:<((?:\\x[0-9a-f]{2})*)>)?(\(deleted\))?/.exec(arg ?? '');
  if (match === null) throw new Error(`not a descriptor in a trace: ${arg ?? ''}`);
  const fd = match[1] === 'AT_FDCWD' ? -1 : Number(match[1]);
  const path = match[2] === undefined || match[3] !== undefined ? undefined : unhex(match[2]);
  return { fd, path };
}

function unhex(text: string): string {
  return Buffer.from(text.replaceAll('\\x', ''), 'hex').toString('latin1');
}
