/** `codex app-server`: JSON-RPC, a line each, on standard input and output. */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { RealAgent } from '../../../cli/drill/agents/launch.js';
import { at, isRecord } from '../json.js';

type Answer = Readonly<Record<string, unknown>>;

export class CodexServer {
  /** Questions of the server to its client, of which none is answered. */
  readonly asked: string[] = [];
  readonly pid: number;
  readonly #child: ReturnType<RealAgent['serving']>;
  readonly #waiting = new Map<unknown, (answer: Answer) => void>();
  readonly #over: Promise<void>;
  #last = 0;

  private constructor(child: ReturnType<RealAgent['serving']>) {
    this.#child = child;
    this.pid = child.pid ?? 0;
    child.stderr.resume();
    this.#over = new Promise((done) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        const said: unknown = JSON.parse(line);
        if (!isRecord(said)) return;
        if (said['method'] === 'turn/completed') done();
        if (typeof said['method'] === 'string' && said['id'] !== undefined) this.asked.push(said['method']);
        else this.#waiting.get(said['id'])?.(said);
      });
    });
  }

  /** Trusts the hooks of this place, in a CODEX_HOME that is the test's own: what a person does in its terminal. */
  static async open(agent: RealAgent, dir: string): Promise<CodexServer> {
    const server = new CodexServer(agent.serving(['app-server']));
    await server.#call('initialize', { clientInfo: { name: 'test', version: '1' } });
    server.#say({ method: 'initialized' });
    const hooks = records(
      at(records(at(await server.#call('hooks/list', { cwds: [dir] }), 'data'))[0], 'hooks'),
    );
    if (hooks.length === 0) throw new Error('Codex lists no hook of ours');
    const value: Record<string, unknown> = Object.fromEntries(
      hooks.map((hook) => [String(hook['key']), { trusted_hash: hook['currentHash'] }]),
    );
    const edits = [{ keyPath: 'hooks.state', value, mergeStrategy: 'upsert' }];
    await server.#call('config/batchWrite', { edits, reloadUserConfig: true });
    return server;
  }

  /** A turn with this prompt, which may ask. */
  async begin(dir: string, text: string): Promise<void> {
    const started = await this.#call('thread/start', {
      cwd: dir,
      approvalPolicy: 'on-request',
      sandbox: 'workspace-write',
    });
    const threadId = at(started, 'thread', 'id');
    await this.#call('turn/start', { threadId, input: [{ type: 'text', text, text_elements: [] }] });
  }

  async turnIsOver(): Promise<void> {
    await this.#over;
  }

  async kill(): Promise<void> {
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }

  #say(message: object): void {
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  async #call(method: string, params: object): Promise<unknown> {
    this.#last += 1;
    const id = this.#last;
    const answer = new Promise<Answer>((done) => this.#waiting.set(id, done));
    this.#say({ id, method, params });
    const { result, error } = await answer;
    if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  }
}

const records = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? value.filter(isRecord) : [];
