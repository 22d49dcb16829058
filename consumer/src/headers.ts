import { WebhookError } from './error.ts';

/** Headers of node:http, of a plain object in any case, or of the Fetch API. */
export type HeadersInput =
  | { readonly [name: string]: string | readonly string[] | undefined }
  | { get(name: string): string | null };

/** All values of a header; empty where it is missing. */
export function headerValues(headers: HeadersInput, name: string): string[] {
  if (isFetchHeaders(headers)) {
    const value = headers.get(name);
    return value === null ? [] : [value];
  }
  return Object.entries(headers)
    .filter(([key]) => key.toLowerCase() === name)
    .flatMap(([, value]) => value ?? []);
}

function isFetchHeaders(headers: HeadersInput): headers is { get(name: string): string | null } {
  return typeof headers.get === 'function';
}

/** The only value of a header that is required once. */
export function requiredHeader(headers: HeadersInput, name: string): string {
  const values = headerValues(headers, name);
  const [value = '', ...more] = values;
  if (value === '')
    throw new WebhookError(
      'header_missing',
      `found no ${name} header, expected one: does a proxy drop it, or is this no webhook of Intentwatch?`,
    );
  // Node and the Fetch API join repeated headers with a comma, which no id and no time contains.
  if (more.length > 0 || value.includes(','))
    throw new WebhookError('header_repeated', `found several ${name} headers, expected one`);
  return value;
}

/** A sender signs once per secret. Further signatures are not checked: each costs time. */
const MAX_SIGNATURES = 20;

/** One of the signatures of a webhook: `v1` is HMAC-SHA256, `v1a` ed25519. */
export type Signature = { version: string; base64: string };

/** The signatures of `webhook-signature`, separated by spaces, or in several headers. */
export function signaturesOf(headers: HeadersInput): Signature[] {
  const text = headerValues(headers, 'webhook-signature').join(' ');
  const tokens = text.split(/\s+/).filter((token) => token !== '');
  if (tokens.length === 0)
    throw new WebhookError(
      'header_missing',
      'found no webhook-signature header, expected one: does a proxy drop it, or is this no webhook of Intentwatch?',
    );
  return tokens.slice(0, MAX_SIGNATURES).map((token) => {
    // Repeated headers are joined with a comma.
    const [version = '', ...rest] = token.replace(/,$/, '').split(',');
    return { version, base64: rest.join(',') };
  });
}
