import type { Logger } from 'pino';
import type { ChainReader } from '../../chains/chain-readers.ts';
import type { JudgeRules } from '../../domain/proof/verdict.ts';
import type { Signals } from '../../signals.ts';
import type { CheckStore } from '../../store/checks.ts';
import type { RedisClient } from '../../store/commands.ts';
import type { Registry } from '../../store/registry.ts';
import type { SubjectStore } from '../../store/subjects.ts';
import type { Learning } from '../polls/learning.ts';
import type { FailureLog } from './failure-log.ts';

/** What checks work with. `readers` are of the chains of the config; `tokens` says what is known of the tokens of one. */
export type CheckParts = {
  redis: RedisClient;
  stores: { checks: CheckStore; subjects: SubjectStore; registry: Registry };
  readers: ReadonlyMap<string, ChainReader>;
  tokens: (chainId: string) => Pick<JudgeRules, 'isListed' | 'isCheckable'>;
  learning: Learning;
  signals: Signals;
  log: Logger;
  failures: FailureLog;
};
