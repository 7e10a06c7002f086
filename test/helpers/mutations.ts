/** Builds that break one promise each: the drill must notice every one of them. */
import type { Patch } from './mutant.js';

/** Files change before anything of it is recorded, and nothing is recorded afterwards. */
export const WITHOUT_PREPARED: readonly Patch[] = [
  { file: 'lib/files/transaction.js', find: 'await this.#prepare();', replace: '' },
  {
    file: 'lib/files/transaction.js',
    find: "await this.#append({ type: 'transaction.committed', transaction: this.#id, by: 'writer' });",
    replace: '',
  },
];

export const WITHOUT_BEFORE_IMAGE: readonly Patch[] = [
  {
    file: 'lib/files/transaction.js',
    find: 'return { path, before, after, permissions };',
    replace: 'return { path, before: null, after, permissions };',
  },
];

/** What a call is about to do is recorded when it has done it. */
export const INTENT_AFTER_EFFECT: readonly Patch[] = [
  {
    file: 'lib/turn/turn.js',
    find: 'const { invocation, ...open } = this.#opened(await this.#started(call, index));',
    replace:
      'const proposed = await proposeCall(this.#context, call, { index }); const { invocation, ...open } = this.#opened(proposed);',
  },
  {
    file: 'lib/turn/turn.js',
    find: 'const value = await this.#steps.within(invocation, () => run({ invocation }));',
    replace:
      'const value = await this.#steps.within(invocation, () => run({ invocation })); await this.#context.append(() => [proposed.draft, startedDraft(this.#context, proposed.invocation, null)]);',
  },
];

export const ARGUMENTS_NORMALIZED: readonly Patch[] = [
  {
    file: 'lib/turn/call.js',
    find: "exactBytes('arguments', argsText(call.args))",
    replace: "exactBytes('arguments', argsText(call.args).normalize('NFD'))",
  },
];

export const FOREIGN_OVERWRITTEN: readonly Patch[] = [
  { file: 'lib/recovery/aim.js', find: "left.state === 'foreign'", replace: 'false' },
];

export const ROLLED_BACK_ONE_STEP: readonly Patch[] = [
  {
    file: 'lib/recovery/aim.js',
    find: "action === 'roll-back' ? left.before : left.target",
    replace: "action === 'roll-back' ? touched.steps.at(-1).before : left.target",
  },
];

export const PARTIAL_TAKEN_FOR_WRITTEN: readonly Patch[] = [
  {
    file: 'lib/files/verdict.js',
    find: "judged('partial', step.expected)",
    replace: "judged('written', step.expected)",
  },
];

export const DRIFT_UNSEEN: readonly Patch[] = [
  {
    file: 'lib/recovery/drift.js',
    find: 'return [...extra, ...missing',
    replace: 'return [...[], ...missing',
  },
];

/** An answer that was used is there to be used again. */
export const ANSWER_NOT_USED_UP: readonly Patch[] = [
  {
    file: 'lib/ledger/fold.js',
    find: /state: 'consumed',\s*consumed: recorded,/,
    replace: 'consumed: recorded,',
  },
];

/** A request is made anew, whatever was answered. */
export const ANSWER_FORGOTTEN: readonly Patch[] = [
  {
    file: 'lib/decisions/approval.js',
    find: "return found === undefined ? { kind: 'none' } : standingOf(found);",
    replace: "return { kind: 'none' };",
  },
];

export const CONFLICT_BLOCKS_NOTHING: readonly Patch[] = [
  { file: 'lib/files/conflict.js', find: 'if (path !== undefined)', replace: 'if (false)' },
];

export const ORPHANS_LEFT: readonly Patch[] = [
  { file: 'lib/lease/ending.js', find: 'process.kill(one.pid, name);', replace: ';' },
];

export const ORPHANS_UNSEEN: readonly Patch[] = [
  {
    file: 'lib/lease/processes.js',
    find: 'if (belongs(entry, search, { byPid, markers }))',
    replace: 'if (false)',
  },
];
