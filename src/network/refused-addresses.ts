import { BlockList, isIP, isIPv4 } from 'node:net';

/** IPv4 outside the public internet: the IANA special-purpose registry (RFC 6890), multicast, and one cloud's metadata. */
const REFUSED_V4 = blockListOf('ipv4', [
  '0.0.0.0/8', // this network, RFC 791
  '10.0.0.0/8', // private, RFC 1918
  '100.64.0.0/10', // shared by carrier-grade NAT, RFC 6598
  '127.0.0.0/8', // loopback, RFC 1122
  '168.63.129.16/32', // metadata of Azure, a public address
  '169.254.0.0/16', // link-local, RFC 3927
  '172.16.0.0/12', // private, RFC 1918
  '192.0.0.0/24', // protocol assignments, RFC 6890
  '192.0.2.0/24', // documentation, RFC 5737
  '192.88.99.0/24', // relays of 6to4, RFC 7526
  '192.168.0.0/16', // private, RFC 1918
  '198.18.0.0/15', // benchmarks, RFC 2544
  '198.51.100.0/24', // documentation, RFC 5737
  '203.0.113.0/24', // documentation, RFC 5737
  '224.0.0.0/4', // multicast, RFC 5771
  '240.0.0.0/4', // reserved, RFC 1112, and broadcast, RFC 919
]);

const LOOPBACK_V4 = blockListOf('ipv4', ['127.0.0.0/8']);
const LOOPBACK_V6 = blockListOf('ipv6', ['::1/128']);

/**
 * Globally routed IPv6 (RFC 4291). So unspecified, loopback, IPv4-compatible, discard-only, segment routing,
 * unique-local, link-local, site-local and multicast addresses need no row of their own.
 */
const GLOBAL_V6 = blockListOf('ipv6', ['2000::/3']);

/** The parts of it outside the public internet: the IANA special-purpose address registry. */
const REFUSED_V6 = blockListOf('ipv6', [
  '2001::/23', // protocol assignments, RFC 2928: Teredo, RFC 4380; benchmarks, RFC 5180; ORCHID, RFC 7343
  '2001:db8::/32', // documentation, RFC 3849
  '2002::/16', // 6to4, which wraps any IPv4 address, RFC 3056
  '3fff::/20', // documentation, RFC 9637
]);

/** Prefixes whose last 32 bits are an IPv4 address that decides. */
const EMBEDDING_V6 = blockListOf('ipv6', [
  '::ffff:0:0/96', // IPv4-mapped, RFC 4291
  '64:ff9b::/96', // NAT64, RFC 6052
]);

/** True when an IP address is private, loopback, link-local, shared, multicast, reserved or a metadata address. */
export function isRefusedAddress(address: string): boolean {
  if (isIPv4(address)) return REFUSED_V4.check(address, 'ipv4');
  if (isIP(address) !== 6) return true;
  if (EMBEDDING_V6.check(address, 'ipv6')) return REFUSED_V4.check(embeddedV4(address), 'ipv4');
  return !GLOBAL_V6.check(address, 'ipv6') || REFUSED_V6.check(address, 'ipv6');
}

/** True when an IP address is this machine's own. */
export function isLoopbackAddress(address: string): boolean {
  return isIPv4(address) ? LOOPBACK_V4.check(address, 'ipv4') : LOOPBACK_V6.check(address, 'ipv6');
}

/** Last 32 bits of an IPv6 address in dotted form; `URL` writes an address in its shortest hexadecimal form. */
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
