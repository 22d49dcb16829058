import { pino } from 'pino';
import { ARRIVAL_RULE, WATCH_RULES } from '../../src/domain/cadence/watch-rules.ts';
import { Learning } from '../../src/queues/learning.ts';
import { Pricing } from '../../src/queues/pricing.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import type { Keys } from '../../src/store/keys.ts';
import { LearnedStore } from '../../src/store/learned.ts';
import { PriceStore } from '../../src/store/prices.ts';

/** The parts by which looks are timed, at the defaults; not started, so that the price and what is known stand still. */
export function cadenceParts(redis: RedisClient, keys: Keys): { pricing: Pricing; learning: Learning } {
  const log = pino({ level: 'silent' });
  const budgets = { status: 5, gateway: 5, quotes: 1 };
  const learned = new LearnedStore(redis, keys, { retentionMs: 60_000 });
  return {
    pricing: new Pricing({ prices: new PriceStore(redis, keys), budgets, log }),
    learning: new Learning({ redis, learned, rules: WATCH_RULES, arrivals: ARRIVAL_RULE, log }),
  };
}
