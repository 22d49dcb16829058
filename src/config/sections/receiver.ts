import { z } from 'zod';
import type { JsonValue } from '../../domain/json.ts';
import type { Receiver, ReceiverTls, Retries, SmtpConfig } from '../config.ts';
import { durationField, flagField, mapping, textField, wholeNumberField } from '../fields/fields.ts';
import {
  headersField,
  httpUrl,
  isInNetworks,
  isPrivateHost,
  networksField,
  proxyField,
  secretServerUrlField,
  secretUrlField,
} from '../fields/http.ts';
import {
  batchingFields,
  buildBatching,
  buildFilter,
  CHAT_FORMATS,
  checkQuietHours,
  disableAfterField,
  eventsField,
  FORMAT_RATE_LIMITS,
  filterFields,
  orderingField,
  rateLimitField,
  receiverNameField,
  retriesField,
  WEBHOOK_FORMATS,
} from '../fields/receiver.ts';
import {
  expiringSecretField,
  MOST_SECRETS,
  SECRET_EXPECTED,
  signingSecretField,
} from '../fields/signing-secret.ts';
import { checkTls, tlsSchema } from '../fields/tls.ts';
import { type Fault, findRepeated, items, member } from '../file/errors.ts';
import { buildPostgres, checkPostgres, postgresSchema } from './postgres-receiver.ts';

const ADDRESS = String.raw`[^\s@<>"(),:;\x00-\x1f]+@[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?`;

export const mailAddressField = textField({
  pattern: new RegExp(`^${ADDRESS}$`),
  expected: 'one mail address, like transfers@example.com',
});

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

/** Builds the mail settings from the parsed section. */
export function buildSmtp(section: z.output<typeof smtpSchema> | undefined): SmtpConfig | null {
  return section === undefined ? null : { url: section.url, from: section.from };
}

const EITHER = new Intl.ListFormat('en-GB', { type: 'disjunction' });

const CHAT_RATE_LIMITS = CHAT_FORMATS.map((format) => `${FORMAT_RATE_LIMITS[format]} for \`${format}\``);

const webhookSchema = mapping({
  name: receiverNameField,
  type: z.literal('webhook').meta({ description: '`webhook`.' }),
  format: z
    .enum(WEBHOOK_FORMATS, { error: EITHER.format(WEBHOOK_FORMATS.map((format) => `"${format}"`)) })
    .prefault('standard')
    .meta({
      description:
        'What is sent: `standard` is the event, signed; each other is a [message to a chat](webhooks.md#messages-to-a-chat).',
    }),
  url: secretUrlField({ example: 'https://example.com/hook' }).meta({
    description: 'The URL that is called. Secret: it never appears in logs or errors.',
    label: 'URL',
  }),
  secrets: z
    .array(z.union([signingSecretField, expiringSecretField], { error: SECRET_EXPECTED }), {
      error: 'a list of signing secrets, each whsec_ or whsk_ and base64',
    })
    .min(1, { error: 'at least one signing secret' })
    .optional()
    .meta({
      description:
        'Required for the format `standard`. The secrets that sign, each `whsec_` and base64 of 24 to 64 bytes (HMAC), or `whsk_` and base64 of an ed25519 key; `keygen` makes both. Several while rotating: every request is signed with all of them. `{ secret: whsec_…, until: 2026-12-01T00:00:00Z }` signs until then; at least one has no end.',
      label: 'list of secrets',
      writeOnly: true,
    }),
  events: eventsField.prefault(['*']).meta({
    description: 'Which event types are sent: patterns with `*`, a leading `!` takes away.',
    label: 'list of patterns',
  }),
  ...filterFields,
  headers: headersField.prefault({}).meta({
    description:
      'Headers of your own, such as `Authorization`. Their values are stored secret. Not `webhook-*`, `intentwatch-*`, `Host`, `Content-*`, `User-Agent` and those of the connection.',
    label: 'mapping',
  }),
  timeout: durationField({ min: '100ms', max: '5m' }).prefault('15s').meta({
    description: 'How long an attempt may take, from connecting to the end of the answer.',
    label: 'duration',
  }),
  retries: retriesField,
  concurrency: wholeNumberField({ min: 1, max: 100 })
    .prefault(20)
    .meta({ description: 'How many deliveries are under way at once.' }),
  rateLimit: rateLimitField.meta({
    description: `How many attempts per second, over all processes; 0.5 is one every 2 s. Left out: no limit, but ${CHAT_RATE_LIMITS.join(', ')}.`,
  }),
  tls: tlsSchema.optional().meta({ description: 'Files for TLS that is not the usual one.' }),
  ordering: orderingField,
  disableAfter: disableAfterField,
  proxy: proxyField.optional().meta({
    description:
      'An http or https proxy through which the URL is called, with user and password where it requests them. Secret.',
    label: 'URL',
  }),
  allowPrivateNetwork: flagField().prefault(false).meta({
    description:
      'Allows every private, loopback and link-local address. `allowNetworks` allows only those that are meant.',
  }),
  allowNetworks: networksField.optional().meta({
    description:
      'Allows addresses of these networks although they are private, such as `["10.0.0.0/8"]`. Not beside `allowPrivateNetwork: true`.',
    label: 'list of networks',
  }),
  allowInsecure: flagField().prefault(false).meta({ description: 'Allows a plain http URL.' }),
}).meta({
  title: 'webhook',
  description: 'A receiver with `type: webhook`: a URL that is called with signed events.',
  example: [
    {
      name: 'backend',
      type: 'webhook',
      url: 'https://example.com/hooks/transfers',
      secrets: ['${WEBHOOK_SECRET}'],
      events: ['intent.*', 'gasless.*'],
      retries: { delays: ['5s', '5m', '1h'], jitter: 0.1 },
    },
  ],
});

