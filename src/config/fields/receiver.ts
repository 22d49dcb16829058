import { z } from 'zod';
import { type BatchingRules, isTimeZone, MOST_IN_DIGEST } from '../../domain/events/batching.ts';
import { correctedPattern } from '../../domain/events/event-types.ts';
import { MAX_GLOB_LENGTH, type TransferFilter } from '../../domain/events/filter.ts';
import type { JsonValue } from '../../domain/json.ts';
import { type Fault, member } from '../file/errors.ts';
import { walletField } from './addresses.ts';
import { durationField, mapping, nameField, rateField, textField, wholeNumberField } from './fields.ts';

/** Formats of a webhook's body: the event, signed, or a message for people in a chat's channel. */
export const WEBHOOK_FORMATS = ['standard', 'slack', 'discord', 'teams'] as const;

export type WebhookFormat = (typeof WEBHOOK_FORMATS)[number];

export const CHAT_FORMATS = WEBHOOK_FORMATS.filter((format) => format !== 'standard');

/** Default attempts per second of each format; a chat accepts about one a second, or 30 a minute. */
export const FORMAT_RATE_LIMITS: Readonly<Record<WebhookFormat, number | null>> = {
  standard: null,
  slack: 1,
  discord: 0.5,
  teams: 0.5,
};

const globField = textField({
  pattern: new RegExp(`^!?[A-Za-z0-9._*-]{1,${MAX_GLOB_LENGTH}}$`),
  expected: `a pattern of event types, like "intent.*" or "!*.updated" (at most ${MAX_GLOB_LENGTH} letters, digits, . - _ *, after a leading !)`,
}).superRefine((pattern, context) => {
  const corrected = correctedPattern(pattern);
  if (corrected !== null) context.addIssue({ code: 'custom', message: JSON.stringify(corrected) });
});

export const eventsField = z
  .array(globField, { error: 'a list of patterns, like ["intent.*", "!*.updated"]' })
  .min(1, { error: 'at least one pattern of event types' });

export const retriesField = mapping({
  delays: z
    .array(durationField({ min: '1ms', max: '30d' }), { error: 'a list of durations' })
    .max(100, { error: 'at most 100 waits' })
    .prefault(['5s', '5m', '30m', '2h', '5h', '10h', '14h', '20h', '24h'])
    .meta({
      description: 'The waits between attempts; one attempt more than there are waits. `[]` tries once.',
    }),
  jitter: z
    .number({ error: 'a number from 0 to 1' })
    .min(0, { error: 'a number from 0 to 1' })
    .max(1, { error: 'a number from 0 to 1' })
    .prefault(0.1)
    .meta({ description: 'The share of each wait that is random, 0 to 1.' }),
})
  .prefault({})
  .meta({ description: 'When a failed delivery is tried again.' });

export const rateLimitField = rateField({ max: 500 }).optional();
export const orderingField = z
  .enum(['none', 'subject'], { error: '"none" or "subject"' })
  .prefault('none')
  .meta({
    description:
      '`subject`: the events of one transfer (or other subject) come one after another by `sequence`, those of different ones side by side. `none`: whatever is ready is sent, and `data.sequence` gives the order.',
  });

export const disableAfterField = durationField({ min: '1s', max: '365d' }).prefault('5d').meta({
  description:
    'After this span of nothing but failures the receiver is disabled: no more attempts, its events are stored for `retention`, and other receivers with `receiver.*` in `events` are reported. `intentwatch receivers enable NAME` delivers what was stored. An answer of 410 disables at once.',
  label: 'duration',
});

export const receiverNameField = nameField.meta({
  description:
    "The receiver's name, by which subscriptions mean it. Unique; its backlog belongs to the name.",
  label: 'name',
});

