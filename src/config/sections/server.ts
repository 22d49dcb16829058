import type { z } from 'zod';
import { Secret } from '../../secret.ts';
import type { ServerConfig } from '../config.ts';
import { mapping, textField, wholeNumberField } from '../fields/fields.ts';
import { baseUrlField } from '../fields/urls.ts';

/** The `server` section. */
export const serverSchema = mapping({
  host: textField({ pattern: /^[A-Za-z0-9.:_-]+$/, expected: 'a host name or an IP address, like 127.0.0.1' })
    .prefault('127.0.0.1')
    .meta({ description: 'The address on which metrics, health and the API are served.', label: 'host' }),
  port: wholeNumberField({ min: 0, max: 65_535 })
    .prefault(9464)
    .meta({ description: 'The port; 0 takes a free one.' }),
  token: textField({
    pattern: /^[\x21-\x7e]{16,}$/,
    expected: 'a token of 16 or more visible ASCII characters',
  })
    .transform((token) => new Secret(token))
    .optional()
    .meta({
      description:
        'The token that the API asks for, 16 characters or longer. `/metrics`, `/healthz` and `/readyz` never need it.',
      label: 'text',
      writeOnly: true,
    }),
  publicUrl: baseUrlField.optional().meta({
    description:
      'How receivers reach this server from outside, for the links in events that were cut. Left out, or without `token`, they have none.',
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
    token: section.token ?? null,
    publicUrl: section.publicUrl ?? null,
  };
}
