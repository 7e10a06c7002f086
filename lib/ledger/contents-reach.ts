/**
 * Is every tree and file there that contents commits reach? One git looks for all of a batch, each object once; only where
 * something is missing are the commits asked one by one, for the first event that is lost with it.
 *
 * That an object is there is looked for, not that its bytes are right: whoever reads one checks that (lib/git/objects.ts), and
 * `git fsck` checks all.
 */
import { isDurableError } from '../errors.js';
import type { Storage } from '../git/storage.js';
import type { ContentsFinding, Waiting } from './contents-check.js';

interface Reached {
  readonly missing: readonly string[];
  /** What git says when it cannot go on, at a tree that is damaged. */
  readonly broken: string | null;
}

export class Reach {
  readonly #storage: Storage;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  /** Oldest first. Errors: 'git-missing'. */
  async check(commits: readonly Waiting[]): Promise<ContentsFinding[]> {
    if (commits.length === 0) return [];
    const whole = await this.#reached(commits);
    const lost = new Set<string>();
    for (const oid of whole.missing) if (!(await this.#isHealed(oid))) lost.add(oid);
    if (lost.size === 0 && whole.broken === null) return [];
    const findings: ContentsFinding[] = [];
    const told = new Set<string>();
    for (const one of commits) {
      if (told.has(one.oid)) continue;
      told.add(one.oid);
      const { missing, broken } = await this.#reached([one]);
      const named = missing.filter((oid) => lost.has(oid));
      const { seq, as, oid } = one;
      if (broken !== null)
        findings.push({ seq, code: 'contents-damaged', detail: `${as} ${oid}: ${broken}` });
      for (const gone of named)
        findings.push({ seq, code: 'contents-missing', detail: `${gone} of ${as} ${oid} is missing` });
    }
    return findings;
  }

  async #reached(commits: readonly Waiting[]): Promise<Reached> {
    const args = ['rev-list', '--objects', '--no-walk', '--missing=print', '--stdin'];
    const input = Buffer.from(commits.map(({ oid }) => `${oid}\n`).join(''));
    const { code, stdout, stderr } = await this.#storage.git.run(args, { input });
    const missing = [...stdout.toString('latin1').matchAll(/^\?([0-9a-f]+)$/gm)].map(
      (match) => match[1] ?? '',
    );
    return { missing, broken: code === 0 ? null : (stderr.trim().split('\n').at(-1) ?? '') };
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
