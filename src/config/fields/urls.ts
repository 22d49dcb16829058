import { isIP } from 'node:net';
import { z } from 'zod';
import { isLoopbackAddress, isRefusedAddress } from '../../network/refused-addresses.ts';
import { Secret } from '../../secret.ts';
import { networkList } from './networks.ts';

/** True when a URL's host is written as this machine: `localhost` or a loopback address. */
export function isLoopback(url: URL): boolean {
  const address = literalAddress(url);
  return isLocalhost(url) || (address !== null && isLoopbackAddress(address));
}

/**
 * True when a URL's host is written as a private, loopback, link-local or otherwise reserved address. What a name resolves
 * to is checked where the connection is made, not here.
 */
export function isPrivateHost(url: URL): boolean {
  const address = literalAddress(url);
  return isLocalhost(url) || (address !== null && isRefusedAddress(address));
}

/**
 * True when a URL's host is written as an address of these networks (CIDR), or as `localhost` where they hold a loopback
 * address.
 */
export function isInNetworks(url: URL, networks: readonly string[]): boolean {
  const list = networkList(networks);
  if (isLocalhost(url)) return list.check('127.0.0.1', 'ipv4') || list.check('::1', 'ipv6');
  const address = literalAddress(url);
  return address !== null && list.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6');
}

function isLocalhost(url: URL): boolean {
  return /^(.+\.)?localhost\.?$/i.test(url.hostname);
}

/** The IP address that a URL's host is written as; null for a name. */
function literalAddress(url: URL): string | null {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(host) === 0 ? null : host;
}

/**
 * A field that holds the address of a service: http or https, without user, query or fragment; read without a trailing
 * slash. Whether plain http is allowed depends on other fields.
 */
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

/** Not by an expression, which would begin anew at each slash. */
function withoutEndingSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === '/') end -= 1;
  return text.slice(0, end);
}

/** A field that holds a URL to call, kept secret because such URLs carry tokens. */
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

/** A field that holds a URL with one of the given schemes, kept secret because it may hold a password. */
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

/** A field that holds the URL of a proxy, kept secret because it may hold a password. */
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

/** A field that holds the origin (scheme, host, port) of a proxy. */
export const proxyOriginField = z.string({ error: PROXY_ORIGIN_EXPECTED }).transform((text, context) => {
  const url = httpUrl(text);
  if (url !== null && url.pathname === '/' && !/[?#@]/.test(text)) return url.origin;
  context.addIssue({ code: 'custom', message: PROXY_ORIGIN_EXPECTED });
  return z.NEVER;
});

/** The URL of an http or https address with a host and no spaces; null for anything else. */
export function httpUrl(text: string): URL | null {
  const url = /^https?:\/\/[^\s/]/i.test(text) && !/\s/.test(text) ? URL.parse(text) : null;
  return url !== null && url.hostname !== '' ? url : null;
}

/** A part of a URL without its escapes; null where a `%` begins none. */
export function decoded(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}
