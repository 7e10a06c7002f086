/** What the processes of a turn have in their environment. */
import { shimEnvironment } from '../fence/shim.js';
import type { Storage } from '../git/storage.js';
import type { Held } from '../lease/hold.js';
import { MARKER } from '../lease/processes.js';

/** The shim's variables, PATH among them, and the marker by which a process is found. */
export function turnEnvironment(
  storage: Storage,
  { stageDir }: Pick<Held, 'stageDir'>,
  { turn, marker }: { readonly turn: string; readonly marker: string | undefined },
): Record<string, string> {
  const shim = shimEnvironment(storage, { turn, stageDir });
  return marker === undefined ? shim : { ...shim, [MARKER]: marker };
}
