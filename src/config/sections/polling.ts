import { z } from 'zod';
import type { JsonValue } from '../../domain/json.ts';
import type { PollingConfig } from '../config.ts';
import { durationField, mapping, parseDuration, textField } from '../fields/fields.ts';
import { type Fault, member } from '../file/errors.ts';

const statuses = z
  .array(textField({ pattern: /^\S+$/, expected: 'a status, one word as the upstream writes it' }), {
    error: 'a list of statuses',
  })
  .optional();

const DEFAULT_SHORTEST = '1s';
const DEFAULT_LONGEST = '30s';

export const pollingSchema = mapping({
  shortestWait: durationField({ min: '1s', max: '1h' }).prefault(DEFAULT_SHORTEST).meta({
    description:
      'No two polls of a wallet, or of something pending, are closer than this; of what is filled five times, of what is in trouble thirty times as long. A wallet costs about 86,400 requests a day at 1s, up to twice as many while transfers are under way, within `upstream.requestsPerSecond`.',
    label: 'duration',
  }),
  longestWait: durationField({ min: '1s', max: '1d' }).prefault(DEFAULT_LONGEST).meta({
    description:
      'The longest time between two polls of a wallet, or of something pending that is young. Longer only where three fifths of the budget are too little for it.',
    label: 'duration',
  }),
  confirmAfter: durationField({ min: '1s', max: '1d' }).prefault('10m').meta({
    description:
      'How long exact polls must confirm an answer that is older than what is known, returns to what was left at the same `updatedAt`, or is unknown, before it is accepted. A return where no answer has an `updatedAt` takes 45 s at most.',
    label: 'duration',
  }),
  fullSweepEvery: durationField({ min: '1s', max: '7d' }).prefault('5m').meta({
    description:
      'How often all pages of a wallet are read, whatever the others show. A wallet of many pages is read less often: a page a minute while new transfers come first, a page in ten seconds otherwise.',
    label: 'duration',
  }),
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
      shortestWait: '1s',
      longestWait: '30s',
      finished: { intent: ['settled', 'refunded'] },
    },
  ],
});

/** Checks the fields of `polling` against each other. */
export function checkPolling(section: JsonValue | undefined): Fault[] {
  const written = {
    shortestWait: member(section, 'shortestWait'),
    longestWait: member(section, 'longestWait'),
  };
  const shortest = written.shortestWait ?? DEFAULT_SHORTEST;
  const longest = written.longestWait ?? DEFAULT_LONGEST;
  const [shortestMs, longestMs] = [shortest, longest].map((text) =>
    typeof text === 'string' ? parseDuration(text) : null,
  );
  if (shortestMs == null || longestMs == null || shortestMs <= longestMs) return [];
  // The written field is the one to change.
  return written.longestWait === undefined
    ? [
        {
          path: ['shortestWait'],
          expected: `no more than longestWait, which is ${DEFAULT_LONGEST} where it is left out`,
        },
      ]
    : [{ path: ['longestWait'], expected: 'no less than shortestWait' }];
}

/** Builds the polling settings from the parsed section. */
export function buildPolling(section: z.output<typeof pollingSchema>): PollingConfig {
  const finished: PollingConfig['finished'] = {};
  for (const kind of ['intent', 'quote', 'gasless', 'vault', 'deposit-address'] as const) {
    const words = section.finished[kind];
    if (words !== undefined) finished[kind] = words;
  }
  return {
    confirmAfterMs: section.confirmAfter,
    fullSweepEveryMs: section.fullSweepEvery,
    shortestSeconds: section.shortestWait / 1_000,
    longestSeconds: section.longestWait / 1_000,
    finished,
  };
}
