/** `1 file`, `2 files`. For nouns whose plural takes an s. */
export function quantity(count: number, noun: string): string {
  return `${String(count)} ${noun}${count === 1 ? '' : 's'}`;
}
