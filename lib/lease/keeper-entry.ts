/** The keeper's program; see keeper.ts. */
export {};
