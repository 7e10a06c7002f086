/**
 * Reading objects with `git cat-file --batch`: packs, alternates, both object formats. What a partial clone has not
 * fetched is missing here; nothing is fetched.
 *
 * `CatFile` is one git process that stays. It is started at the first read, keeps no program alive while nothing is
 * asked (it is unreferenced), ends with this process, and sees objects and packs that appear after its start, since git
 * looks again before it says "missing". Answers come in the order of the questions. When git dies on a damaged object
 * the question it was at fails with 'object-damaged', and the ones behind it are asked again of a new git; a git that
 * was killed is asked that one once more.
 *
 * `streamObjects` is a process of its own for a whole list, with back pressure: a consumer that stops early ends it.
 */
import { Socket } from 'node:net';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import type { Writable, Readable } from 'node:stream';
import { DurableError } from '../errors.js';
import { isObjectType, type GitObject } from './objects-format.js';
import type { Git } from './process.js';

/** Reading what we recorded never goes to the network: not one that is slow, asks for a password, or is not there. */
const LOCAL_ONLY = { env: { GIT_NO_LAZY_FETCH: '1', GIT_ALLOW_PROTOCOL: '' } };

interface Question {
  readonly oid: string;
  readonly resolve: (object: GitObject | undefined) => void;
  readonly reject: (error: Error) => void;
  asked: number;
}

export class CatFile {
  readonly #git: Git;
  #running: Running | undefined;

  constructor(git: Git) {
    this.#git = git;
  }

  /** Undefined: git has no such object. Throws 'object-damaged', 'git-missing'. */
  read(oid: string): Promise<GitObject | undefined> {
    return new Promise((resolve, reject) => {
      this.#ask({ oid, resolve, reject, asked: 0 });
    });
  }

  /** Ends the process once it has answered what was asked; a later read starts another. */
  async close(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    await running?.finish();
  }

  #ask(question: Question): void {
    if (this.#running === undefined) {
      const running = new Running(this.#git, (end) => {
        if (this.#running === running) this.#running = undefined;
        this.#goOn(end);
      });
      this.#running = running;
    }
    this.#running.ask(question);
  }

  /** Git ended while questions were open: the first is the one it died of, unless it was killed. */
  #goOn({ open: [first, ...others], killed, said }: End): void {
    if (first === undefined) return;
    if (killed && first.asked === 1) this.#ask(first);
    else if (notFetched(said)) first.resolve(undefined);
    else first.reject(new DurableError('object-damaged', { oid: first.oid, detail: said || 'git ended' }));
    for (const question of others) this.#ask(question);
  }
}

/**
 * In a partial clone git before 2.44 knows no way not to ask the remote, and ends when it may not: that object is not
 * here, which is no damage. Its exit code is the same, so the text of its message has to tell.
 */
const notFetched = (said: string): boolean => said.includes('promisor remote');

interface End {
  readonly open: readonly Question[];
  readonly killed: boolean;
  readonly said: string;
}

/** One git process and the questions it has not answered yet. */
class Running {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #open: Question[] = [];
  readonly #ended: Promise<void>;

