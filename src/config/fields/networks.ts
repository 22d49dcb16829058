import { BlockList, isIP } from 'node:net';
import { z } from 'zod';

const EXPECTED = 'a network in CIDR notation, like 10.0.0.0/8 or fd00::/8';

/** A field that holds networks in CIDR notation, or none. */
export const networkListField = z.array(
  z.string({ error: EXPECTED }).refine((text) => parseNetwork(text) !== null, { error: EXPECTED }),
  { error: 'a list of networks, like ["10.0.0.0/8"]' },
);

/** A field that holds at least one network. */
export const networksField = networkListField.min(1, { error: 'at least one network' });

/** Networks as a list that IP addresses are checked against; an IPv4-mapped IPv6 address counts as the IPv4 one. */
export function networkList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const text of networks) {
    const network = parseNetwork(text);
    if (network !== null) list.addSubnet(network.address, network.prefix, network.family);
  }
  return list;
}

type Network = { address: string; prefix: number; family: 'ipv4' | 'ipv6' };

function parseNetwork(text: string): Network | null {
  const [address = '', bits = '', ...rest] = text.split('/');
  const version = isIP(address);
  const isPrefix = /^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128);
  if (version === 0 || address.includes('%') || !isPrefix || rest.length > 0) return null;
  return { address, prefix: Number(bits), family: version === 4 ? 'ipv4' : 'ipv6' };
}
