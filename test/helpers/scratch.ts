/**
 * A place of its own for a test: temporary folder, HOME, git identity and config; removed when the test ends.
 * The folder's name has a space, a quote and a non-ASCII letter, since users' paths have.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';

export interface Scratch {
  /** The work tree of a fresh repository (or an empty folder with `repository: false`). */
  readonly dir: string;
  /** Parent of everything of this test: put a second clone or a file outside the work tree here. */
  readonly top: string;
  /** A full environment for child processes: own HOME, no GIT_*, no NODE_EXTRA_CA_CERTS. */
  readonly env: Record<string, string>;
  /** Runs git in `dir`, must succeed; trimmed standard output. */
  readonly git: (...args: string[]) => string;
  /** Runs any program in `dir`. */
  readonly run: (program: string, args: readonly string[], options?: RunOptions) => Ran;
  /** Writes a file below `dir`, folders included. */
  readonly write: (path: string, content: string | Uint8Array, mode?: number) => void;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string | Uint8Array;
}

export interface Ran {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ScratchOptions {
  readonly repository?: boolean;
  readonly objectFormat?: 'sha1' | 'sha256';
  /** Makes a first commit of one file, README. Default true. */
  readonly commit?: boolean;
  /** Where to make it; default the system's temporary folder. */
  readonly parent?: string;
}

export function scratch(t: Pick<ExecutionContext, 'teardown'>, options: ScratchOptions = {}): Scratch {
  const top = mkdtempSync(join(options.parent ?? tmpdir(), "durable 'té "));
  t.teardown(() => removeTree(top));
  return scratchAt(top, options);
}

const REMOVALS = 300;
const BETWEEN_MS = 100;

/**
 * Removes a folder in which a keeper may be writing its last event still, its holder having been killed a moment ago. One
 * that cannot be removed stays in the temporary folder: that is no failure of what was tested.
 */
export async function removeTree(top: string): Promise<void> {
  for (let left = REMOVALS; left > 0; left -= 1) {
    try {
      rmSync(top, { recursive: true, force: true });
      return;
    } catch {
      await pause(BETWEEN_MS);
    }
  }
}

export function scratchAt(top: string, options: ScratchOptions = {}): Scratch {
  const dir = join(top, 'work');
  const home = join(top, 'home');
  mkdirSync(dir);
  mkdirSync(home);
  writeFileSync(
    join(home, '.gitconfig'),
    '[user]\n\tname = Test\n\temail = test@example.invalid\n[init]\n\tdefaultBranch = main\n[commit]\n\tgpgSign = false\n',
  );
  const env = scratchEnv(home);
  const run = (program: string, args: readonly string[], more: RunOptions = {}): Ran => {
    const child = spawnSync(program, args, {
      cwd: more.cwd ?? dir,
      env: { ...env, ...more.env },
      maxBuffer: 1 << 30,
      ...(more.input === undefined ? {} : { input: more.input }),
    });
    const failed = child.error !== undefined && !isUnread(child.error) ? String(child.error) : null;
    return {
      code: child.status,
      signal: child.signal,
      stdout: failed === null ? child.stdout.toString('utf8') : '',
      stderr: failed ?? child.stderr.toString('utf8'),
    };
  };
  const git = (...args: string[]): string => {
    const ran = run('git', args);
    if (ran.code !== 0) throw new Error(`git ${args.join(' ')}: ${ran.stderr}`);
    return ran.stdout.replace(/\n$/, '');
  };
  const write = (path: string, content: string | Uint8Array, mode?: number): void => {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), content, mode === undefined ? {} : { mode });
  };
  if (options.repository !== false) {
    git('init', '-q', `--object-format=${options.objectFormat ?? 'sha1'}`);
    if (options.commit !== false) {
      write('README', 'hello\n');
      git('add', '--', 'README');
      git('commit', '-q', '-m', 'first');
    }
  }
  return { dir, top, env, git, run, write };
}

/** A program may end without having read all of its input. */
const isUnread = (error: Error): boolean => 'code' in error && error.code === 'EPIPE';

function scratchEnv(home: string): Record<string, string> {
  const env: Record<string, string> = {
    HOME: home,
    XDG_CONFIG_HOME: join(home, '.config'),
    TZ: 'UTC',
    LC_ALL: 'C',
  };
  const path = process.env['PATH'];
  if (path !== undefined) env['PATH'] = path;
  env['TMPDIR'] = tmpdir();
  return env;
}
