import type { z } from 'zod';
import type { SmtpConfig } from '../config.ts';
import { mapping, textField } from '../fields/fields.ts';
import { secretServerUrlField } from '../fields/urls.ts';

const ADDRESS = String.raw`[^\s@<>"(),:;\x00-\x1f]+@[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?`;

/** A mail address alone: `transfers@example.com`. */
export const mailAddressField = textField({
  pattern: new RegExp(`^${ADDRESS}$`),
  expected: 'one mail address, like transfers@example.com',
});

/** The `smtp` section. */
export const smtpSchema = mapping({
  url: secretServerUrlField({
    schemes: ['smtp', 'smtps'],
    example: 'smtp://user:password@mail.example.com:587',
  }).meta({
    description: 'The mail server, with user and password where it requests them.',
    label: 'URL',
  }),
  // A line break in the display name would add headers to the mail.
  from: textField({
    pattern: new RegExp(String.raw`^(${ADDRESS}|("[^"\\\x00-\x1f]*"|[^<>"@,;:\\\x00-\x1f]+) ?<${ADDRESS}>)$`),
    expected: 'a mail address with or without a name, like "Intentwatch <transfers@example.com>"',
  }).meta({
    description: 'The sender, with or without a display name.',
    label: 'mail address',
  }),
}).meta({
  description: 'How mail leaves. Needed when a receiver has `type: email`.',
  example: [{ url: 'smtp://127.0.0.1:1025', from: 'Intentwatch <transfers@example.com>' }],
});

/** Mail as the rest of the program sees it. */
export function buildSmtp(section: z.output<typeof smtpSchema> | undefined): SmtpConfig | null {
  return section === undefined ? null : { url: section.url, from: section.from };
}