const emailSchema = mapping({
  name: receiverNameField,
  type: z.literal('email').meta({ description: '`email`.' }),
  to: z
    .array(mailAddressField, { error: 'a list of mail addresses' })
    .min(1, { error: 'at least one mail address' })
    .meta({
      description: 'Who gets the mail. One mail goes to all of them.',
      label: 'list of mail addresses',
    }),
  events: eventsField.prefault(['*', '!*.updated']).meta({
    description: 'Which event types are mailed: patterns with `*`, a leading `!` takes away.',
    label: 'list of patterns',
  }),
  ...filterFields,
  timeout: durationField({ min: '100ms', max: '5m' }).prefault('30s').meta({
    description: 'How long an attempt may take.',
    label: 'duration',
  }),
  retries: retriesField,
  concurrency: wholeNumberField({ min: 1, max: 100 })
    .prefault(1)
    .meta({ description: 'How many mails are under way at once.' }),
  rateLimit: rateLimitField.meta({
    description: 'How many mails per second, over all processes; 0.5 is one every 2 s. Left out: no limit.',
  }),
  ordering: orderingField,
  disableAfter: disableAfterField,
  ...batchingFields,
}).meta({
  title: 'email',
  description: 'A receiver with `type: email`: a list of mail addresses. Needs the `smtp` section.',
  example: [
    {
      name: 'oncall',
      type: 'email',
      to: ['oncall@example.com'],
      events: ['intent.refund*', 'intent.failed', '*.overdue'],
    },
  ],
});

export const receiverSchema = z.discriminatedUnion('type', [webhookSchema, emailSchema, postgresSchema], {
  error: ({ input }) => (isPlainMapping(input) ? '"webhook", "email" or "postgres"' : 'a mapping'),
});

