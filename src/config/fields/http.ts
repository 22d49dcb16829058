import { BlockList, isIP } from 'node:net';
import { z } from 'zod';
import { isLoopbackAddress, isRefusedAddress } from '../../network/refused-addresses.ts';
import { Secret } from '../../secret.ts';

const EXPECTED = 'a network in CIDR notation, like 10.0.0.0/8 or fd00::/8';

export const networkListField = z.array(
  z.string({ error: EXPECTED }).refine((text) => parseNetwork(text) !== null, { error: EXPECTED }),
  { error: 'a list of networks, like ["10.0.0.0/8"]' },
);

export const networksField = networkListField.min(1, { error: 'at least one network' });

/** Builds a list that IP addresses are checked against; an IPv4-mapped IPv6 address counts as the IPv4 one. */
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

/** True when a URL's host is written as this machine: `localhost` or a loopback address. */
export function isLoopback(url: URL): boolean {
  const address = literalAddress(url);
  return isLocalhost(url) || (address !== null && isLoopbackAddress(address));
}

/**
 * True when a URL's host is written as a private, loopback, link-local or reserved address. Names are checked at the
 * connection.
 */
export function isPrivateHost(url: URL): boolean {
  const address = literalAddress(url);
  return isLocalhost(url) || (address !== null && isRefusedAddress(address));
}

/** True when a URL's host is an address of these networks (CIDR), or `localhost` where they contain a loopback address. */
export function isInNetworks(url: URL, networks: readonly string[]): boolean {
  const list = networkList(networks);
  if (isLocalhost(url)) return list.check('127.0.0.1', 'ipv4') || list.check('::1', 'ipv6');
  const address = literalAddress(url);
  return address !== null && list.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6');
}

function isLocalhost(url: URL): boolean {
  return /^(.+\.)?localhost\.?$/i.test(url.hostname);
}

function literalAddress(url: URL): string | null {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(host) === 0 ? null : host;
}

/** Address of a service: http or https, without user, query, fragment or trailing slash. Other fields may forbid http. */
export const baseUrlField = z
  .string({ error: 'a URL like https://api.example.com' })
  .transform((text, context) => {
    const url = httpUrl(text);
    const problem =
      url === null
        ? { expected: 'a URL like https://api.example.com' }
        : url.username !== '' || url.password !== ''
          ? { found: 'a URL with a user name or password', expected: 'a URL without them' }
          : /[?#]/.test(text)
            ? { found: 'a URL with a query or fragment', expected: 'a URL without them' }
            : null;
    if (problem === null) return withoutEndingSlashes(text);
    const params = 'found' in problem ? { found: problem.found } : {};
    context.addIssue({ code: 'custom', message: problem.expected, params });
    return z.NEVER;
  });

/** Not by a regular expression, which would restart at each slash. */
function withoutEndingSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === '/') end -= 1;
  return text.slice(0, end);
}

/** A URL to request, secret because such URLs carry tokens. */
export function secretUrlField({ example }: { example: string }) {
  const expected = `a URL like ${example}`;
  return z
    .string({ error: expected })
    .transform((text, context) => {
      const url = httpUrl(text);
      if (url !== null && url.username === '' && url.password === '') return new Secret(text);
      const params = url === null ? {} : { found: 'a URL with a user name or password' };
      context.addIssue({ code: 'custom', message: url === null ? expected : 'a URL without them', params });
      return z.NEVER;
    })
    .meta({ writeOnly: true });
}

/** A URL with one of the given schemes, secret because it may hold a password. */
export function secretServerUrlField({ schemes, example }: { schemes: string[]; example: string }) {
  const expected = `a URL like ${example}, beginning with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`;
  return z
    .string({ error: expected })
    .transform((text, context) => {
      const url = URL.parse(text);
      const fits = schemes.some((scheme) => text.toLowerCase().startsWith(`${scheme}://`));
      if (url !== null && fits && url.hostname !== '') return new Secret(text);
      context.addIssue({ code: 'custom', message: expected });
      return z.NEVER;
    })
    .meta({ writeOnly: true });
}

const PROXY_EXPECTED =
  'a URL of a proxy like http://user:password@proxy.example.com:3128, http or https, without a path';

export const proxyField = z
  .string({ error: PROXY_EXPECTED })
  .transform((text, context) => {
    const url = httpUrl(text);
    const isBare = url !== null && url.pathname === '/' && !/[?#]/.test(text);
    if (isBare && decoded(url.username) !== null && decoded(url.password) !== null) return new Secret(text);
    context.addIssue({ code: 'custom', message: PROXY_EXPECTED });
    return z.NEVER;
  })
  .meta({ writeOnly: true });

const PROXY_ORIGIN_EXPECTED =
  'a URL of a proxy like http://proxy.example.com:3128, http or https, without a login or a path';

export const proxyOriginField = z.string({ error: PROXY_ORIGIN_EXPECTED }).transform((text, context) => {
  const url = httpUrl(text);
  if (url !== null && url.pathname === '/' && !/[?#@]/.test(text)) return url.origin;
  context.addIssue({ code: 'custom', message: PROXY_ORIGIN_EXPECTED });
  return z.NEVER;
});

/** Parses an http or https URL with a host and no spaces; null for any other text. */
export function httpUrl(text: string): URL | null {
  const url = /^https?:\/\/[^\s/]/i.test(text) && !/\s/.test(text) ? URL.parse(text) : null;
  return url !== null && url.hostname !== '' ? url : null;
}

/** Decodes a part of a URL; null where a `%` begins no escape. */
export function decoded(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}

/** Headers of our own, or of the transport of the request. */
const RESERVED: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'content-type',
  'content-encoding',
  'user-agent',
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'http2-settings',
]);
const RESERVED_PREFIXES = ['webhook-', 'intentwatch-'];

const NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/;
const VALUE = /^[\x21-\x7e]([\x20-\x7e]{0,4094}[\x21-\x7e])?$/;
const VALUE_EXPECTED = 'a header value: up to 4,096 visible ASCII characters, spaces only between them';

const valueField = z
  .string({
    error: ({ input }) =>
      typeof input === 'number' || typeof input === 'boolean' ? 'text in quotes' : VALUE_EXPECTED,
  })
  .regex(VALUE, { error: VALUE_EXPECTED })
  .transform((value) => new Secret(value))
  .meta({ writeOnly: true });

export const headersField = z
  .record(z.string(), valueField, { error: 'a mapping of header names to values' })
  .superRefine((headers, context) => {
    const seen = new Set<string>();
    for (const name of Object.keys(headers)) {
      const refusal = refusalOf(name, seen);
      seen.add(name.toLowerCase());
      if (refusal === null) continue;
      const { message, found } = refusal;
      // An invalid name may be a secret by a slip: it is not shown.
      const path = NAME.test(name) ? [name] : [];
      context.addIssue({ code: 'custom', path, message, params: { found } });
    }
  });

function refusalOf(name: string, seen: ReadonlySet<string>): { message: string; found: string } | null {
  if (!NAME.test(name)) {
    return {
      found: 'a header name that is not shown',
      message: 'names of letters, digits and hyphens, like X-Team',
    };
  }
  const lower = name.toLowerCase();
  if (RESERVED.has(lower) || RESERVED_PREFIXES.some((prefix) => lower.startsWith(prefix))) {
    return { found: 'a reserved header', message: 'headers of your own, like X-Team' };
  }
  return seen.has(lower) ? { found: 'the same header again', message: 'each header once' } : null;
}
