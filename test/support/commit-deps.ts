import { pino } from 'pino';
import { ARRIVAL_RULE, WATCH_RULES } from '../../src/domain/cadence/watch-rules.ts';
import { Learning } from '../../src/queues/polls/learning.ts';
import type { CommitContext } from '../../src/queues/polls/poll-context.ts';
import { Signals } from '../../src/signals.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import type { Keys } from '../../src/store/keys.ts';
import { LearnedStore } from '../../src/store/learned.ts';
import { Registry } from '../../src/store/registry.ts';
import { AGREEING_CLOCKS } from './agreeing-clocks.ts';

/** Learning at the defaults; not started, so that the learned values do not change. */
export function learningOf(redis: RedisClient, keys: Keys): Learning {
  const log = pino({ level: 'silent' });
  const learned = new LearnedStore(redis, keys);
  return new Learning({ learned, rules: WATCH_RULES, arrivals: ARRIVAL_RULE, log });
}

/** Dependencies of a commit of records, at the defaults, on the stores of a test. */
export function commitDeps(
  redis: RedisClient,
  keys: Keys,
  stores: Pick<CommitContext['stores'], 'subjects' | 'plan'>,
): CommitContext {
  return {
    stores: { ...stores, registry: new Registry(redis, keys, stores.subjects) },
    rules: { statusSource: 'v1', confirmAfterMs: 600_000, finished: {} },
    learning: learningOf(redis, keys),
    clocks: AGREEING_CLOCKS,
    signals: new Signals(),
  };
}
