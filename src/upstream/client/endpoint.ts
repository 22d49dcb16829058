import { LIMITS } from '../../domain/limits.ts';

export const ENDPOINTS = [
  'status',
  'gasless-job',
  'vault',
  'chains',
  'tokens',
  'quotes',
  'open-quotes',
  'open-status',
] as const;

/** Name of an endpoint in metrics and messages. */
export type Endpoint = (typeof ENDPOINTS)[number] | 'create-vault' | `submit-${string}`;

/** Endpoints whose requests have no `limit` that could be reduced. */
const LIST_ENDPOINTS = ['chains', 'tokens', 'quotes', 'open-quotes'] as const;

/** One of the endpoints without a `limit`. */
export type ListEndpoint = (typeof LIST_ENDPOINTS)[number];

/** True when an endpoint has no `limit`. */
export function isList(endpoint: Endpoint): endpoint is ListEndpoint {
  return LIST_ENDPOINTS.some((list) => list === endpoint);
}

/** Limits of an endpoint's answer. */
export function limitsOf(endpoint: Endpoint): typeof LIMITS.upstream | typeof LIMITS.upstreamList {
  return isList(endpoint) ? LIMITS.upstreamList : LIMITS.upstream;
}

/** Parses the upstream's base URL. Throws a TypeError when it is not a plain http or https URL. */
export function parseBaseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new TypeError(`baseUrl: found ${JSON.stringify(text)}, expected an http or https URL`);
  }
  if (url.search !== '' || url.hash !== '' || url.username !== '' || url.password !== '') {
    throw new TypeError(`baseUrl: found more than origin and path on ${url.origin}, expected only those`);
  }
  return url;
}

/** URL of a path (which starts with `/` and may carry a query) under the base URL; always of its origin. */
export function endpointUrl(base: URL, path: string): URL {
  return new URL(`${base.origin}${basePath(base)}${path}`);
}

/**
 * True when a request carries the API key: only under `/v1` of the base URL, and not to the deposit gateway (the prefix), which
 * is open and relayed elsewhere. Checks the very URL that is requested.
 */
export function carriesKey(base: URL, url: URL, gatewayPrefix: string): boolean {
  const prefix = basePath(base);
  if (url.origin !== base.origin || !url.pathname.startsWith(`${prefix}/`)) return false;
  // Only plain paths: a server may read an escape, an empty segment or a parameter (;) as another path.
  const [, word] = /^\/v1\/([\w.~-]+)(?:\/[\w.~-]+)*\/?$/.exec(url.pathname.slice(prefix.length)) ?? [];
  return word !== undefined && word.toLowerCase() !== gatewayPrefix.toLowerCase();
}

/** Puts a value into a path as one segment. Throws a TypeError for a bad template, a RangeError for a bad value. */
export function fillPath(template: string, hole: { name: string; value: string }): string {
  const { name, value } = hole;
  checkTemplate(template, name);
  if (value === '' || value === '.' || value === '..') {
    throw new RangeError(
      `${name}: found ${JSON.stringify(value)}, expected text that names something in a path`,
    );
  }
  return template.replaceAll(`{${name}}`, () => encodeURIComponent(value));
}

/** Throws a TypeError unless the template starts with `/` and holds `{name}`. */
export function checkTemplate(template: string, name: string): void {
  if (template.startsWith('/') && template.includes(`{${name}}`)) return;
  throw new TypeError(`path: found ${JSON.stringify(template)}, expected a path from / with {${name}} in it`);
}

function basePath(base: URL): string {
  return base.pathname.replace(/\/+$/, '');
}
