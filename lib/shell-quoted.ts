/** A word as a POSIX shell reads it back unchanged, whatever is in it (POSIX.1-2017, Shell Command Language, 2.2.2). */
export const shellQuoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;
