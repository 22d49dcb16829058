import { z } from 'zod';
import { MAX_GLOB_LENGTH } from '../../domain/events/filter.ts';
import { correctedPattern } from '../../domain/events/patterns.ts';
import { durationField } from './duration.ts';
import { mapping, nameField, rateField, textField } from './fields.ts';

const globField = textField({
  pattern: new RegExp(`^!?[A-Za-z0-9._*-]{1,${MAX_GLOB_LENGTH}}$`),
  expected: `a pattern of event types, like "intent.*" or "!*.updated" (at most ${MAX_GLOB_LENGTH} letters, digits, . - _ *, after a leading !)`,
}).superRefine((pattern, context) => {
  const corrected = correctedPattern(pattern);
  if (corrected !== null) context.addIssue({ code: 'custom', message: JSON.stringify(corrected) });
});

/** Which event types a receiver gets. */
export const eventsField = z
  .array(globField, { error: 'a list of patterns, like ["intent.*", "!*.updated"]' })
  .min(1, { error: 'at least one pattern of event types' });

/** When a failed delivery is tried again. */
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

/** The number of attempts per second, over all processes. */
export const rateLimitField = rateField({ max: 500 }).optional();
/** True when events of one subject wait for each other. */
export const orderingField = z
  .enum(['none', 'subject'], { error: '"none" or "subject"' })
  .prefault('none')
  .meta({
    description:
      '`subject`: the events of one transfer (or other subject) come one after another by `sequence`, those of different ones side by side. `none`: whatever is ready is sent, and `data.sequence` tells the order.',
  });

/** After which span of nothing but failures a receiver is disabled. */
export const disableAfterField = durationField({ min: '1s', max: '365d' }).prefault('5d').meta({
  description:
    'After this span of nothing but failures the receiver is disabled: no more attempts, its events are stored for `retention`, and other receivers with `receiver.*` in `events` are reported. `intentwatch receivers enable NAME` delivers what was stored. An answer of 410 disables at once.',
  label: 'duration',
});

/** The name of a receiver. */
export const receiverNameField = nameField.meta({
  description:
    "The receiver's name, by which subscriptions mean it. Unique; its backlog belongs to the name.",
  label: 'name',
});