function isPlainMapping(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Builds a receiver from its parsed section; `tls` is the content of its files. */
export function buildReceiver(
  item: z.output<typeof receiverSchema>,
  { tls }: { tls: ReceiverTls | null },
): Receiver {
  const common = {
    name: item.name,
    events: item.events,
    filter: buildFilter(item),
    timeoutMs: item.timeout,
    retries: { delaysMs: item.retries.delays, jitter: item.retries.jitter } satisfies Retries,
    concurrency: item.concurrency,
    disableAfterMs: item.disableAfter,
  };
  switch (item.type) {
    case 'webhook': {
      const { format, url, headers, allowPrivateNetwork, allowInsecure } = item;
      const { allowNetworks = [], proxy = null } = item;
      const rateLimit = item.rateLimit ?? FORMAT_RATE_LIMITS[format];
      const { ordering } = item;
      const own = { format, url, secrets: item.secrets ?? [], headers, tls, rateLimit, ordering };
      return {
        ...common,
        ...own,
        type: 'webhook',
        proxy,
        allowPrivateNetwork,
        allowNetworks,
        allowInsecure,
        apiNetworks: null,
      };
    }
    case 'email':
      return {
        ...common,
        type: 'email',
        to: item.to,
        rateLimit: item.rateLimit ?? null,
        ordering: item.ordering,
        batching: buildBatching(item),
      };
    case 'postgres':
      return { ...common, ...buildPostgres(item), tls, apiNetworks: null };
  }
}

/** Checks the fields of one receiver against each other and against the `smtp` section. */
export function checkReceiver(item: JsonValue, { hasSmtp }: { hasSmtp: boolean }): Fault[] {
  const findings = checkEvents(item);
  if (member(item, 'type') === 'webhook') {
    findings.push(
      ...checkUrl(item),
      ...checkNetworks(item),
      ...checkSecrets(item),
      ...findRepeated(member(item, 'secrets'), {
        at: ['secrets'],
        expected: 'each signing secret once',
        keyOf: (one) => asText(member(one, 'secret') ?? one),
      }),
    );
  }
  if (member(item, 'type') === 'postgres') findings.push(...checkPostgres(item));
  if (member(item, 'type') === 'email') {
    findings.push(
      ...findRepeated(member(item, 'to'), { at: ['to'], expected: 'each mail address once', keyOf: asText }),
    );
    findings.push(...checkQuietHours(item));
    if (!hasSmtp)
      findings.push({
        path: ['type'],
        found: 'an email receiver but no mail server',
        expected: 'an smtp section',
      });
  }
  return findings;
}

/** Programs get signed requests; a chat verifies nothing. */
function checkSecrets(item: JsonValue): Fault[] {
  const format = member(item, 'format') ?? 'standard';
  const secrets = member(item, 'secrets');
  const isEnding = (secret: JsonValue): boolean => member(secret, 'until') !== undefined;
  if (items(secrets).length > 0 && items(secrets).every(isEnding)) {
    const expected = 'one that has no end, or nothing signs after the last';
    return [{ path: ['secrets'], found: 'only secrets that end', expected }];
  }
  if (items(secrets).length > MOST_SECRETS) {
    return [{ path: ['secrets'], expected: `at most ${MOST_SECRETS} signing secrets` }];
  }
  if (format !== 'standard' || secrets !== undefined) return [];
  return [
    { path: ['secrets'], found: 'nothing', expected: 'a list of signing secrets, as keygen makes them' },
  ];
}

function checkUrl(item: JsonValue): Fault[] {
  const text = member(item, 'url');
  const url = typeof text === 'string' ? httpUrl(text) : null;
  if (url === null) return [];
  const findings = checkTls(member(item, 'tls'), { isHttps: url.protocol === 'https:' });
  if (url.protocol === 'http:' && member(item, 'allowInsecure') !== true) {
    findings.push({
      path: ['url'],
      found: 'an http:// URL',
      expected: 'an https:// URL (or allowInsecure: true)',
    });
  }
  const networks = items(member(item, 'allowNetworks')).filter((network) => typeof network === 'string');
  const isAllowed = member(item, 'allowPrivateNetwork') === true || isInNetworks(url, networks);
  if (isPrivateHost(url) && !isAllowed) {
    findings.push({
      path: ['url'],
      found: 'a URL on a private or loopback address',
      expected: 'a public host (or its network in allowNetworks, or allowPrivateNetwork: true)',
    });
  }
  return findings;
}

/** A user who allows all private networks must not believe that only some are allowed. */
function checkNetworks(item: JsonValue): Fault[] {
  if (member(item, 'allowPrivateNetwork') !== true || member(item, 'allowNetworks') === undefined) return [];
  return [
    {
      path: ['allowNetworks'],
      found: 'allowNetworks beside allowPrivateNetwork: true',
      expected: 'one of them',
      atKey: true,
    },
  ];
}

function checkEvents(item: JsonValue): Fault[] {
  const patterns = items(member(item, 'events'));
  const onlyTakesAway =
    patterns.length > 0 && patterns.every((glob) => typeof glob === 'string' && glob.startsWith('!'));
  if (!onlyTakesAway) return [];
  return [
    {
      path: ['events'],
      found: 'only patterns that take away',
      expected: 'at least one without "!", like "*"',
    },
  ];
}

function asText(item: JsonValue): string | null {
  return typeof item === 'string' ? item : null;
}
