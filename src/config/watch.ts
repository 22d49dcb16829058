import type { z } from 'zod';
import {
  ARRIVAL_RULE,
  type ArrivalRule,
  WATCH_RULES,
  type Watch,
  type WatchRule,
  type WatchRules,
} from '../domain/cadence/watch-rules.ts';
import { durationField } from './duration.ts';
import { mapping, rateField, shareField } from './fields.ts';

function duration(seconds: number): string {
  return Number.isInteger(seconds) ? `${seconds}s` : `${seconds * 1_000}ms`;
}

function waits({ weight, limits }: Pick<ArrivalRule, 'weight' | 'limits'>) {
  return {
    weight: rateField({ max: 1_000 }).prefault(weight).meta({
      description: 'What a second of delay is worth, beside a fill with 1.',
    }),
    shortestWait: durationField({ min: '50ms', max: '1h' }).prefault(duration(limits.leastSeconds)).meta({
      description: 'No two looks are closer than this.',
      label: 'duration',
    }),
    longestWait: durationField({ min: '50ms', max: '1d' }).prefault(duration(limits.mostSeconds)).meta({
      description:
        'The longest time between two looks, which bounds what a wrong estimate costs. Longer where the budget is too small.',
      label: 'duration',
    }),
  };
}

function aged({ limits }: WatchRule) {
  return {
    agedWait: durationField({ min: '50ms', max: '1h' }).prefault(duration(limits.agedSeconds)).meta({
      description: 'The longest time may grow to a tenth of the age, up to this.',
      label: 'duration',
    }),
  };
}

function expected({ expectation }: WatchRule) {
  return {
    median: durationField({ min: '100ms', max: '7d' }).prefault(duration(expectation.medianSeconds)).meta({
      description:
        'The time to its end that is expected before anything was learned: half take longer. Rather too long than too short.',
      label: 'duration',
    }),
    sigma: rateField({ max: 5 }).prefault(expectation.sigma).meta({
      description: 'How much that varies: the standard deviation of its logarithm.',
    }),
    neverShare: shareField().prefault(expectation.neverShare).meta({
      description: 'The share that never comes to its end.',
    }),
  };
}

function watchSchema(watch: Watch, description: string) {
  const rule = WATCH_RULES[watch];
  return mapping({ ...waits(rule), ...aged(rule), ...expected(rule) })
    .prefault({})
    .meta({ description });
}

/** `polling.watch`: how what is waited for is looked at. */
export const watchesSchema = mapping({
  pending: watchSchema('pending', 'A pending transfer, until it is filled.'),
  filled: watchSchema('filled', 'A filled transfer, until it is settled.'),
  gasless: watchSchema('gasless', 'A gasless job, until its next step.'),
  vault: watchSchema('vault', 'A funded vault, until it is published.'),
})
  .prefault({})
  .meta({
    description: 'How looks at what is under way are timed: by what is expected, then by what was learned.',
  });

/** `polling.newTransfers`: how wallets are looked at for new transfers. */
export const newTransfersSchema = mapping({
  ...waits(ARRIVAL_RULE),
  every: durationField({ min: '1s', max: '365d' }).prefault(duration(ARRIVAL_RULE.everySeconds)).meta({
    description: 'How often a new transfer is expected in a wallet before anything was learned.',
    label: 'duration',
  }),
})
  .prefault({})
  .meta({
    description: 'How looks at a wallet for new transfers are timed.',
  });

/** The rules of the config as the cadence has them. */
export function buildWatches(section: z.output<typeof watchesSchema>): WatchRules {
  const build = (watch: Watch): WatchRule => {
    const { median, sigma, neverShare, agedWait, ...rest } = section[watch];
    const { weight, limits } = buildWaits(rest);
    return {
      weight,
      limits: { ...limits, agedSeconds: agedWait / 1_000 },
      expectation: { medianSeconds: median / 1_000, sigma, neverShare },
    };
  };
  return {
    pending: build('pending'),
    filled: build('filled'),
    gasless: build('gasless'),
    vault: build('vault'),
  };
}

export function buildArrivalRule({ every, ...rest }: z.output<typeof newTransfersSchema>): ArrivalRule {
  return { ...buildWaits(rest), everySeconds: every / 1_000 };
}

function buildWaits(section: {
  weight: number;
  shortestWait: number;
  longestWait: number;
}): Pick<ArrivalRule, 'weight' | 'limits'> {
  const { weight, shortestWait, longestWait } = section;
  return { weight, limits: { leastSeconds: shortestWait / 1_000, mostSeconds: longestWait / 1_000 } };
}
