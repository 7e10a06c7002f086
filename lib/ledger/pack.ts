import type { Storage } from '../git/storage.js';
export async function packJournal(_s: Storage): Promise<void> { return; }
