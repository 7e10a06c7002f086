/**
 * Commands as texts name them and as calls recorded them: whether one is the other, and what an exit code says of it.
 *
 * A recorded line may hold more than the command that a text names (`cd web && npm test 2>&1 | tail -3`), and its one exit code
 * is of the line. So a code is taken as the command's only where the shell's rules say so; everything else is 'unclear', which
 * accuses nobody. Pure; no shell is parsed beyond quotes and `&&`, `||`, `;`, `|` and newlines.
 */
export interface RecordedCommand {
  readonly invocation: string;
  /** As a shell would be given it; null for a call that is no command. */
  readonly line: string | null;
  readonly state: 'proposed' | 'started' | 'finished' | 'failed' | 'denied';
  readonly exit: number | null;
}

export type Outcome = 'passed' | 'failed' | 'unclear';

/** Whether a code span is a command: a program that is known as one, or a line that was recorded. */
export function isCommand(text: string, recorded: readonly RecordedCommand[]): boolean {
  const words = wordsOf(text);
  const [first = ''] = words;
  if (words.length === 0 || text.length > 500) return false;
  if (ALONE.has(first)) return true;
  if (words.length > 1 && (PROGRAMS.has(first) || /^\.\/\S/.test(first))) return true;
  return words.length > 1 && recorded.some(({ line }) => line !== null && holds(line, text));
}

/** True when the line runs the command: one of its parts begins with the command's words. */
export function holds(line: string, command: string): boolean {
  return partsOf(line).some((part) => beginsWith(part.words, wordsOf(command)));
}

/** What a recorded line's end says of a command in it; null when the line does not run it, or never ran. */
export function outcomeOf(recorded: RecordedCommand, command: string): Outcome | null {
  const wanted = wordsOf(command);
  return outcomeWhere(recorded, (words) => beginsWith(words, wanted));
}

/** The same of a test runner in the line, whichever. */
export function testOutcomeOf(recorded: RecordedCommand): Outcome | null {
  return outcomeWhere(recorded, isRunner);
}

function outcomeWhere(
  recorded: RecordedCommand,
  isMeant: (words: readonly string[]) => boolean,
): Outcome | null {
  const { line, state } = recorded;
  if (line === null || state === 'denied' || state === 'proposed') return null;
  const parts = partsOf(line);
  const at = parts.findLastIndex(({ words }) => isMeant(words));
  if (at === -1) return null;
  const code = codeOf(recorded);
  if (code === null || /(?:^|[^&>])&\s*(?:$|\w)/.test(line)) return 'unclear';
  const isLast = at === parts.length - 1;
  if (parts.length === 1) return code === 0 ? 'passed' : 'failed';
  // After it only `&&`: a code of 0 is everybody's. Joined otherwise, the code is the last one's.
  if (code === 0 && parts.slice(at).every(({ then }) => then === '&&' || then === '')) return 'passed';
  const isAlone = parts.slice(0, at).every(({ then }) => then === ';');
  return isLast && isAlone && code !== 0 ? 'failed' : 'unclear';
}

/** How a call ended: its exit code, or what its host said of it; null when nobody knows. */
function codeOf({ exit, state }: RecordedCommand): number | null {
  if (exit !== null) return exit;
  return state === 'finished' ? 0 : null;
}

/** May run tests, by a word in it. */
export function mayTest(line: string): boolean {
  return partsOf(line).some(({ words }) => !isHarmless(words) && TESTING.test(words.join(' ')));
}

/** Runs tests, and nothing else that could fail: a test runner, or a build tool told to test. */
function isRunner(words: readonly string[]): boolean {
  const [program = '', second = ''] = words;
  if (RUNNERS.has(program)) return true;
  if (/^(?:npm|pnpm|yarn|bun)$/.test(program)) return /^test(?:[:-]|$)/.test(second);
  if (
    /^(?:make|just|task|rake|mix|swift|dotnet|cargo|go|deno|mvn|gradle|\.\/gradlew|\.\/mvnw)$/.test(program)
  )
    return /^(?:test|tests|spec)$/.test(second);
  return program === 'node' && second === '--test';
}

/** May run anything, tests included: a script, a task of a build tool, a program that nobody knows here. */
export function isOpaque(line: string): boolean {
  return partsOf(line).some(({ words }) => !words.every((word) => word === '') && !isHarmless(words));
}

function isHarmless([program = '', second = '', third = '']: readonly string[]): boolean {
  if (HARMLESS.has(program)) return true;
  if (/^(?:npm|pnpm|yarn|bun)$/.test(program))
    return /^(?:i|ci|install|add|remove|ls|list|view|outdated|build|lint|format|typecheck|start|dev)$/.test(
      second === 'run' ? third : second,
    );
  if (/^(?:cargo|go|dotnet)$/.test(program))
    return /^(?:build|fmt|vet|clippy|get|mod|add|run|doc|format|restore|version)$/.test(second);
  return false;
}