  constructor(git: Git, ended: (end: End) => void) {
    const child = git.start(['cat-file', '--batch'], LOCAL_ONLY);
    const answers = new Answers();
    let said = '';
    this.#child = child;
    child.stdin.on('error', () => undefined); // its death is told by 'close'
    child.stderr.on('data', (chunk: Buffer) => (said = `${said}${chunk.toString('utf8')}`.slice(-2000)));
    child.stdout.on('data', (chunk: Buffer) => {
      answers.add(chunk);
      for (let answer = answers.next(); answer !== null; answer = answers.next()) this.#answer(answer);
    });
    child.on('error', (error) => {
      const missing = new DurableError('git-missing', { detail: error.message }, error);
      for (const { reject } of this.#open.splice(0)) reject(missing);
    });
    this.#ended = new Promise((resolve) => {
      child.on('close', (code) => {
        ended({ open: this.#open.splice(0), killed: code === null, said: said.trim() });
        resolve();
      });
    });
    keepAlive(child, false);
  }

  ask(question: Question): void {
    if (this.#open.length === 0) keepAlive(this.#child, true);
    question.asked += 1;
    this.#open.push(question);
    this.#child.stdin.write(`${question.oid}\n`);
  }

  async finish(): Promise<void> {
    keepAlive(this.#child, true);
    this.#child.stdin.end();
    await this.#ended;
  }

  #answer(answer: Answer): void {
    const question = this.#open.shift();
    if (this.#open.length === 0) keepAlive(this.#child, false);
    question?.resolve('missing' in answer ? undefined : { type: answer.type, body: answer.body });
  }
}

export type Answer =
  | { readonly oid: string; readonly type: GitObject['type']; readonly body: Buffer }
  | { readonly oid: string; readonly missing: true };

/**
 * Answers for `oids` in their order. Throws 'object-damaged' when git dies, naming the object that it was asked for:
 * the one after the last answer.
 */
export async function* streamObjects(git: Git, oids: readonly string[]): AsyncGenerator<Answer, void> {
  const child = git.start(['cat-file', '--batch', '--buffer'], LOCAL_ONLY);
  const ended = new Promise<string>((resolve) => {
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => (said = `${said}${chunk.toString('utf8')}`.slice(-2000)));
    child.on('error', (error) => {
      resolve(error.message);
    });
    child.on('close', () => {
      resolve(said.trim());
    });
  });
  child.stdin.on('error', () => undefined); // its death is told by 'close'
  child.stdin.end(`${oids.join('\n')}\n`);
  let given = 0;
  try {
    const answers = new Answers();
    for await (const chunk of child.stdout) {
      answers.add(bytesOf(chunk));
      for (let answer = answers.next(); answer !== null; answer = answers.next()) {
        given += 1;
        yield answer;
      }
    }
    const said = await ended;
    const oid = oids[given];
    if (oid !== undefined) throw new DurableError('object-damaged', { oid, detail: said });
  } finally {
    child.kill();
    await ended;
  }
}

/** Cuts the byte stream of `--batch` into answers: `<oid> <type> <size>\n<body>\n`, or `<oid> missing\n`. */
class Answers {
  #chunks: Buffer[] = [];
  #length = 0;
  #needed = 0;
  #head: { oid: string; type: GitObject['type']; size: number } | null = null;

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
  }

  /** Null until a whole answer is there. */
  next(): Answer | null {
    if (this.#length === 0 || this.#length < this.#needed) return null;
    const bytes = this.#joined();
    if (this.#head !== null) return this.#body(bytes, this.#head);
    const end = bytes.indexOf(10);
    if (end === -1) {
      this.#needed = bytes.length + 1;
      return null;
    }
    const [oid = '', type = '', size = ''] = bytes.toString('latin1', 0, end).split(' ');
    this.#keep(bytes.subarray(end + 1));
    if (!isObjectType(type)) return { oid, missing: true };
    this.#head = { oid, type, size: Number(size) };
    this.#needed = this.#head.size + 1;
    return this.next();
  }

  #body(bytes: Buffer, head: { oid: string; type: GitObject['type']; size: number }): Answer | null {
    if (bytes.length < head.size + 1) return null;
    this.#head = null;
    this.#keep(bytes.subarray(head.size + 1));
    return { oid: head.oid, type: head.type, body: bytes.subarray(0, head.size) };
  }

  #keep(rest: Buffer): void {
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#length = rest.length;
    this.#needed = 0;
  }

  #joined(): Buffer {
    const [first] = this.#chunks;
    if (first !== undefined && this.#chunks.length === 1) return first;
    const joined = Buffer.concat(this.#chunks);
    this.#chunks = [joined];
    return joined;
  }
}

function bytesOf(chunk: unknown): Buffer {
  if (Buffer.isBuffer(chunk)) return chunk;
  throw new TypeError('git answered with something else than bytes');
}

/** A program may end while nothing is asked; it must not while something is. */
function keepAlive(child: ChildProcessWithoutNullStreams, keep: boolean): void {
  for (const part of [child, child.stdin, child.stdout, child.stderr]) {
    if (isPipe(part) || part === child) {
      if (keep) part.ref();
      else part.unref();
    }
  }
}

function isPipe(part: ChildProcessWithoutNullStreams | Writable | Readable): part is Socket {
  return part instanceof Socket;
}
