import { z } from 'zod';
import type { BatchingRules } from '../../domain/events/batching.ts';
import { MOST_IN_DIGEST } from '../../domain/events/batching.ts';
import { isTimeZone } from '../../domain/events/quiet-hours.ts';
import type { JsonValue } from '../../domain/json.ts';
import { type Finding, member } from '../file/tree.ts';
import { durationField } from './duration.ts';
import { mapping, textField, wholeNumberField } from './fields.ts';

const TIME_ZONE = 'a time zone of the IANA database, like Europe/Paris';

/** A time of day, read as minutes after midnight. */
export const timeOfDayField = textField({
  pattern: /^([01]\d|2[0-3]):[0-5]\d$/,
  expected: 'a time of day from 00:00 to 23:59, like "22:00"',
}).transform((text) => Number(text.slice(0, 2)) * 60 + Number(text.slice(3)));

/** A time zone by its name. */
export const timeZoneField = z
  .string({ error: TIME_ZONE })
  // An offset such as +01:00 knows no summer time, and is no name.
  .refine((name) => /^[A-Za-z]/.test(name) && isTimeZone(name), { error: TIME_ZONE });

/** The keys of a receiver that make its events wait for each other. */
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

/** The rules as the rest of the program sees them. */
export function buildBatching({ digest, quietHours }: BatchingFields): BatchingRules {
  return {
    digest: digest === undefined ? null : { everyMs: digest.every, max: digest.max },
    quietHours:
      quietHours === undefined
        ? null
        : { fromMinute: quietHours.from, toMinute: quietHours.to, timeZone: quietHours.timeZone },
  };
}

/** What the times of quiet hours say about each other. */
export function checkQuietHours(item: JsonValue): Finding[] {
  const quiet = member(item, 'quietHours');
  const [from, to] = [member(quiet, 'from'), member(quiet, 'to')];
  if (typeof from !== 'string' || from !== to) return [];
  return [{ path: ['quietHours', 'to'], expected: 'another time of day than "from"' }];
}
