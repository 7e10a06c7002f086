/** Seeds of rounds in which something certain is tried, found by looking at what the drill draws from each. */
import { Chance } from '../../cli/drill/chance.js';
import { choosePlanting, type Planting } from '../../cli/drill/plant.js';
import { chooseAnswer, type Decision } from '../../cli/drill/successor.js';
import { chooseKill, writeScript, type Act } from '../../cli/drill/script.js';

export interface Drawn {
  readonly seed: number;
  readonly script: readonly Act[];
  /** Lines of the record at the kill. */
  readonly lines: number;
  readonly planted: Planting;
  readonly answer: Decision;
}

export function seedWhere(fits: (drawn: Drawn) => boolean, from = 1): number {
  for (let seed = from; seed < from + 100_000; seed += 1) {
    const chance = new Chance(String(seed));
    const script = writeScript(chance.split('script'));
    const { lines } = chooseKill(chance.split('kill'), script);
    const planted = choosePlanting(chance.split('plant'));
    const answer = chooseAnswer(chance.split('answer'));
    if (fits({ seed, script, lines, planted, answer })) return seed;
  }
  throw new RangeError('no such round');
}
