/**
 * What of a turn cannot be read any more: a report comes without it and names it, and a repair that would have to know it is refused.
 */
import { DurableError, hasCode, isLoss } from '../errors.js';
import type { Loss, RepairAction } from './document.js';

export class Losses {
  readonly #found = new Map<string, Loss>();

  /** Each once, in the order in which they were met. */
  get all(): readonly Loss[] {
    return [...this.#found.values()];
  }

  /** What `read` gives; `otherwise` where an object that it needs is lost, which is `what` in the report. */
  async met<T>(what: string, otherwise: T, read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      if (!isLoss(error)) throw error;
      const { oid } = error.fields;
      const state = hasCode(error, 'object-missing') ? 'missing' : 'damaged';
      this.#found.set(`${what} ${oid}`, { what, oid, state });
      return otherwise;
    }
  }
}

/** As `met`; where nobody collects losses they are thrown. */
export function meeting<T>(
  losses: Losses | undefined,
  { what, otherwise }: { readonly what: string; readonly otherwise: T },
  read: () => Promise<T>,
): Promise<T> {
  return losses === undefined ? read() : losses.met(what, otherwise, read);
}

/** Throws 'object-missing' for a repair that moves files, where it is not known which, or where to. */
export function refuseLossy(action: RepairAction, lost: readonly Loss[]): void {
  const [first] = lost;
  if (action === 'keep' || first === undefined) return;
  const { oid, what } = first;
  throw new DurableError('object-missing', { oid, needed: what, instead: 'git durable recover --keep' });
}
