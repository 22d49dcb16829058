import type { LookupAddress, RecordWithTtl } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { readFileSync, statSync } from 'node:fs';
import { isIP, type LookupFunction } from 'node:net';
import { join } from 'node:path';
import { BoundedMap, bytesOfTexts, CACHES } from '../domain/caches.ts';
import { withTimeout } from '../with-timeout.ts';

/** Names of a hosts file, in lower case, each with its addresses in the order of the file. */
type Hosts = ReadonlyMap<string, readonly string[]>;

/** Used part of a `resolv.conf`. `servers`: none when absent; `search`: tried first for names with fewer than `ndots` dots. */
type ResolvConf = { servers: readonly string[]; search: readonly string[]; ndots: number };

/** Limits of the C library. */
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

/** Reads a `resolv.conf`: all `nameserver` lines, the last of `search` and `domain`, and `ndots` of `options`. */
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

/** The system's two files of host names, read again when they change. A missing file counts as empty. */
class SystemNames {
  readonly #hosts: () => Hosts;
  readonly #resolvConf: () => ResolvConf;

  constructor(folder: string) {
    this.#hosts = fileReader(join(folder, 'hosts'), parseHosts);
    this.#resolvConf = fileReader(join(folder, 'resolv.conf'), parseResolvConf);
  }

  get hosts(): Hosts {
    return this.#hosts();
  }

  /** The same object as long as the file does not change. */
  get resolvConf(): ResolvConf {
    return this.#resolvConf();
  }
}

/** Small local files, read synchronously: the pool's threads may all be busy. */
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

/** A name without an address (`ENOTFOUND`), or one that no name server answers now (`EAI_AGAIN`). */
class NameError extends Error {
  readonly code: 'ENOTFOUND' | 'EAI_AGAIN';

  constructor(code: NameError['code'], why: string) {
    super(
      code === 'ENOTFOUND' ? 'the host name has no address' : `the host name could not be resolved: ${why}`,
    );
    this.name = 'NameError';
    this.code = code;
  }
}

/** `timeoutMs` covers a whole lookup; `folder` holds the system's `hosts` and `resolv.conf`. */
type ResolverOptions = { timeoutMs: number; folder?: string };

const SYSTEM_FOLDER = '/etc';

/** Longest use of an answer; the name server's time to live counts as well. */
const ANSWER_MS = 10_000;

/** Time before a name without an address, or without an answer, is requested again. */
const FAILURE_MS = 2_000;

/** Number of requests to the servers, with a doubling wait. */
const TRIES = 3;
const MAX_TRY_MS = 2_000;

/** Once one family has addresses, wait for those of the other (RFC 8305). */
const OTHER_FAMILY_MS = 50;

/** Codes of a name server for a missing name, or a missing address of this family. */
const NOTHING_THERE: ReadonlySet<string> = new Set(['ENOTFOUND', 'ENODATA']);

type ResolvedAddresses = { addresses: LookupAddress[]; goodMs: number };
/** Bytes of an address in memory, or of an error. */
const ADDRESS_BYTES = 200;

type CachedLookup = { untilMs: number; outcome: LookupAddress[] | NameError };

/**
 * Resolves names for one party, so that its dead name servers delay nobody else: `dns.lookup` has four threads for
 * the whole process, this has its own sockets. It uses `hosts`, `localhost`, and the name servers of `resolv.conf`
 * with its search list. Answers are stored for seconds. Concurrent requests for a name get the same answer.
 */
