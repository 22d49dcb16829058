import { isIPv4 } from 'node:net';
import { z } from 'zod';
import type { JsonValue } from '../../domain/json.ts';
import { Secret } from '../../secret.ts';
import type { ServerConfig } from '../config.ts';
import { flagField, mapping, textField, wholeNumberField } from '../fields/fields.ts';
import { baseUrlField, networkListField, networksField, proxyOriginField } from '../fields/http.ts';
import { type Fault, member } from '../file/errors.ts';

const tokenField = textField({
  pattern: /^[\x21-\x7e]{16,}$/,
  expected: 'a token of 16 or more visible ASCII characters',
})
  .transform((token) => new Secret(token))
  .optional();

const HOST = '127.0.0.1';

const TYPE_EXPECTED = '"webhook", "email" or "postgres"';

export const serverSchema = mapping({
  host: textField({ pattern: /^[A-Za-z0-9.:_-]+$/, expected: 'a host name or an IP address, like 127.0.0.1' })
    .prefault(HOST)
    .meta({ description: 'The address on which metrics, health and the API are served.', label: 'host' }),
  port: wholeNumberField({ min: 0, max: 65_535 })
    .prefault(9464)
    .meta({ description: 'The port; 0 takes a free one.' }),
  token: tokenField.meta({
    description:
      'A token that lets its bearer do all that the API can, 16 characters or longer. Without any token the API is on only where `host` is a loopback address. `/metrics`, `/healthz` and `/readyz` never need one.',
    label: 'text',
    writeOnly: true,
  }),
  tokens: mapping({
    read: tokenField.meta({
      description: 'A token that lets its bearer read, and change nothing.',
      label: 'text',
      writeOnly: true,
    }),
    consume: tokenField.meta({
      description:
        'A token that lets its bearer read, and move, create and delete consumers of the event log. It changes nothing else.',
      label: 'text',
      writeOnly: true,
    }),
    admin: tokenField.meta({
      description: 'A token like `server.token`, beside it.',
      label: 'text',
      writeOnly: true,
    }),
  })
    .optional()
    .meta({ description: 'Tokens of the API by what they allow.' }),
  secretsKey: textField({
    pattern: /^[\x21-\x7e]{32,}$/,
    expected: 'a key of 32 or more visible ASCII characters',
  })
    .transform((key) => new Secret(key))
    .optional()
    .meta({
      description:
        'The key that encrypts in Redis the URLs, secrets and headers of receivers that are made through the API, 32 characters or longer, the same in all processes. Left out: none can be made.',
      label: 'text',
      writeOnly: true,
    }),
  apiReceivers: mapping({
    allowNetworks: networkListField.prefault([]).meta({
      description:
        'Permits addresses of these networks although they are not public, such as `["10.1.0.0/16"]`. A webhook names them, or `allowPrivateNetwork`, as well.',
      label: 'list of networks',
    }),
    allowInsecure: flagField().prefault(false).meta({
      description: 'Permits `allowInsecure` in them: plain http, and Postgres without TLS.',
    }),
    proxies: z.array(proxyOriginField, { error: 'a list of URLs of proxies' }).prefault([]).meta({
      description:
        'The proxies that they may name as `proxy`, without a login. Scheme, host and port must match. A listed proxy resolves names itself, and its rules decide which addresses it connects to.',
      label: 'list of URLs',
    }),
    types: z
      .array(z.enum(['webhook', 'email', 'postgres'], { error: TYPE_EXPECTED }), {
        error: 'a list of receiver types',
      })
      .prefault(['webhook', 'email'])
      .meta({ description: 'The types that they may have.', label: 'list of types' }),
  })
    .prefault({})
    .meta({
      description:
        'Limits of receivers made through the API, not of those of this file. Without it they connect to public addresses only. Stored ones outside the limits are not called, and what is open waits.',
    }),
  console: flagField().prefault(true).meta({
    description:
      'Whether the console is served at `/`, to those who have a token of the API. It is off where the API is off.',
  }),
  publicUrl: baseUrlField.optional().meta({
    description:
      'How receivers reach this server from outside, for the links in events that were cut, and for the console behind a proxy that changes `Host`. Left out, or without an admin token, they have none.',
    label: 'URL',
  }),
  trustProxy: networksField.optional().meta({
    description:
      'The networks of the proxies before this server, such as `["10.0.0.0/8"]`. A request through one of them counts for the last address of its `X-Forwarded-For` outside them, where wrong sign-ins are delayed and streams limited. Left out: all count for the proxy.',
    label: 'list of networks',
  }),
}).meta({
  description: 'Where metrics, health and the API are served.',
  example: [{ host: '127.0.0.1', port: 9464, token: '${INTENTWATCH_TOKEN}' }],
});

/** Builds the server settings from the parsed section. */
export function buildServer(section: z.output<typeof serverSchema>): ServerConfig {
  return {
    host: section.host,
    port: section.port,
    tokens: {
      read: section.tokens?.read ?? null,
      consume: section.tokens?.consume ?? null,
      admin: [section.token, section.tokens?.admin].filter((token) => token !== undefined),
    },
    secretsKey: section.secretsKey ?? null,
    apiReceivers: section.apiReceivers,
    console: section.console,
    publicUrl: section.publicUrl ?? null,
    trustProxy: section.trustProxy ?? [],
  };
}

/** True when a server can be reached from this machine only. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}

/** True when there is an API: a server that other machines can reach needs a token for it. */
export function isApiOn({ host, tokens }: ServerConfig): boolean {
  return tokens.read !== null || tokens.consume !== null || tokens.admin.length > 0 || isLoopbackHost(host);
}

/** True when a section, as written in the file, has an API. */
export function hasApi(tree: JsonValue | undefined): boolean {
  const tokens = member(tree, 'tokens');
  const given = [member(tree, 'token'), ...['read', 'consume', 'admin'].map((name) => member(tokens, name))];
  const host = member(tree, 'host') ?? HOST;
  return given.some((token) => token !== undefined) || (typeof host === 'string' && isLoopbackHost(host));
}

/** Finds tokens that have two rights: a holder of the lesser right would have the greater one as well. */
export function checkServer(tree: JsonValue | undefined): Fault[] {
  const tokens = member(tree, 'tokens');
  const read = member(tokens, 'read');
  const consume = member(tokens, 'consume');
  const admins = [member(tree, 'token'), member(tokens, 'admin')];
  const findings: Fault[] = [];
  for (const [name, token] of Object.entries({ read, consume })) {
    if (typeof token !== 'string' || !admins.includes(token)) continue;
    findings.push({ path: ['tokens', name], expected: 'another token than an admin token' });
  }
  if (findings.length === 0 && typeof read === 'string' && read === consume) {
    findings.push({ path: ['tokens', 'read'], expected: 'another token than server.tokens.consume' });
  }
  return findings;
}
