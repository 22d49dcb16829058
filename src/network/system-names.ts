import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';

/** The names of a hosts file, in lower case, each with its addresses in the order of the file. */
export type Hosts = ReadonlyMap<string, readonly string[]>;

/**
 * What of a `resolv.conf` counts: `servers` as Node takes them, none where the file names none; `search` are the
 * domains that a name with fewer than `ndots` dots is looked for in first.
 */
export type ResolvConf = { servers: readonly string[]; search: readonly string[]; ndots: number };

/** As the C library limits them. */
const MAX_SEARCH = 6;
const MAX_NDOTS = 15;

/** Reads a hosts file: an address and its names on each line. */
export function parseHosts(text: string): Hosts {
  const hosts = new Map<string, string[]>();
  for (const [address = '', ...names] of wordsOf(text, /#.*/)) {
    if (isIP(address) === 0) continue;
    for (const name of names) {
      const key = name.toLowerCase();
      hosts.set(key, [...(hosts.get(key) ?? []), address]);
    }
  }
  return hosts;
}

/** Reads a `resolv.conf`: of `nameserver` lines all count, of `search` and `domain` the last one, of `options` `ndots`. */
export function parseResolvConf(text: string): ResolvConf {
  const servers: string[] = [];
  let search: string[] = [];
  let ndots = 1;
  for (const [word, ...values] of wordsOf(text, /[#;].*/)) {
    if (word === 'nameserver') servers.push(...values.slice(0, 1).filter(isNameServer));
    if (word === 'search' || word === 'domain') {
      search = values.map((domain) => domain.replace(/^\.+|\.+$/g, '')).filter((domain) => domain !== '');
    }
    if (word !== 'options') continue;
    for (const value of values) {
      const given = /^ndots:(\d+)$/.exec(value)?.[1];
      if (given !== undefined) ndots = Math.min(Number(given), MAX_NDOTS);
    }
  }
  return { servers, search: search.slice(0, MAX_SEARCH), ndots };
}

/** An address, or one in brackets with a port. */
function isNameServer(text: string): boolean {
  const address = /^\[([^\]]+)\]:\d{1,5}$/.exec(text)?.[1] ?? text;
  return isIP(address) !== 0;
}

function wordsOf(text: string, comment: RegExp): string[][] {
  return text
    .split('\n')
    .map((line) => line.replace(comment, '').trim())
    .filter((line) => line !== '')
    .map((line) => line.split(/\s+/));
}

/** The two files by which a system names other hosts, read again when they change. A file that is not there is empty. */
export class SystemNames {
  readonly #hosts: () => Hosts;
  readonly #resolvConf: () => ResolvConf;

  constructor(folder: string) {
    this.#hosts = fileReader(join(folder, 'hosts'), parseHosts);
    this.#resolvConf = fileReader(join(folder, 'resolv.conf'), parseResolvConf);
  }

  get hosts(): Hosts {
    return this.#hosts();
  }

  /** The same object for as long as the file stays as it is. */
  get resolvConf(): ResolvConf {
    return this.#resolvConf();
  }
}

/** Small local files: read at once, for a thread of the pool may be what is missing. */
function fileReader<T>(path: string, parse: (text: string) => T): () => T {
  let read: { version: string; value: T } | null = null;
  return () => {
    const stat = statSync(path, { throwIfNoEntry: false });
    const version = stat === undefined ? '' : `${stat.ino} ${stat.mtimeMs} ${stat.size}`;
    if (read?.version !== version) read = { version, value: parse(textOf(path)) };
    return read.value;
  };
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
