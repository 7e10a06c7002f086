/** In milliseconds, longer than an agent takes for anything here, on a machine with much else to do. */
export const BOUND_MS = 240_000;
