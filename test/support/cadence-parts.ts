import { pino } from 'pino';
import { ARRIVAL_RULE, WATCH_RULES } from '../../src/domain/cadence/watch-rules.ts';
import { Learning } from '../../src/queues/polls/learning.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import type { Keys } from '../../src/store/keys.ts';
import { LearnedStore } from '../../src/store/learned.ts';

/** What is learned, at the defaults; not started, so that what is known stands still. */
export function cadenceParts(redis: RedisClient, keys: Keys): { learning: Learning } {
  const log = pino({ level: 'silent' });
  const learned = new LearnedStore(redis, keys, { retentionMs: 60_000 });
  return {
    learning: new Learning({ redis, learned, rules: WATCH_RULES, arrivals: ARRIVAL_RULE, log }),
  };
}
