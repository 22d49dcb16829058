import { expect, test } from 'vitest';
import { networkList } from '../../src/config/fields/http.ts';
import { clientAddress } from '../../src/server/failed-logins.ts';

const TRUSTED = networkList(['10.0.0.0/8', 'fd00::/8']);

test.each([
  ['a stranger who names another', '192.0.2.9', '192.0.2.1', '192.0.2.9'],
  ['a proxy that names a client', '10.0.0.1', '192.0.2.1', '192.0.2.1'],
  ['a client that names others', '10.0.0.1', '192.0.2.7, 192.0.2.1', '192.0.2.1'],
  ['two proxies', '10.0.0.1', '192.0.2.1, 10.0.0.2', '192.0.2.1'],
  ['a proxy of IPv6', 'fd00::1', '192.0.2.1', '192.0.2.1'],
  ['a proxy that names nobody', '10.0.0.1', '', '10.0.0.1'],
  ['a proxy that names no address', '10.0.0.1', 'unknown', '10.0.0.1'],
  ['IPv4 in IPv6', '::ffff:192.0.2.9', '', '192.0.2.9'],
  ['IPv6', '2001:db8:0:0:1::2', '', '2001:db8:0:0'],
  ['IPv6 with few groups', '2001:db8::', '', '2001:db8:0:0'],
  ['IPv6 with many groups', '2001:db8:1:2:3:4:5:6', '', '2001:db8:1:2'],
  ['loopback of IPv6', '::1', '', '0:0:0:0'],
  ['a client with a port', '10.0.0.1', '192.0.2.1:567', '192.0.2.1'],
  ['a client of IPv6 with a port', '10.0.0.1', '[2001:db8::1]:567', '2001:db8:0:0'],
  ['a client of IPv6 in brackets', '10.0.0.1', '[2001:db8::1]', '2001:db8:0:0'],
  ['a second proxy with a port', '10.0.0.1', '192.0.2.1, 10.0.0.2:567, [fd00::2]:567', '192.0.2.1'],
  ['IPv4 in IPv6 in hex', '::ffff:c000:209', '', '192.0.2.9'],
  ['IPv4 in IPv6 with all its groups', '0:0:0:0:0:ffff:c000:0209', '', '192.0.2.9'],
  ['a proxy and a client as IPv4 in IPv6', '::ffff:a00:1', '[::ffff:c000:201]:567', '192.0.2.1'],
  ['a second proxy as IPv4 in IPv6 in hex', '10.0.0.1', '192.0.2.1, ::ffff:a00:2', '192.0.2.1'],
  ['a proxy that names a port without an address', '10.0.0.1', ':567', '10.0.0.1'],
])('%s counts by its network', (_, peer, forwarded, expected) => {
  expect(clientAddress(peer, forwarded, TRUSTED)).toBe(expected);
});
