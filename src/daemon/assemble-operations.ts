import type { Config } from '../config/config.ts';
import { arrivalRule, watchRules } from '../domain/cadence/watch-rules.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import type { OperationParts } from '../operations/parts.ts';
import { AnswerStore } from '../store/answers.ts';
import type { RedisClient } from '../store/commands.ts';
import { ConsumerStore } from '../store/consumers.ts';
import type { Epoch } from '../store/epoch.ts';
import type { Keys } from '../store/keys.ts';
import { LearnedStore } from '../store/learned.ts';
import { SessionStore } from '../store/sessions.ts';
import type { OnForeign } from '../store/stored.ts';
import { storesOn } from './stores.ts';

/** What operations are made from. */
type OperationAssembly = {
  redis: RedisClient;
  keys: Keys;
  epoch: Epoch;
  directory: Directory;
  onForeign: OnForeign;
};

/** Constructs what the API sees and acts with, on a connection of its own. */
export function assembleOperations(
  { retentionMs, polling, removal }: Pick<Config, 'retentionMs' | 'polling' | 'removal'>,
  { redis, keys, epoch, directory, onForeign }: OperationAssembly,
): OperationParts {
  const learned = new LearnedStore(redis, keys, { onForeign });
  const model = { rules: watchRules(polling), arrivals: arrivalRule(polling) };
  return {
    redis,
    directory,
    knowledge: () => learned.knowledge(model),
    graceSpanMs: removal.graceSpanMs,
    stores: {
      ...storesOn(redis, { keys, retentionMs, epoch, onForeign }),
      learned,
      answers: new AnswerStore(redis, keys),
      consumers: new ConsumerStore(redis, keys),
      sessions: new SessionStore(redis, keys),
    },
  };
}
