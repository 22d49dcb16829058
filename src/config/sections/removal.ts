import type { z } from 'zod';
import { durationField } from '../fields/duration.ts';
import { mapping } from '../fields/fields.ts';

/** The `removal` section. */
export const removalSchema = mapping({
  graceSpan: durationField({ min: '0s', max: '3650d' }).prefault('24h').meta({
    description:
      'How long a wallet, a subscription or anything else that left `subscriptions` is suspended before it is removed: it is polled with spare budget, its events wait, and are delivered with `data.suspended: true` when it comes back. `0s`: it is removed at once.',
    label: 'duration',
  }),
}).meta({ description: 'What becomes of what leaves the config.' });

/** The time that what leaves the config is suspended. */
export type RemovalConfig = { graceSpanMs: number };

/** The section as the rest of the program sees it. */
export function buildRemoval({ graceSpan }: z.output<typeof removalSchema>): RemovalConfig {
  return { graceSpanMs: graceSpan };
}
