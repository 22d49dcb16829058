import { z } from 'zod';
import { Secret } from '../../secret.ts';

/** Names that are ours, or that say how the request itself is carried. */
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

/** A field that holds headers of the user's own, their values kept secret. */
export const headersField = z
  .record(z.string(), valueField, { error: 'a mapping of header names to values' })
  .superRefine((headers, context) => {
    const seen = new Set<string>();
    for (const name of Object.keys(headers)) {
      const refusal = refusalOf(name, seen);
      seen.add(name.toLowerCase());
      if (refusal === null) continue;
      const { message, found } = refusal;
      // A name that is none may be a secret by a slip: it is not shown.
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
