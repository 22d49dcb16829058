import { z } from 'zod';
import type { PollingConfig } from './config.ts';
import { durationField } from './duration.ts';
import { mapping, textField } from './fields.ts';
import { buildArrivalRule, buildWatches, newTransfersSchema, watchesSchema } from './watch.ts';

const statuses = z
  .array(textField({ pattern: /^\S+$/, expected: 'a status, one word as the upstream writes it' }), {
    error: 'a list of statuses',
  })
  .optional();

/** The `polling` section. */
export const pollingSchema = mapping({
  confirmAfter: durationField({ min: '1s', max: '1d' }).prefault('10m').meta({
    description:
      'How long exact look-ups must confirm an answer that is older than what is known, or unknown, before it is accepted.',
    label: 'duration',
  }),
  fullSweepEvery: durationField({ min: '1s', max: '7d' }).prefault('5m').meta({
    description:
      'How often all pages of a wallet are read, whatever the others show. A wallet of many pages is read less often: a page a minute while new transfers come first, a page in ten seconds otherwise.',
    label: 'duration',
  }),
  watch: watchesSchema,
  newTransfers: newTransfersSchema,
  finished: mapping({
    intent: statuses.meta({ description: 'Statuses that end the tracking of an intent.' }),
    quote: statuses.meta({ description: 'Statuses that end the tracking of a quote.' }),
    gasless: statuses.meta({ description: 'Statuses that end the tracking of a gasless job.' }),
    vault: statuses.meta({ description: 'States that end the tracking of a vault.' }),
    'deposit-address': statuses.meta({ description: 'Statuses that end the tracking of a deposit address.' }),
  })
    .prefault({})
    .meta({ description: 'Which statuses end tracking, per kind. A kind left out uses the built-in ones.' }),
}).meta({
  description: 'The rules of polling.',
  example: [
    {
      confirmAfter: '10m',
      fullSweepEvery: '5m',
      watch: { pending: { median: '40s', longestWait: '30s' }, filled: { weight: 0.25 } },
      newTransfers: { longestWait: '30s' },
      finished: { intent: ['settled', 'refunded'] },
    },
  ],
});

/** Polling as the rest of the program sees it. */
export function buildPolling(section: z.output<typeof pollingSchema>): PollingConfig {
  const finished: PollingConfig['finished'] = {};
  for (const kind of ['intent', 'quote', 'gasless', 'vault', 'deposit-address'] as const) {
    const words = section.finished[kind];
    if (words !== undefined) finished[kind] = words;
  }
  return {
    confirmAfterMs: section.confirmAfter,
    fullSweepEveryMs: section.fullSweepEvery,
    watch: buildWatches(section.watch),
    newTransfers: buildArrivalRule(section.newTransfers),
    finished,
  };
}
