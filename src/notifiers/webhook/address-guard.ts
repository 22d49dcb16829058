import { lookup as dnsLookup, type LookupAddress, type LookupOptions } from 'node:dns';
import { BlockList, isIP, isIPv4, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';

/** A connection was not made, because the address is one that receivers must not have. */
class RefusedAddressError extends Error {
  readonly code = 'ADDRESS_REFUSED';
}

/** IPv4 that is not the public internet (IANA special-purpose registry), and the metadata address of one cloud. */
const REFUSED_V4 = blockListOf('ipv4', [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
]);

/** All of IPv6 that is routed globally lies in here … */
const GLOBAL_V6 = blockListOf('ipv6', ['2000::/3']);

/** … except for protocol assignments with Teredo, documentation, and 6to4, which wraps an IPv4 address. */
const REFUSED_V6 = blockListOf('ipv6', ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']);

/** The prefixes whose last 32 bits are an IPv4 address that decides: IPv4-mapped, and the well-known NAT64 prefix. */
const EMBEDDING_V6 = blockListOf('ipv6', ['::ffff:0:0/96', '64:ff9b::/96']);

/** Whether an IP address is private, loopback, link-local, shared, multicast, reserved or a metadata address. */
export function isRefusedAddress(address: string): boolean {
  if (isIPv4(address)) return REFUSED_V4.check(address, 'ipv4');
  if (isIP(address) !== 6) return true;
  if (EMBEDDING_V6.check(address, 'ipv6')) return REFUSED_V4.check(embeddedV4(address), 'ipv4');
  return !GLOBAL_V6.check(address, 'ipv6') || REFUSED_V6.check(address, 'ipv6');
}

/**
 * A connector for undici that checks the address it connects to, after DNS, so that a name cannot point a receiver
 * at the inside of the network. Every connection of the pool goes through it.
 */
export function guardedConnector(options: buildConnector.BuildOptions): buildConnector.connector {
  const connect = buildConnector({ ...options, lookup: guardedLookup });
  return (target, callback) => {
    // A literal address is connected to without a lookup.
    if (isIP(target.hostname) !== 0 && isRefusedAddress(target.hostname)) {
      callback(refusedAddress([target.hostname]), null);
      return;
    }
    connect(target, callback);
  };
}

const guardedLookup: LookupFunction = (hostname, options, callback) => {
  const all: LookupOptions & { all: true } = { ...options, all: true };
  dnsLookup(hostname, all, (error, found) => {
    if (error) return callback(error, []);
    const allowed = found.filter(({ address }) => !isRefusedAddress(address));
    const [first] = allowed;
    if (first === undefined) return callback(refusedAddress(found.map(addressOf)), []);
    if (options.all === true) return callback(null, allowed);
    callback(null, first.address, first.family);
  });
};

function addressOf({ address }: LookupAddress): string {
  return address;
}

function refusedAddress(addresses: string[]): RefusedAddressError {
  const found = addresses.join(', ');
  return new RefusedAddressError(
    `private or reserved address (${found}); only allowPrivateNetwork permits it`,
  );
}

/** The last 32 bits of an IPv6 address in dotted form; `URL` writes an address in its shortest hexadecimal form. */
function embeddedV4(address: string): string {
  const groups = new URL(`http://[${address.replace(/%.*$/, '')}]/`).hostname.slice(1, -1).split(':');
  const [high = 0, low = 0] = groups.slice(-2).map((group) => Number.parseInt(group || '0', 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

function blockListOf(family: 'ipv4' | 'ipv6', subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [network = '', prefix] = subnet.split('/');
    list.addSubnet(network, Number(prefix), family);
  }
  return list;
}
