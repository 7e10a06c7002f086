/** Builds that break a promise each: the drill must notice every one of them. */
import type { Patch } from './mutant.js';

/** Files change before anything of it is recorded, and nothing is afterwards. */
export const WITHOUT_PREPARED: readonly Patch[] = [
  { file: 'lib/files/transaction.js', find: 'await this.#prepare();', replace: '' },
  {
    file: 'lib/files/transaction.js',
    find: "await this.#append({ type: 'transaction.committed', transaction: this.#id, by: 'writer' });",
    replace: '',
  },
];
