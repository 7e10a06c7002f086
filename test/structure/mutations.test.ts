/** The mutants of the long drill run in a suite of their own: what they change must be there, or nobody notices that it is not. */
import test from 'ava';
import { occurrences } from '../helpers/mutant.js';
import * as mutations from '../helpers/mutations.js';

for (const [name, patches] of Object.entries(mutations)) {
  test(`what the mutant ${name} changes occurs exactly once in this build`, (t) => {
    for (const patch of patches) t.is(occurrences(patch), 1, `${String(patch.find)} in ${patch.file}`);
  });
}
