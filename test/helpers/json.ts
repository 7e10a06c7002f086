/** Reading what another program printed. */
import { isRecord } from '../../cli/drill/agents/json.js';

export { isRecord };

/** The value at a path of names; undefined where one is missing. */
export function at(value: unknown, ...names: readonly string[]): unknown {
  return names.reduce<unknown>((inner, name) => (isRecord(inner) ? inner[name] : undefined), value);
}
