/**
 * A benchmark is a file `test/bench/<name>.bench.ts` that exports `measure(): Promise<Row[]>`; `npm run bench` runs all
 * of them one after another and prints one table. Only ratios are judged: both sides are measured in the same run, in
 * turns, and compared by their medians, since the machine is never quiet.
 */
export interface Row {
  /** The promise, in words. */
  readonly what: string;
  /** Ours and what it is held against, in the unit named by `unit`. */
  readonly ours: number;
  readonly base: number | null;
  readonly unit: string;
  /** Ours by base, or ours itself where there is no base. */
  readonly ratio: number;
  readonly limit: number;
  /** Whether a value must stay below the limit (times, sizes) or reach it (rates); null: reported only. */
  readonly rule: 'at most' | 'at least' | null;
}

/** Milliseconds of one run. */
export async function timed(run: () => unknown): Promise<number> {
  const start = performance.now();
  await run();
  return performance.now() - start;
}

export interface Rounds {
  readonly rounds?: number;
  /** First rounds, not counted. */
  readonly warm?: number;
  /** Before each round, not measured. */
  readonly before?: () => unknown;
}

/** Runs both sides in turns and gives their median milliseconds. */
export async function inTurns(
  ours: () => unknown,
  base: () => unknown,
  { rounds = 11, warm = 2, before = () => undefined }: Rounds = {},
): Promise<{ ours: number; base: number }> {
  const times: { ours: number[]; base: number[] } = { ours: [], base: [] };
  for (let round = 0; round < rounds + warm; round += 1) {
    await before();
    const mine = await timed(ours);
    const other = await timed(base);
    if (round < warm) continue;
    times.ours.push(mine);
    times.base.push(other);
  }
  return { ours: median(times.ours), base: median(times.base) };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** A row whose ratio must stay below the limit. */
export function ratioRow(
  what: string,
  { ours, base }: { ours: number; base: number },
  limit: number,
  unit = 'ms',
): Row {
  return { what, ours, base, unit, ratio: ours / base, limit, rule: 'at most' };
}