export class NameResolver {
  readonly #timeoutMs: number;
  readonly #names: SystemNames;
  readonly #cache = new BoundedMap<string, CachedLookup>({
    ...CACHES.hostNames,
    bytesOf: (name, { outcome }) =>
      bytesOfTexts(name) + ADDRESS_BYTES * (outcome instanceof NameError ? 1 : outcome.length),
  });
  readonly #underWay = new Map<string, Promise<LookupAddress[]>>();
  #current: { conf: ResolvConf; resolver: Resolver } | null = null;
  #closed = false;

  constructor({ timeoutMs, folder = SYSTEM_FOLDER }: ResolverOptions) {
    this.#timeoutMs = timeoutMs;
    this.#names = new SystemNames(folder);
  }

  /** Lookup for sockets; returns all addresses, IPv4 first. Fails with a `NameError`. */
  readonly lookup: LookupFunction = (hostname, options, callback) => {
    this.resolve(hostname).then(
      (found) => {
        const fitting = found.filter(({ family }) => !options.family || options.family === family);
        const [first] = fitting;
        if (first === undefined) callback(new NameError('ENOTFOUND', ''), []);
        else if (options.all === true) callback(null, fitting);
        else callback(null, first.address, first.family);
      },
      (error) => callback(error, []),
    );
  };

  /** Addresses of a name, at least one. Throws a `NameError`. */
  async resolve(hostname: string): Promise<LookupAddress[]> {
    if (isIP(hostname) !== 0) return [addressOf(hostname)];
    const name = hostname.toLowerCase();
    const addresses = this.#names.hosts.get(name.replace(/\.$/, '')) ?? loopbackOf(name);
    if (addresses !== null) return addresses.map(addressOf);
    const stored = this.#cache.get(name);
    if (stored !== undefined && performance.now() < stored.untilMs) return outcomeOf(stored);
    return this.#underWay.get(name) ?? this.#start(name);
  }

  close(): void {
    this.#closed = true;
    this.#current?.resolver.cancel();
  }

  #start(name: string): Promise<LookupAddress[]> {
    const work = this.#search(name).finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, work);
    return work;
  }

  async #search(name: string): Promise<LookupAddress[]> {
    const stored = await this.#inTime(name);
    this.#cache.set(name, stored);
    return outcomeOf(stored);
  }

  async #inTime(name: string): Promise<CachedLookup> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(new NameError('EAI_AGAIN', 'no answer in time')), this.#timeoutMs);
    try {
      const { addresses, goodMs } = await Promise.race([this.#query(name), late]);
      return { untilMs: performance.now() + goodMs, outcome: addresses };
    } catch (error) {
      const outcome = error instanceof NameError ? error : new NameError('EAI_AGAIN', String(error));
      return { untilMs: performance.now() + FAILURE_MS, outcome };
    } finally {
      clearTimeout(timer);
    }
  }

  async #query(name: string): Promise<ResolvedAddresses> {
    const conf = this.#names.resolvConf;
    for (const candidate of candidates(name, conf)) {
      if (this.#closed) throw new NameError('EAI_AGAIN', 'given up');
      const found = await this.#bothFamilies(candidate, this.#resolverFor(conf));
      if (found !== null) return found;
    }
    throw new NameError('ENOTFOUND', '');
  }

  #resolverFor(conf: ResolvConf): Resolver {
    if (this.#current?.conf === conf) return this.#current.resolver;
    const resolver = new Resolver({
      timeout: Math.max(1, Math.min(MAX_TRY_MS, Math.ceil(this.#timeoutMs / (2 ** TRIES - 1)))),
      tries: TRIES,
    });
    // Without any, Node uses the servers that it finds itself.
    if (conf.servers.length > 0) resolver.setServers(conf.servers);
    this.#current = { conf, resolver };
    return resolver;
  }

  /** Null when the name has no address of either family. */
  async #bothFamilies(name: string, resolver: Resolver): Promise<ResolvedAddresses | null> {
    const answers: FamilyAnswer[] = [];
    const add = (answer: FamilyAnswer): void => void answers.push(answer);
    const both = [
      answered(resolver.resolve4(name, { ttl: true })).then(add),
      answered(resolver.resolve6(name, { ttl: true })).then(add),
    ];
    await Promise.race(both);
    const otherMs = answers.some(({ records }) => records.length > 0) ? OTHER_FAMILY_MS : this.#timeoutMs;
    await withTimeout(Promise.all(both), otherMs);
    const records = answers.flatMap((answer) => answer.records);
    const addresses = records.map(({ address }) => addressOf(address)).sort((a, b) => a.family - b.family);
    const goodMs = Math.min(ANSWER_MS, ...records.map(({ ttl }) => ttl * 1_000));
    if (addresses.length > 0) return { addresses, goodMs };
    const failure = answers.find(({ code }) => code !== null && !NOTHING_THERE.has(code));
    if (failure !== undefined) throw new NameError('EAI_AGAIN', String(failure.code));
    return null;
  }
}

type FamilyAnswer = { records: RecordWithTtl[]; code: string | null };

async function answered(question: Promise<RecordWithTtl[]>): Promise<FamilyAnswer> {
  try {
    return { records: await question, code: null };
  } catch (error) {
    return { records: [], code: error instanceof Error && 'code' in error ? String(error.code) : 'unknown' };
  }
}

/** Full names that a name may mean, in the order of the requests. */
function candidates(name: string, { search, ndots }: ResolvConf): string[] {
  if (name.endsWith('.')) return [name.slice(0, -1)];
  const searched = search.map((domain) => `${name}.${domain}`);
  const dots = name.split('.').length - 1;
  return dots >= ndots ? [name, ...searched] : [...searched, name];
}

/** `localhost` and all names below it are this machine, whatever a server answers (RFC 6761). */
function loopbackOf(name: string): string[] | null {
  return /(^|\.)localhost\.?$/.test(name) ? ['127.0.0.1', '::1'] : null;
}

function addressOf(address: string): LookupAddress {
  return { address, family: isIP(address) };
}

function outcomeOf({ outcome }: CachedLookup): LookupAddress[] {
  if (outcome instanceof NameError) throw outcome;
  return outcome;
}
