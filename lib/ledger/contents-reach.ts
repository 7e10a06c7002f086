/**
 * Is every tree and file there that contents commits reach? One git looks for all of a batch, each object once; only where
 * something is missing are the commits asked one by one, for the first event that is lost with it.
 *
 * That an object is there is looked for. With `bytes` each is read too, once, through one git for all of a batch, and has to have
 * the id that its bytes give; what the journal still has is put back.
 */
import { hasCode, isDurableError } from '../errors.js';
import type { Storage } from '../git/storage.js';
import type { ContentsFinding, Waiting } from './contents-check.js';

interface Reached {
  /** What is there, to a path it is at. */
  readonly objects: ReadonlyMap<string, string>;
  readonly missing: readonly string[];
  /** What git says when it cannot go on, at a tree that is damaged. */
  readonly broken: string | null;
}

export class Reach {
  readonly #storage: Storage;
  readonly #bytes: boolean;
  /** Read already, and what is wrong with them; null: nothing. */
  readonly #read = new Map<string, string | null>();

  constructor(storage: Storage, { bytes }: { readonly bytes: boolean }) {
    this.#storage = storage;
    this.#bytes = bytes;
  }

  /** Oldest first. Errors: 'git-missing'. */
  async check(commits: readonly Waiting[]): Promise<ContentsFinding[]> {
    if (commits.length === 0) return [];
    const whole = await this.#reached(commits);
    const lost = new Set<string>();
    for (const oid of whole.missing) if (!(await this.#isHealed(oid))) lost.add(oid);
    const isDamaged = this.#bytes && (await this.#readAll(whole.objects));
    if (lost.size === 0 && whole.broken === null && !isDamaged) return [];
    const findings: ContentsFinding[] = [];
    const told = new Set<string>();
    for (const one of commits) {
      if (told.has(one.oid)) continue;
      told.add(one.oid);
      const { missing, broken, objects } = await this.#reached([one]);
      const named = missing.filter((oid) => lost.has(oid));
      const { seq, as, oid } = one;
      if (broken !== null)
        findings.push({ seq, code: 'contents-damaged', detail: `${as} ${oid}: ${broken}` });
      for (const gone of named)
        findings.push({ seq, code: 'contents-missing', detail: `${gone} of ${as} ${oid} is missing` });
      for (const [object, path] of objects) {
        const wrong = this.#read.get(object) ?? null;
        if (wrong === null) continue;
        const what = path === '' ? object : `'${path}' (${object})`;
        findings.push({ seq, code: 'contents-damaged', detail: `${what} of ${as} ${oid}: ${wrong}` });
      }
    }
    return findings;
  }

  /** True when one of them is damaged. */
  async #readAll(objects: ReadonlyMap<string, string>): Promise<boolean> {
    const unread = [...objects.keys()].filter((oid) => !this.#read.has(oid));
    for (let at = 0; at < unread.length;) {
      try {
        for await (const { oid } of this.#storage.objects.readMany(unread.slice(at))) {
          this.#read.set(oid, null);
          at += 1;
        }
      } catch (error) {
        // The object at which reading stopped; go on after it.
        const oid = unread[at];
        if (!hasCode(error, 'object-damaged') || oid === undefined) throw error;
        this.#read.set(oid, error.fields.detail);
        at += 1;
      }
    }
    return [...objects.keys()].some((oid) => (this.#read.get(oid) ?? null) !== null);
  }

  async #reached(commits: readonly Waiting[]): Promise<Reached> {
    const args = ['rev-list', '--objects', '--no-walk', '--missing=print', '--stdin'];
    const input = Buffer.from(commits.map(({ oid }) => `${oid}\n`).join(''));
    const { code, stdout, stderr } = await this.#storage.git.run(args, { input });
    const missing = [...stdout.toString('latin1').matchAll(/^\?([0-9a-f]+)$/gm)].map(
      (match) => match[1] ?? '',
    );
    const listed = [...stdout.toString('utf8').matchAll(/^([0-9a-f]+)(?: (.*))?$/gm)];
    const objects = new Map(listed.map(([, oid = '', path = '']) => [oid, path]));
    return { objects, missing, broken: code === 0 ? null : (stderr.trim().split('\n').at(-1) ?? '') };
  }

  /** The journal may have it: reading puts it back. */
  async #isHealed(oid: string): Promise<boolean> {
    try {
      return (await this.#storage.objects.read(oid)) !== undefined;
    } catch (error) {
      if (isDurableError(error)) return false;
      throw error;
    }
  }
}
