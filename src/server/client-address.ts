import { type BlockList, isIP, isIPv6 } from 'node:net';

/**
 * Finds the address that a request came from, as wrong sign-ins and streams are counted by it. Only a peer in `trusted`
 * may name another: then it is the last address of `X-Forwarded-For` outside `trusted`. What stands before that one was
 * written by the client itself. Of IPv6 only the first 64 bits count, because one client has all addresses behind them.
 */
export function clientAddress(peer: string, forwarded: string, trusted: BlockList): string {
  const own = addressOf(peer);
  if (!isIn(trusted, own)) return networkOf(own);
  const hops = forwarded.split(',').map((hop) => addressOf(withoutPort(hop.trim())));
  const client = hops.findLast((hop) => !isIn(trusted, hop)) ?? own;
  return networkOf(isIP(client) === 0 ? own : client);
}

/** Some proxies add the port of the connection: a client that takes another port must not count as another client. */
function withoutPort(hop: string): string {
  return /^\[([^\]]*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([^:]*):\d+$/.exec(hop)?.[1] ?? hop;
}

/** One spelling for each address: an IPv4 address that is written as IPv6 becomes IPv4 again. */
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
