/**
 * System calls as operations on one folder: relative paths made whole, write positions followed, and each operation
 * attributed to the fault point it was done in (a git process: the point its parent was in when it started).
 *
 * A call that changes a file in a way that is not modelled (a shared writable mapping, sendfile, …) is an error, never
 * left out: the disk rebuilt from the recording would not be the disk.
 */
import { descriptor, quoted, vectors, type Call } from './strace.js';

/** Paths are absolute, bytes as latin1 text. */
export type Operation =
  | { readonly kind: 'create'; readonly path: string; readonly mode: number; readonly truncate: boolean }
  | { readonly kind: 'write'; readonly path: string; readonly at: number | 'end'; readonly bytes: Buffer }
  | { readonly kind: 'truncate'; readonly path: string; readonly size: number }
  | { readonly kind: 'chmod'; readonly path: string; readonly mode: number }
  | { readonly kind: 'rename' | 'link'; readonly from: string; readonly to: string }
  | { readonly kind: 'symlink'; readonly path: string; readonly target: string }
  | { readonly kind: 'mkdir'; readonly path: string; readonly mode: number }
  | { readonly kind: 'unlink' | 'rmdir' | 'flushing' | 'sync'; readonly path: string }
  | { readonly kind: 'said'; readonly line: string }
  | { readonly kind: 'point'; readonly point: string };

export interface Step {
  readonly operation: Operation;
  readonly thread: number;
  readonly process: number;
  /** The fault point the operation lies in, without `:before`; undefined outside of any. */
  readonly within: string | undefined;
}

interface Position {
  at: number;
  readonly append: boolean;
  /** The fault point that it was opened in. */
  readonly within: string | undefined;
}

interface Process {
  readonly id: number;
  cwd: string;
  readonly files: Map<number, Position>;
  readonly inherited: string | undefined;
  readonly points: string[];
}

const SAID = /^(?:begin|end|ack)\b.*\n$/;
const POINT = '/durable-point/';

/** The operations below `root` (absolute, no slash at the end), and what the program said on standard output. */
export function record(calls: readonly Call[], root: string, cwd: string): Step[] {
  return new Recorder(calls, bytes(root), bytes(cwd)).steps();
}

export const bytes = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');

class Recorder {
  readonly #calls: readonly Call[];
  readonly #root: string;
  readonly #parents = new Map<number, { parent: number; thread: boolean }>();
  readonly #processes = new Map<number, Process>();
  readonly #cwd: string;
  readonly #steps: Step[] = [];

  constructor(calls: readonly Call[], root: string, cwd: string) {
    this.#calls = calls;
    this.#root = root;
    this.#cwd = cwd;
    // A child's first line may stand before the line of the clone that made it.
    for (const { thread, name, args, result } of calls) {
      if (!/^(?:clone3?|v?fork)$/.test(name)) continue;
      this.#parents.set(result, { parent: thread, thread: args.join().includes('CLONE_THREAD') });
    }
  }

  steps(): Step[] {
    for (const call of this.#calls) {
      const process = this.#processOf(call.thread);
      for (const operation of this.#operations(call, process)) this.#keep(operation, call, process);
    }
    return this.#steps;
  }

  #processOf(thread: number): Process {
    const known = this.#processes.get(thread);
    if (known !== undefined) return known;
    const born = this.#parents.get(thread);
    const parent = born === undefined ? undefined : this.#processOf(born.parent);
    const process: Process =
      parent !== undefined && born?.thread === true
        ? parent
        : {
            id: thread,
            cwd: parent?.cwd ?? this.#cwd,
            files: new Map(parent?.files),
            inherited: parent === undefined ? undefined : within(parent),
            points: [],
          };
    this.#processes.set(thread, process);
    return process;
  }

  #keep(operation: Operation, call: Call, process: Process): void {
    if (operation.kind === 'point') follow(process, operation.point);
    const paths = pathsOf(operation).map((path) => this.#inside(path));
    if (paths.includes(false) && paths.includes(true))
      throw new Error(`a ${operation.kind} crosses the border of the recorded folder`);
    if (paths.includes(false)) return;
    const point = operation.kind === 'sync' ? flushPoint(process, call) : within(process);
    this.#steps.push({ operation, thread: call.thread, process: process.id, within: point });
  }