/** The exact line of a call, from its arguments as they were kept; null when it is no command. */
export function lineOf(tool: string, args: string): string | null {
  const value = parsed(args);
  if (isWords(value)) return tool === 'run' || tool === 'shell' ? shellText(value) : null;
  if (typeof value !== 'object' || value === null) return null;
  const said = new Map(Object.entries(value));
  for (const name of ['command', 'cmd', 'script']) {
    const found: unknown = said.get(name);
    if (typeof found === 'string') return found;
    if (isWords(found)) return shellText(found);
  }
  return null;
}

/** `sh -c TEXT` is TEXT. */
function shellText(words: readonly string[]): string {
  const [program = '', option = '', script] = words;
  const isShell = /(?:^|\/)(?:ba|da|z|k)?sh$/.test(program) && /^-[a-z]*c$/.test(option);
  if (isShell && script !== undefined) return script;
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word}'`)).join(' ');
}

const isWords = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((word) => typeof word === 'string');

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A call's arguments may be any text.
    return null;
  }
}

interface Part {
  readonly words: readonly string[];
  /** What joins it to the next part; '' at the end. */
  readonly then: string;
}

/** The simple commands of a line, without `cd`, which only says where. */
function partsOf(line: string): Part[] {
  const parts: Part[] = [];
  let text = '';
  const flush = (then: string): void => {
    const words = wordsOf(text);
    if (words.length > 0 && words[0] !== 'cd') parts.push({ words, then });
    // Elsewhere than in front, its code may be the line's.
    else if (words.length > 0 && then !== '&&' && parts.length > 0) parts.push({ words: [''], then });
    text = '';
  };
  for (const [piece] of line.matchAll(/'[^']*'|"(?:[^"\\]|\\.)*"|&&|\|\|?|;|\n|\\.|[^'"&|;\n\\]+|[^]/g)) {
    if (/^(?:&&|\|\|?|;|\n)$/.test(piece)) flush(piece === '\n' ? ';' : piece);
    else text += piece;
  }
  flush('');
  return parts;
}

/** Words without what stands around a program: a prompt, settings, `sudo`, redirections; and one spelling for several. */
function wordsOf(text: string): string[] {
  const words = text
    .replace(/^\s*\$\s+/, '')
    .replace(/\s(?:\d?>>?|\d?<|&>)\s*(?:&\d|[^\s&|;]+)/g, ' ')
    .split(/\s+/)
    .filter((word) => word !== '');
  while (/^(?:[A-Z_][A-Z0-9_]*=.*|sudo|env|time|command|exec|npx|bunx)$/.test(words[0] ?? '')) words.shift();
  if (words[0] === 'timeout') words.splice(0, 2);
  const [first = '', second = '', third = ''] = words;
  const program = first.replace(/^(?:\.\/)?(?:node_modules\/\.bin|\.venv\/bin|venv\/bin)\//, '');
  if (/^python3?$/.test(program) && second === '-m') return [third, ...words.slice(3)];
  const isRunner = /^(?:npm|pnpm|yarn|bun)$/.test(program);
  if (isRunner && second === 'run' && third !== '') return [program, third, ...words.slice(3)];
  if (program === 'npm' && (second === 't' || second === 'tst')) return [program, 'test', ...words.slice(2)];
  return words.length === 0 ? [] : [program, ...words.slice(1)];
}

function beginsWith(words: readonly string[], wanted: readonly string[]): boolean {
  return wanted.length > 0 && wanted.every((word, index) => word === words[index]);
}

const TESTING =
  /(?:^|[\s:/._-])(?:tests?|spec|specs|e2e|pytest|py\.test|unittest|jest|vitest|mocha|ava|tap|karma|cypress|playwright|ctest|rspec|phpunit|tox|nox|nextest)(?=$|[\s:/._-])/;

const set = (words: string): ReadonlySet<string> => new Set(words.split(' '));

const RUNNERS = set('pytest jest vitest mocha ava tap karma ctest rspec phpunit unittest tox nox');

/** Programs that are commands when words follow. */
const PROGRAMS = set(
  'npm npx pnpm yarn bun bunx node deno python python3 pip pip3 uv poetry cargo go make cmake gradle mvn dotnet bundle rake ruby php composer swift xcodebuild mix sbt lein stack cabal zig bazel just docker podman kubectl terraform git gh bash sh zsh sudo curl tsc eslint prettier jest vitest mocha ava pytest ruff mypy black tox nox ctest rspec phpunit shellcheck gofmt rustfmt pre-commit',
);

/** Programs whose name alone is a command. */
const ALONE = set('pytest tsc eslint jest vitest mocha ava mypy tox nox ctest rspec phpunit make');

/** Programs that run no tests and no scripts. */
const HARMLESS = set(
  'git ls cat head tail grep rg egrep find fd sed awk echo printf pwd mkdir touch cp mv rm ln chmod wc sort uniq diff which type stat file tree test [ true false cut tr jq du df date env export tsc eslint prettier ruff black mypy gofmt rustfmt rustc pip pip3 gh curl wget sleep kill ps',
);
