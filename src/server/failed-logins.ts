import { type BlockList, isIP, isIPv6 } from 'node:net';
import { BoundedMap, bytesOfTexts, CACHES } from '../domain/caches.ts';

const WINDOW_MS = 60_000;

/** The delay doubles with every failure of an address, between these bounds. */
const FIRST_MS = 100;
const LONGEST_MS = 5_000;

/** Number of wrong sign-ins of one address that wait for their answer at once. */
export const MAX_WAITING = 20;

/** Bytes of the counts of an address. */
const FAILURES_BYTES = 100;

type Failures = { count: number; untilMs: number; waiting: number };

/** Delays the answers to wrong sign-ins of each address. One address has no effect on another. */
export class FailedLogins {
  readonly #byAddress = new BoundedMap<string, Failures>({
    ...CACHES.failedLogins,
    bytesOf: (address) => FAILURES_BYTES + bytesOfTexts(address),
  });
  /** Each ends one wait; the longest wait comes first. Probes need the other connections. */
  readonly #waiting = new Set<() => void>();

  /** True when too many wrong sign-ins of an address wait: then no further token of it is checked. */
  isFull(address: string): boolean {
    return (this.#byAddress.peek(address)?.waiting ?? 0) >= MAX_WAITING;
  }

  /** Counts a wrong sign-in at once and waits for the delay of its answer. */
  async wait(address: string, nowMs: number): Promise<void> {
    const failures = this.#count(address, nowMs);
    const delayMs = Math.min(LONGEST_MS, FIRST_MS * 2 ** (failures.count - 1));
    failures.waiting += 1;
    const ended = Promise.withResolvers<void>();
    const timer = setTimeout(ended.resolve, delayMs).unref();
    this.#waiting.add(ended.resolve);
    const [longest] = this.#waiting;
    if (this.#waiting.size > CACHES.waitingSignIns.entries && longest !== undefined) {
      this.#waiting.delete(longest);
      longest();
    }
    await ended.promise;
    clearTimeout(timer);
    this.#waiting.delete(ended.resolve);
    failures.waiting -= 1;
  }

  #count(address: string, nowMs: number): Failures {
    const failures = this.#byAddress.peek(address) ?? { count: 0, untilMs: 0, waiting: 0 };
    failures.count = failures.untilMs > nowMs ? failures.count + 1 : 1;
    failures.untilMs = nowMs + WINDOW_MS;
    this.#byAddress.set(address, failures);
    return failures;
  }
}

/**
 * Finds the client address of a request, by which wrong sign-ins and streams are counted. Only a peer in `trusted` may name
 * another address: the last one of `X-Forwarded-For` outside `trusted`. The client itself wrote all hops before that one. Of
 * IPv6 only the first 64 bits count, because one client has all addresses behind them.
 */
export function clientAddress(peer: string, forwarded: string, trusted: BlockList): string {
  const own = addressOf(peer);
  if (!isIn(trusted, own)) return networkOf(own);
  const hops = forwarded.split(',').map((hop) => addressOf(withoutPort(hop.trim())));
  const client = hops.findLast((hop) => !isIn(trusted, hop)) ?? own;
  return networkOf(isIP(client) === 0 ? own : client);
}

/** Some proxies add the port of the connection. A client that takes another port must not count as another client. */
function withoutPort(hop: string): string {
  return /^\[([^\]]*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([^:]*):\d+$/.exec(hop)?.[1] ?? hop;
}

/** Gives each address one spelling: an IPv4 address that is written as IPv6 becomes IPv4 again. */
function addressOf(text: string): string {
  if (!isIPv6(text)) return text;
  // `URL` writes an address in one way only.
  const address = new URL(`http://[${text.replace(/%.*$/, '')}]/`).hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([\da-f]+):([\da-f]+)$/.exec(address) ?? [];
  if (high === undefined || low === undefined) return address;
  return [high, low].flatMap((group) => [...Buffer.from(group.padStart(4, '0'), 'hex')]).join('.');
}

function isIn(networks: BlockList, address: string): boolean {
  const version = isIP(address);
  return version !== 0 && networks.check(address, version === 4 ? 'ipv4' : 'ipv6');
}

function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = '', tail = ''] = address.split('::');
  const [first, last] = [head, tail].map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = Array.from({ length: 8 - (first?.length ?? 0) - (last?.length ?? 0) }, () => '0');
  return [...(first ?? []), ...zeros, ...(last ?? [])].slice(0, 4).join(':');
}
