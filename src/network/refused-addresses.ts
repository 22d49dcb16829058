import { BlockList, isIP, isIPv4 } from 'node:net';

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

const LOOPBACK_V4 = blockListOf('ipv4', ['127.0.0.0/8']);
const LOOPBACK_V6 = blockListOf('ipv6', ['::1/128']);

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

/** Whether an IP address is this machine's own. */
export function isLoopbackAddress(address: string): boolean {
  return isIPv4(address) ? LOOPBACK_V4.check(address, 'ipv4') : LOOPBACK_V6.check(address, 'ipv6');
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
