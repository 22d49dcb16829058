import type { Logger } from 'pino';
import { type ChainReader, createChainReaders } from '../chains/chain-readers.ts';
import type { EndpointCall } from '../chains/endpoint.ts';
import type { Config } from '../config/config.ts';
import { tokenRules } from '../domain/proof/token-rules.ts';
import type { JudgeRules } from '../domain/proof/verdict.ts';
import { Checks } from '../queues/checks/checks.ts';
import { FailureLog } from '../queues/checks/failure-log.ts';
import { CheckFeed } from '../queues/checks/feed.ts';
import type { Learning } from '../queues/polls/learning.ts';
import type { Signals } from '../signals.ts';
import type { CheckStore } from '../store/checks.ts';
import type { RedisClient } from '../store/commands.ts';
import { EventLog } from '../store/event-log.ts';
import type { Keys } from '../store/keys.ts';
import { FencedLease } from '../store/lease.ts';
import type { Registry } from '../store/registry.ts';
import type { SubjectStore } from '../store/subjects.ts';

/** What checks payments on chains: `readers` are those of the config, none where it names no RPC endpoints. */
export type Verifying = {
  readers: ReadonlyMap<string, ChainReader>;
  /** When the oldest event was made that was not yet read for payments (Redis time, ms); null where all were. */
  oldestUnreadMs(): Promise<number | null>;
  /** What is reported from now on is checked; to be called before anything is polled. */
  begin(): Promise<void>;
  start(): void;
  /** Settles what waits on chains that left the config; to be called again and again where that is the newest. */
  keep(): Promise<void>;
  close(): Promise<void>;
};

/** What it is made from. `redis` is shared with what delivers, so that no poll waits behind it. */
export type VerifyingAssembly = {
  redis: RedisClient;
  keys: Keys;
  stores: { checks: CheckStore; subjects: SubjectStore; registry: Registry };
  readers: ReadonlyMap<string, ChainReader>;
  tokens: (chainId: string) => Pick<JudgeRules, 'isListed' | 'isCheckable'>;
  learning: Learning;
  signals: Signals;
  log: Logger;
};

/** The chains of a config that can be asked, and what is known of their tokens. */
export function chainsOf(config: Config, signals: Signals): Pick<VerifyingAssembly, 'readers' | 'tokens'> {
  const onCall = (call: EndpointCall): void => void signals.emit('rpc.called', call);
  return { readers: createChainReaders(config.checkedChains, { onCall }), tokens: tokenRules(config) };
}

/** Constructs what checks payments; where there is no chain to be asked, it only ends and removes checks. */
export function assembleVerifying(parts: VerifyingAssembly): Verifying {
  const { redis, keys, stores, readers, signals, log } = parts;
  const checks = new Checks({ ...parts, failures: new FailureLog(log) });
  const feed = new CheckFeed({
    stores: {
      checks: stores.checks,
      events: new EventLog(redis, keys),
      lease: new FencedLease(redis, { lease: keys.checksLease, fence: keys.checksFence }),
    },
    chains: new Set(readers.keys()),
    onFed: () => checks.wake(),
    signals,
    log,
  });
  const isOn = readers.size > 0;
  return {
    readers,
    oldestUnreadMs: () => feed.oldestUnreadMs(),
    begin: async () => {
      if (isOn) await feed.begin();
    },
    start: () => {
      if (isOn) feed.start();
      checks.start();
    },
    keep: () => checks.settleLeft(),
    close: async () => {
      await Promise.all([isOn ? feed.close() : undefined, checks.close()]);
      await Promise.all([...readers.values()].map((reader) => reader.close()));
    },
  };
}
