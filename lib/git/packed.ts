/**
 * The file `packed-refs`, read only: git alone writes it (`git pack-refs`, gc), always whole and by rename.
 *
 * The bytes are kept and searched as they are, so one ref costs one search and no parse; they are read again when the
 * file's identity (inode, size, times) changed. Callers read a ref's loose file first: git packs before it prunes, so
 * a ref that is in neither is not there.
 */
import { readFileSync, statSync } from 'node:fs';
import { errno } from './disk.js';

export class PackedRefs {
  readonly #path: string;
  #seen = '';
  #bytes: Buffer = Buffer.alloc(0);

  constructor(path: string) {
    this.#path = path;
  }

  read(ref: string): string | null {
    const bytes = this.#load();
    const at = bytes.indexOf(` ${ref}\n`);
    return at === -1 ? null : bytes.toString('latin1', bytes.lastIndexOf(10, at) + 1, at);
  }

  /** Name and object id of every packed ref that begins with `prefix`, in the file's order. */
  *list(prefix: string): Iterable<[string, string]> {
    const bytes = this.#load();
    const sought = ` ${prefix}`;
    for (let at = bytes.indexOf(sought); at !== -1; at = bytes.indexOf(sought, at)) {
      const end = bytes.indexOf(10, at);
      const start = bytes.lastIndexOf(10, at) + 1;
      const oid = bytes.toString('latin1', start, at);
      if (/^[0-9a-f]+$/.test(oid)) yield [bytes.toString('utf8', at + 1, end), oid];
      at = end;
    }
  }

  #load(): Buffer {
    const found = statSync(this.#path, { bigint: true, throwIfNoEntry: false });
    const seen =
      found === undefined
        ? ''
        : [found.ino, found.size, found.mtimeNs, found.ctimeNs].map((part) => part.toString()).join(' ');
    if (seen !== this.#seen) {
      this.#bytes = seen === '' ? Buffer.alloc(0) : readAll(this.#path);
      this.#seen = seen;
    }
    return this.#bytes;
  }
}

function readAll(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if (errno(error) === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}