/** Keys of a receiver that exclude transfers. A field that the event lacks excludes nothing. */
export const filterFields = {
  wallets: z
    .array(walletField, { error: 'a list of wallet addresses' })
    .min(1, { error: 'at least one wallet address' })
    .optional()
    .meta({
      description:
        'Only events that come through these wallets of the subscriptions. What a subscription names by itself (an intent, a quote …) passes.',
      label: 'list of addresses',
    }),
  chains: z
    .array(wholeNumberField({ min: 1, max: Number.MAX_SAFE_INTEGER }), { error: 'a list of chain ids' })
    .min(1, { error: 'at least one chain id' })
    .optional()
    .meta({
      description:
        'Only transfers from or to these chains, by id. One of which an end is not known yet passes.',
      label: 'list of numbers',
    }),
  minAmount: textField({
    pattern: /^\d{1,30}(\.\d{1,30})?$/,
    expected: 'an amount in token units, in quotes, like "1000" or "0.5"',
  })
    .optional()
    .meta({
      description:
        'Only transfers that send or deliver at least so much, in token units (`"1000"` is 1,000 USDC). One of an unknown amount or of a token that Intentwatch does not know passes.',
      label: 'text',
    }),
};

/** Builds the filter from its keys. */
export function buildFilter(keys: {
  wallets?: string[] | undefined;
  chains?: number[] | undefined;
  minAmount?: string | undefined;
}): TransferFilter {
  return {
    wallets: keys.wallets ?? null,
    chains: keys.chains?.map(String) ?? null,
    minAmount: keys.minAmount ?? null,
  };
}

const TIME_ZONE = 'a time zone of the IANA database, like Europe/Paris';

export const timeOfDayField = textField({
  pattern: /^([01]\d|2[0-3]):[0-5]\d$/,
  expected: 'a time of day from 00:00 to 23:59, like "22:00"',
}).transform((text) => Number(text.slice(0, 2)) * 60 + Number(text.slice(3)));

export const timeZoneField = z
  .string({ error: TIME_ZONE })
  // An offset such as +01:00 has no summer time, and is no name.
  .refine((name) => /^[A-Za-z]/.test(name) && isTimeZone(name), { error: TIME_ZONE });

export const batchingFields = {
  digest: mapping({
    every: durationField({ min: '1s', max: '7d' }).meta({
      description: 'How long the first event waits for others; so one digest goes out in this time at most.',
      label: 'duration',
    }),
    max: wholeNumberField({ min: 1, max: MOST_IN_DIGEST })
      .prefault(50)
      .meta({ description: 'A digest goes out at once when so many events wait.' }),
  })
    .optional()
    .meta({
      description:
        'Several events in one mail. Left out: each event is a mail of its own, in one thread per transfer.',
    }),
  quietHours: mapping({
    from: timeOfDayField.meta({
      description: 'When quiet hours begin: a time of day, in quotes. Events wait from then on.',
      label: 'time of day',
    }),
    to: timeOfDayField.meta({
      description: 'When they end: what has waited is sent as one digest. May lie before `from`.',
      label: 'time of day',
    }),
    timeZone: timeZoneField.meta({
      description: 'The zone whose clocks count, summer time included, like `Europe/Paris`.',
      label: 'time zone',
    }),
  })
    .optional()
    .meta({ description: 'When no mail is sent.' }),
};

type BatchingFields = {
  digest?: { every: number; max: number } | undefined;
  quietHours?: { from: number; to: number; timeZone: string } | undefined;
};

/** Builds the batching rules from their fields. */
export function buildBatching({ digest, quietHours }: BatchingFields): BatchingRules {
  return {
    digest: digest === undefined ? null : { everyMs: digest.every, max: digest.max },
    quietHours:
      quietHours === undefined
        ? null
        : { fromMinute: quietHours.from, toMinute: quietHours.to, timeZone: quietHours.timeZone },
  };
}

/** Checks the times of quiet hours against each other. */
export function checkQuietHours(item: JsonValue): Fault[] {
  const quiet = member(item, 'quietHours');
  const [from, to] = [member(quiet, 'from'), member(quiet, 'to')];
  if (typeof from !== 'string' || from !== to) return [];
  return [{ path: ['quietHours', 'to'], expected: 'another time of day than "from"' }];
}