  #inside(path: string): boolean {
    return path === this.#root || path.startsWith(`${this.#root}/`);
  }

  #operations(call: Call, process: Process): Operation[] {
    const { name, args, result } = call;
    const at = (fd: string | undefined, path: string | undefined): string => {
      const dir = fd === undefined ? process.cwd : directory(fd, process);
      return absolute(dir, quoted(path));
    };
    switch (name) {
      case 'open':
        return opened(process, result, at(undefined, args[0]), args[1] ?? '', args[2]);
      case 'openat':
        return opened(process, result, at(args[0], args[1]), args[2] ?? '', args[3]);
      case 'creat':
        return opened(process, result, at(undefined, args[0]), 'O_WRONLY|O_CREAT|O_TRUNC', args[1]);
      case 'write':
      case 'writev':
        return this.#written(process, call);
      case 'pwrite64':
      case 'pwritev':
        return this.#writtenAt(call, Number(args[name === 'pwrite64' ? 3 : 3]));
      case 'rename':
      case 'link':
        return [{ kind: name, from: at(undefined, args[0]), to: at(undefined, args[1]) }];
      case 'renameat':
      case 'renameat2':
      case 'linkat':
        return [
          {
            kind: name === 'linkat' ? 'link' : 'rename',
            from: at(args[0], args[1]),
            to: at(args[2], args[3]),
          },
        ];
      case 'symlink':
        return [{ kind: 'symlink', path: at(undefined, args[1]), target: quoted(args[0]) }];
      case 'symlinkat':
        return [{ kind: 'symlink', path: at(args[1], args[2]), target: quoted(args[0]) }];
      case 'unlink':
      case 'rmdir':
        return [{ kind: name, path: at(undefined, args[0]) }];
      case 'unlinkat':
        return [{ kind: args[2] === 'AT_REMOVEDIR' ? 'rmdir' : 'unlink', path: at(args[0], args[1]) }];
      case 'mkdir':
        return [{ kind: 'mkdir', path: at(undefined, args[0]), mode: Number.parseInt(args[1] ?? '', 8) }];
      case 'mkdirat':
        return [{ kind: 'mkdir', path: at(args[0], args[1]), mode: Number.parseInt(args[2] ?? '', 8) }];
      case 'chmod':
        return [{ kind: 'chmod', path: at(undefined, args[0]), mode: Number.parseInt(args[1] ?? '', 8) }];
      case 'fchmodat':
        return [{ kind: 'chmod', path: at(args[0], args[1]), mode: Number.parseInt(args[2] ?? '', 8) }];
      case 'truncate':
        return [{ kind: 'truncate', path: at(undefined, args[0]), size: Number(args[1]) }];
      case 'access':
        return pointed(quoted(args[0]));
      case 'faccessat':
      case 'faccessat2':
        return pointed(quoted(args[1]));
      default:
        return this.#onDescriptor(call, process);
    }
  }

  #onDescriptor(call: Call, process: Process): Operation[] {
    const { name, args, result } = call;
    const path = (): string | undefined => descriptor(args[0]).path;
    const on = (make: (path: string) => Operation): Operation[] => {
      const found = path();
      return found === undefined ? [] : [make(found)];
    };
    switch (name) {
      case 'flushing':
        return on((found) => ({ kind: 'flushing', path: found }));
      case 'fsync':
      case 'fdatasync':
        return on((found) => ({ kind: 'sync', path: found }));
      case 'fchmod':
        return on((found) => ({ kind: 'chmod', path: found, mode: Number.parseInt(args[1] ?? '', 8) }));
      case 'ftruncate':
        return on((found) => ({ kind: 'truncate', path: found, size: Number(args[1]) }));
      case 'lseek': {
        const position = process.files.get(descriptor(args[0]).fd);
        if (position !== undefined) position.at = result;
        return [];
      }
      case 'dup':
      case 'dup2':
      case 'dup3':
      case 'fcntl': {
        if (name === 'fcntl' && !(args[1] ?? '').startsWith('F_DUPFD')) return [];
        const position = process.files.get(descriptor(args[0]).fd);
        if (position === undefined) process.files.delete(result);
        else process.files.set(result, position);
        return [];
      }
      case 'close':
        process.files.delete(descriptor(args[0]).fd);
        return [];
      case 'chdir':
        process.cwd = absolute(process.cwd, quoted(args[0]));
        return [];
      case 'fchdir':
        process.cwd = path() ?? process.cwd;
        return [];
      case 'mmap':
        if (/PROT_WRITE/.test(args[2] ?? '') && /MAP_SHARED/.test(args[3] ?? ''))
          this.#refuse(call, descriptorOrNone(args[4]));
        return [];
      case 'copy_file_range':
      case 'splice':
        this.#refuse(call, descriptorOrNone(args[2]));
        return [];
      case 'sendfile':
      case 'fallocate':
      case 'pwritev2':
        this.#refuse(call, path());
        return [];
      default:
        return [];
    }
  }

  #written(process: Process, { name, args, result }: Call): Operation[] {
    const { fd, path } = descriptor(args[0]);
    const content = (): string => (name === 'write' ? quoted(args[1]) : vectors(args[1])).slice(0, result);
    if (path === undefined || !this.#inside(path)) return fd === 1 ? said(content()) : [];
    const position = process.files.get(fd);
    if (position === undefined) throw new Error(`a write to ${path} through a descriptor nobody opened`);
    const at = position.append ? 'end' : position.at;
    position.at += result;
    return [{ kind: 'write', path, at, bytes: Buffer.from(content(), 'latin1') }];
  }

  #writtenAt({ name, args, result }: Call, at: number): Operation[] {
    const { path } = descriptor(args[0]);
    if (path === undefined || !this.#inside(path)) return [];
    const content = (name === 'pwrite64' ? quoted(args[1]) : vectors(args[1])).slice(0, result);
    return [{ kind: 'write', path, at, bytes: Buffer.from(content, 'latin1') }];
  }

  #refuse({ name }: Call, path: string | undefined): void {
    if (path !== undefined && this.#inside(path)) throw new Error(`${name} on ${path} is not modelled`);
  }
}

