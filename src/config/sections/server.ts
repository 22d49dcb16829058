import { isIPv4 } from 'node:net';
import type { z } from 'zod';
import type { JsonValue } from '../../domain/json.ts';
import { Secret } from '../../secret.ts';
import type { ServerConfig } from '../config.ts';
import { flagField, mapping, textField, wholeNumberField } from '../fields/fields.ts';
import { baseUrlField } from '../fields/urls.ts';
import { type Finding, member } from '../file/tree.ts';

const tokenField = textField({
  pattern: /^[\x21-\x7e]{16,}$/,
  expected: 'a token of 16 or more visible ASCII characters',
})
  .transform((token) => new Secret(token))
  .optional();

const HOST = '127.0.0.1';

/** The `server` section. */
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
        'The key with which Redis keeps the URLs, secrets and headers of receivers that are made through the API, 32 characters or longer, the same in all processes. Left out: none can be made.',
      label: 'text',
      writeOnly: true,
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
}).meta({
  description: 'Where metrics, health and the API are served.',
  example: [{ host: '127.0.0.1', port: 9464, token: '${INTENTWATCH_TOKEN}' }],
});

/** The server as the rest of the program sees it. */
export function buildServer(section: z.output<typeof serverSchema>): ServerConfig {
  return {
    host: section.host,
    port: section.port,
    tokens: {
      read: section.tokens?.read ?? null,
      admin: [section.token, section.tokens?.admin].filter((token) => token !== undefined),
    },
    secretsKey: section.secretsKey ?? null,
    console: section.console,
    publicUrl: section.publicUrl ?? null,
  };
}

/** Whether a server can be reached from this machine alone. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}

/** Whether there is an API: not without a token where it can be reached from elsewhere. */
export function isApiOn({ host, tokens }: Pick<ServerConfig, 'host' | 'tokens'>): boolean {
  return tokens.read !== null || tokens.admin.length > 0 || isLoopbackHost(host);
}

/** The same of a section as it stands in the file. */
export function hasApi(tree: JsonValue | undefined): boolean {
  const tokens = member(tree, 'tokens');
  const given = [member(tree, 'token'), member(tokens, 'read'), member(tokens, 'admin')];
  const host = member(tree, 'host') ?? HOST;
  return given.some((token) => token !== undefined) || (typeof host === 'string' && isLoopbackHost(host));
}

/** What the tokens say about each other: a token for reading that is an admin's as well would change things. */
export function checkServer(tree: JsonValue | undefined): Finding[] {
  const tokens = member(tree, 'tokens');
  const read = member(tokens, 'read');
  if (typeof read !== 'string') return [];
  const isAdmins = [member(tree, 'token'), member(tokens, 'admin')].includes(read);
  return isAdmins ? [{ path: ['tokens', 'read'], expected: 'another token than an admin token' }] : [];
}
