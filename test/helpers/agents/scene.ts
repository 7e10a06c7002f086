/** A real agent with our hooks, its scripted model and a repository; and what is asked of them from outside. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import type { AgentName } from '../../../lib/agents/step.js';
import { document, events, type Line } from '../events.js';
import { report, type Report } from '../interrupted-run.js';
import { at } from '../json.js';
import { until } from '../processes.js';
import { scratch, type Scratch } from '../scratch.js';
import { BOUND_MS } from '../../../cli/drill/agents/bound.js';
import { endAllOf, RealAgent } from '../../../cli/drill/agents/launch.js';
import { ScriptedModel } from '../../../cli/drill/agents/scripted-model.js';
import { agentProgram } from './pinned.js';

/** As a turn holds the shell up until `release`: its pid stands in `at`. */
export const HOLD = 'echo $$ > at; while [ ! -e go ]; do sleep 0.1; done';
/** A shell that would run for long. */
export const LONG = 'echo $$ > at; exec sleep 600';

export class Scene {
  readonly place: Scratch;
  readonly model: ScriptedModel;
  readonly #t: ExecutionContext;

  private constructor(t: ExecutionContext, place: Scratch, model: ScriptedModel) {
    this.#t = t;
    this.place = place;
    this.model = model;
  }

  static async open(t: ExecutionContext): Promise<Scene> {
    const place = scratch(t);
    const model = await ScriptedModel.start(place);
    t.teardown(() => {
      model.end();
      endAllOf(place);
    });
    return new Scene(t, place, model);
  }

  /** The agent, with the hooks that `init` installs. */
  agent(name: AgentName): RealAgent {
    const { place, model } = this;
    const log = (line: string): void => {
      this.#t.log(line);
    };
    const agent = new RealAgent({ name, program: agentProgram(name), place, model, log });
    document(this.place, ['init', '--agent', name]);
    return agent;
  }

  /** A file of the work tree; null where there is none. */
  file(path: string): string | null {
    try {
      return readFileSync(join(this.place.dir, path), 'utf8');
    } catch {
      return null;
    }
  }

  /** Waits until a file of the work tree has a whole line in it, and gives that line. */
  async line(path: string): Promise<string> {
    await until(`a line in ${path}`, () => this.file(path)?.endsWith('\n') === true, BOUND_MS);
    return (this.file(path) ?? '').trimEnd();
  }

  events(type: string): Line[] {
    return events(this.place, '--type', type);
  }

  /** The exact arguments that a call was recorded with, read by git alone. */
  argumentsOf(proposed: Line | undefined): unknown {
    const text = this.place.git('cat-file', 'blob', String(at(proposed?.['args'], 'oid')));
    return JSON.parse(text);
  }

  /** The one interrupted turn that `recover` tells of. */
  interrupted(): Report['interrupted'][number] {
    const all = report(this.place).interrupted;
    const [one] = all;
    if (one === undefined || all.length > 1) throw new Error(`${String(all.length)} interrupted turns`);
    return one;
  }
}