function opened(process: Process, fd: number, path: string, flags: string, mode?: string): Operation[] {
  process.files.set(fd, { at: 0, append: flags.includes('O_APPEND'), within: within(process) });
  if (flags.includes('O_TMPFILE')) throw new Error(`O_TMPFILE on ${path} is not modelled`);
  const truncate = flags.includes('O_TRUNC');
  if (!flags.includes('O_CREAT') && !truncate) return [];
  return [{ kind: 'create', path, mode: Number.parseInt(mode ?? '0', 8), truncate }];
}

function said(text: string): Operation[] {
  return SAID.test(text) ? [{ kind: 'said', line: text.trimEnd() }] : [];
}

function pointed(path: string): Operation[] {
  return path.startsWith(POINT) ? [{ kind: 'point', point: path.slice(POINT.length) }] : [];
}

function follow(process: Process, point: string): void {
  if (point.endsWith(':before')) process.points.push(point.slice(0, -':before'.length));
  else process.points.splice(process.points.lastIndexOf(point.slice(0, -':after'.length)), 1);
}

function within(process: Process): string | undefined {
  return process.points.at(-1) ?? process.inherited;
}

/** Several flushes may be under way, each in a thread of its own: one belongs to the point that its descriptor was opened for. */
function flushPoint(process: Process, { args }: Call): string | undefined {
  const opened = process.files.get(descriptor(args[0]).fd)?.within;
  const point = opened?.replace(/:write$/, ':fsync');
  return point !== undefined && process.points.includes(point) ? point : within(process);
}

function pathsOf(operation: Operation): string[] {
  if (operation.kind === 'rename' || operation.kind === 'link') return [operation.from, operation.to];
  return 'path' in operation ? [operation.path] : [];
}

function directory(arg: string, process: Process): string {
  const { fd, path } = descriptor(arg);
  return path ?? (fd === -1 ? process.cwd : '/');
}

function descriptorOrNone(arg: string | undefined): string | undefined {
  return /^\d/.test(arg ?? '') ? descriptor(arg).path : undefined;
}

function absolute(dir: string, path: string): string {
  const parts: string[] = [];
  for (const part of (path.startsWith('/') ? path : `${dir}/${path}`).split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return `/${parts.join('/')}`;
}
