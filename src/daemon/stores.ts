import type { Config } from '../config/config.ts';
import { arrivalRule, watchRules } from '../domain/cadence/watch-rules.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import type { OperationContext } from '../operations/operation.ts';
import type { RedisClient } from '../store/commands.ts';
import type { Epoch } from '../store/epoch.ts';
import type { HealthStore } from '../store/health.ts';
import type { ImportedQuotes } from '../store/imported-quotes.ts';
import type { Keys } from '../store/keys.ts';
import { LearnedStore } from '../store/learned.ts';
import { AnswerStore, ConsumerStore, EndedSessionStore } from '../store/server-state.ts';
import type { OnForeign } from '../store/stored.ts';
import { type Stores, storesOn } from '../store/stores.ts';

/** Stores of the running components, each on the connection that is its own. */
export type DaemonStores = Stores & { importedQuotes: ImportedQuotes; health: HealthStore };

type OperationAssembly = {
  redis: RedisClient;
  keys: Keys;
  epoch: Epoch;
  directory: Directory;
  process: string;
  onForeign: OnForeign;
};

/** Constructs the dependencies of the API's operations, on a connection of their own. */
export function assembleOperations(
  { retentionMs, polling, removal }: Pick<Config, 'retentionMs' | 'polling' | 'removal'>,
  { redis, keys, epoch, directory, process, onForeign }: OperationAssembly,
): OperationContext {
  const learned = new LearnedStore(redis, keys, { onForeign });
  const model = { rules: watchRules(polling), arrivals: arrivalRule(polling) };
  return {
    redis,
    directory,
    knowledge: () => learned.knowledge(model),
    graceSpanMs: removal.graceSpanMs,
    statusSource: keys.statusSource,
    stores: {
      ...storesOn(redis, { keys, retentionMs, epoch, process, onForeign }),
      learned,
      answers: new AnswerStore(redis, keys),
      consumers: new ConsumerStore(redis, keys),
      sessions: new EndedSessionStore(redis, keys),
    },
  };
}
