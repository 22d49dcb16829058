import type { LookupAddress } from 'node:dns';
import { isIP, type LookupFunction, Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { httpUrl, isPrivateHost } from '../../src/config/fields/http.ts';
import { isRefusedAddress } from '../../src/network/refused-addresses.ts';
import { type AddressRule, apiRules, ownRules, refusalOf } from '../../src/notifiers/address-rules.ts';
import { guardedConnector } from '../../src/notifiers/webhook/connector.ts';

/** The address to which the system would have connected. No connection is made: the last step before the network is replaced. */
class NetworkCut extends Error {
  readonly code = 'NETWORK_CUT';
}

const connects = vi.spyOn(Socket.prototype, 'connect');
beforeAll(() => {
  connects.mockImplementation(function (this: Socket, ...given: unknown[]): Socket {
    const [first] = given.flat();
    const { host, lookup } = CONNECT.parse(first);
    const end = (error: Error): unknown => process.nextTick(() => this.destroy(error));
    if (isIP(host) !== 0) end(new NetworkCut(host));
    else lookup(host, { all: true }, (error, found) => end(error ?? new NetworkCut(addressesOf(found))));
    return this;
  });
});
afterAll(() => connects.mockRestore());

const CONNECT = z.object({ host: z.string(), lookup: z.custom<LookupFunction>() });

function addressesOf(found: string | LookupAddress[]): string {
  return typeof found === 'string' ? found : found.map(({ address }) => address).join(' ');
}

/** Result of an attempt: the guard refuses, a connection goes to addresses, or there is no URL. */
type Verdict = { verdict: 'refused' | 'connects' | 'no URL'; lookups: number; to: string };

/** A name server that gives its answers in turn; the last one repeats. */
function answering(answers: readonly (readonly string[])[]): { lookup: LookupFunction; requests: string[] } {
  const requests: string[] = [];
  const lookup: LookupFunction = (hostname, _options, callback) => {
    const answer = answers[Math.min(requests.length, answers.length - 1)] ?? [];
    requests.push(hostname);
    const found: LookupAddress[] = answer.map((address) => ({ address, family: isIP(address) }));
    process.nextTick(() => callback(null, found));
  };
  return { lookup, requests };
}

/** The rules of a receiver of the config that allows some networks. */
function allowing(networks: readonly string[]): AddressRule[] {
  return ownRules({ allowPrivateNetwork: false, allowNetworks: networks });
}

async function attempt(
  text: string,
  { lookup, requests }: { lookup: LookupFunction; requests: string[] },
  rules: readonly AddressRule[] = allowing([]),
): Promise<Verdict> {
  const url = httpUrl(text);
  if (url === null) return { verdict: 'no URL', lookups: 0, to: '' };
  const before = requests.length;
  const connect = guardedConnector({ timeout: 5_000, lookup, rules });
  // As undici calls its connector.
  const hostname = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const target = { hostname, host: url.host, protocol: url.protocol, port: url.port };
  const error = await new Promise<Error | null>((resolve) =>
    connect(target, (...[failed]) => resolve(failed)),
  );
  const lookups = requests.length - before;
  if (error instanceof NetworkCut) return { verdict: 'connects', lookups, to: error.message };
  if (error !== null && 'code' in error && error.code === 'ADDRESS_REFUSED')
    return { verdict: 'refused', lookups, to: '' };
  throw error ?? new Error('connected, though there is no network');
}

const LITERALS: readonly [url: string, verdict: Verdict['verdict'], what: string][] = [
  ['http://127.0.0.1/', 'refused', 'loopback'],
  ['http://127.8.9.10/', 'refused', 'loopback'],
  ['http://127.1/', 'refused', 'loopback, short'],
  ['http://2130706433/', 'refused', 'loopback, decimal'],
  ['http://0x7f000001/', 'refused', 'loopback, hexadecimal'],
  ['http://0177.0.0.1/', 'refused', 'loopback, octal'],
  ['http://017700000001/', 'refused', 'loopback, octal in one'],
  ['http://0x7f.0.0x0.01/', 'refused', 'loopback, mixed'],
  ['http://%31%32%37.0.0.1/', 'refused', 'loopback, percent-encoded'],
  ['http://①②⑦.⓪.⓪.①/', 'refused', 'loopback, in circled digits'],
  ['http://127.0.0.1./', 'refused', 'loopback with a dot behind it'],
  ['http://user@127.0.0.1:8080/path', 'refused', 'loopback behind a user'],
  ['http://0/', 'refused', 'unspecified'],
  ['http://0.0.0.0:6379/', 'refused', 'unspecified'],
  ['http://10.0.0.1/', 'refused', 'private'],
  ['http://172.16.0.1/', 'refused', 'private'],
  ['http://172.32.0.1/', 'connects', 'just beyond private'],
  ['http://192.168.1.1/', 'refused', 'private'],
  ['http://0300.0250.1/', 'refused', 'private, octal and short'],
  ['http://3232235777/', 'refused', 'private, decimal'],
  ['http://100.64.0.1/', 'refused', 'carrier-grade NAT'],
  ['http://100.128.0.1/', 'connects', 'just beyond carrier-grade NAT'],
  ['http://169.254.169.254/latest/meta-data/', 'refused', 'metadata'],
  ['http://0xa9fea9fe/', 'refused', 'metadata, hexadecimal'],
  ['http://2852039166/', 'refused', 'metadata, decimal'],
  ['http://100.100.100.200/', 'refused', 'metadata in carrier-grade NAT'],
  ['http://168.63.129.16/', 'refused', 'metadata on a public address'],
  ['http://192.0.0.192/', 'refused', 'metadata in protocol assignments'],
  ['http://224.0.0.1/', 'refused', 'multicast'],
  ['http://255.255.255.255/', 'refused', 'broadcast'],
  ['http://[::]/', 'refused', 'unspecified, IPv6'],
  ['http://[::1]/', 'refused', 'loopback, IPv6'],
  ['http://[0:0:0:0:0:0:0:1]/', 'refused', 'loopback, IPv6, long'],
  ['http://[::ffff:127.0.0.1]/', 'refused', 'loopback, mapped'],
  ['http://[::ffff:7f00:1]/', 'refused', 'loopback, mapped, hexadecimal'],
  ['http://[::ffff:169.254.169.254]/', 'refused', 'metadata, mapped'],
  ['http://[::127.0.0.1]/', 'refused', 'loopback, IPv4-compatible'],
  ['http://[64:ff9b::127.0.0.1]/', 'refused', 'loopback, NAT64'],
  ['http://[64:ff9b::a9fe:a9fe]/', 'refused', 'metadata, NAT64'],
  ['http://[64:ff9b:1::1.1.1.1]/', 'refused', 'NAT64 for local use'],
  ['http://[64:ff9b::1.1.1.1]/', 'connects', 'public, NAT64'],
  ['http://[::ffff:1.1.1.1]/', 'connects', 'public, mapped'],
  ['http://[fe80::1]/', 'refused', 'link-local'],
  ['http://[fe80::1%25eth0]/', 'no URL', 'link-local with a zone'],
  ['http://[::1%lo]/', 'no URL', 'loopback with a zone'],
  ['http://[fc00::1]/', 'refused', 'unique local'],
  ['http://[fd00:ec2::254]/', 'refused', 'metadata, IPv6'],
  ['http://[ff02::1]/', 'refused', 'multicast, IPv6'],
  ['http://[2002:7f00:1::]/', 'refused', 'loopback, 6to4'],
  ['http://[2001:0:7f00:1::]/', 'refused', 'Teredo'],
  ['http://[2606:4700:4700::1111]/', 'connects', 'public, IPv6'],
  ['http://1.1.1.1/', 'connects', 'public'],
  ['http://16843009/', 'connects', 'public, decimal'],
  ['http://256.1.1.1/', 'no URL', 'no address'],
];

describe('a URL with a literal address', () => {
  test.each(LITERALS)('%s: %s (%s)', async (text, verdict) => {
    expect(await attempt(text, answering([]))).toMatchObject({ verdict, lookups: 0 });
    // An address in the config is refused there as well.
    const url = httpUrl(text);
    if (url !== null) expect(isPrivateHost(url)).toBe(verdict === 'refused');
  });
});

const NAMES: readonly [
  what: string,
  answers: readonly (readonly string[])[],
  verdicts: Verdict['verdict'][],
][] = [
  ['public', [['93.184.215.14']], ['connects']],
  ['public, IPv6', [['2606:2800:21f:cb07::1']], ['connects']],
  ['loopback', [['127.0.0.1']], ['refused']],
  ['loopback, IPv6', [['::1']], ['refused']],
  ['private in both families', [['10.0.0.1', 'fd00::1']], ['refused']],
  ['mapped loopback', [['::ffff:127.0.0.1']], ['refused']],
  ['mapped metadata, hexadecimal', [['::ffff:a9fe:a9fe']], ['refused']],
  ['NAT64 of a private address', [['64:ff9b::10.0.0.1']], ['refused']],
  ['NAT64 of a public address', [['64:ff9b::93.184.215.14']], ['connects']],
  ['link-local with a zone', [['fe80::1%eth0']], ['refused']],
  ['loopback with a zone', [['::1%lo']], ['refused']],
  ['a mapped address with a zone', [['::ffff:127.0.0.1%lo']], ['refused']],
  ['metadata', [['169.254.169.254']], ['refused']],
  ['carrier-grade NAT', [['100.64.0.1']], ['refused']],
  ['multicast', [['224.0.0.251']], ['refused']],
  ['no address at all', [[]], ['refused']],
  ['an invalid address', [['localhost']], ['refused']],
  ['private beside public: only the public one is used', [['10.0.0.1', '93.184.215.14']], ['connects']],
  ['rebinding: public, then private', [['93.184.215.14'], ['127.0.0.1']], ['connects', 'refused']],
  ['rebinding: private, then public', [['127.0.0.1'], ['93.184.215.14']], ['refused', 'connects']],
  [
    'rebinding in turns',
    [['93.184.215.14'], ['::ffff:10.0.0.1'], ['93.184.215.14'], ['169.254.169.254']],
    ['connects', 'refused', 'connects', 'refused'],
  ],
];

describe('a name that DNS answers with', () => {
  test.each(NAMES)('%s', async (_, answers, verdicts) => {
    const names = answering(answers);
    for (const verdict of verdicts) {
      // One DNS query for each connection: no second answer can change its address.
      const found = await attempt('https://hooks.example.com/', names);
      expect(found).toMatchObject({ verdict, lookups: 1 });
      // Of several addresses only public ones remain.
      expect(found.to.split(' ').filter((address) => address !== '' && isRefusedAddress(address))).toEqual(
        [],
      );
    }
  });

  test('an error is reported as it is', async () => {
    const error = Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' });
    const lookup: LookupFunction = (_hostname, _options, callback) => callback(error, []);
    await expect(attempt('https://hooks.example.com/', { lookup, requests: [] })).rejects.toBe(error);
  });
});

describe('networks that a receiver allows', () => {
  test.each([
    ['http://10.1.2.3/', 'connects'],
    ['http://[::ffff:10.1.2.3]/', 'connects'],
    ['http://[fd12::1]/', 'connects'],
    ['http://10.2.0.1/', 'refused'],
    ['http://127.0.0.1/', 'refused'],
    ['http://[fd13::1]/', 'refused'],
  ])('%s: %s', async (text, verdict) => {
    const found = await attempt(text, answering([[]]), allowing(['10.1.0.0/16', 'fd12::/16']));
    expect(found).toMatchObject({ verdict });
  });

  test('count for the addresses of a name, and for no other', async () => {
    const names = answering([['10.1.2.3', '10.2.0.1', 'fd12::1']]);
    const found = await attempt('https://hooks.example.com/', names, allowing(['10.1.0.0/16', 'fd12::/16']));
    expect(found).toMatchObject({ verdict: 'connects', to: '10.1.2.3 fd12::1' });
  });
});

describe('networks that server.apiReceivers permits', () => {
  const NETWORKS = ['10.1.0.0/16', 'fd12::/16'];
  const limited = (own: {
    allowPrivateNetwork: boolean;
    allowNetworks: readonly string[];
  }): AddressRule[] => [...apiRules({ apiNetworks: NETWORKS }), ...ownRules(own)];
  const ALL = { allowPrivateNetwork: true, allowNetworks: [] };

  test.each([
    ['http://93.184.215.14/', ALL, 'connects'],
    ['http://10.1.2.3/', ALL, 'connects'],
    ['http://[::ffff:10.1.2.3]/', ALL, 'connects'],
    ['http://[64:ff9b::10.1.2.3]/', ALL, 'refused'],
    ['http://10.2.0.1/', ALL, 'refused'],
    ['http://127.0.0.1/', { allowPrivateNetwork: false, allowNetworks: ['127.0.0.0/8'] }, 'refused'],
    ['http://10.1.2.3/', { allowPrivateNetwork: false, allowNetworks: ['10.1.3.0/24'] }, 'refused'],
    ['http://10.1.3.3/', { allowPrivateNetwork: false, allowNetworks: ['10.0.0.0/8'] }, 'connects'],
  ])('%s with %j: %s', async (text, own, verdict) => {
    expect(await attempt(text, answering([[]]), limited(own))).toMatchObject({ verdict });
  });

  test('count for the addresses of a name, for any networks of the receiver', async () => {
    const names = answering([['10.1.2.3', '127.0.0.1', '::1', 'fd12::1'], ['127.0.0.1']]);
    const first = await attempt('https://hooks.example.com/', names, limited(ALL));
    expect(first).toMatchObject({ verdict: 'connects', to: '10.1.2.3 fd12::1' });
    const second = await attempt('https://hooks.example.com/', names, limited(ALL));
    expect(second).toMatchObject({ verdict: 'refused' });
  });

  test('a refusal by them shows no address, and one by the receiver does', () => {
    const found = [{ address: '127.0.0.1' }, { address: '10.1.2.3' }];
    const narrow = limited({ allowPrivateNetwork: false, allowNetworks: ['10.1.3.0/24'] });
    expect(refusalOf(found, narrow).message).toBe(
      'private or reserved address; only server.apiReceivers.allowNetworks permits it',
    );
    expect(refusalOf(found.slice(1), narrow).message).toBe(
      'private or reserved address (10.1.2.3); only allowNetworks or allowPrivateNetwork permits it',
    );
  });
});

test('the table has at least 40 URLs and 20 answers', () => {
  expect(LITERALS.length).toBeGreaterThanOrEqual(40);
  expect(NAMES.length).toBeGreaterThanOrEqual(20);
});
