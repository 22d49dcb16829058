import { pino } from 'pino';
import type { ChainReader } from '../../src/chains/chain-readers.ts';
import type { Event } from '../../src/domain/events/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { TxState } from '../../src/domain/proof/proof.ts';
import { intentId, type SubjectId } from '../../src/domain/subjects/subject.ts';
import { CheckFeed, PaymentChecks } from '../../src/queues/checks/checks.ts';
import { FailureLog } from '../../src/queues/checks/failure-log.ts';
import type { CheckContext } from '../../src/queues/checks/run-check.ts';
import { commitRecord } from '../../src/queues/polls/commit-record.ts';
import { Signals } from '../../src/signals.ts';
import type { Check } from '../../src/store/check-record.ts';
import { CheckStore } from '../../src/store/checks.ts';
import { type RedisClient, redisTimeMs } from '../../src/store/commands.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import { FencedLease } from '../../src/store/lease.ts';
import { eventOf } from '../../src/store/log-entry.ts';
import { PlanStore } from '../../src/store/plan.ts';
import { Registry } from '../../src/store/registry.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { commitDeps } from './commit-deps.ts';
import { testPrefix } from './daemon.ts';
import { firstEpoch } from './epoch.ts';
import { eventually } from './eventually.ts';
import { logEntries } from './log-entries.ts';
import { hashOf } from './scripted-upstream.ts';

/** A chain with endpoints, a token that is known on it, and a payer. */
export const CHAIN = '8453';
export const TOKEN = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
/** Another token that is known on the chain. */
export const OTHER_TOKEN = '0xfde4c96c8593536e31f229ea8f37b2ada2699bb2';
export const SOLVER = '0x52908400098527886e0f7030069857d2e4169ee7';
export const PAYEE = '0xde709f2102306220921060314715629080e2fb77';

const RETENTION_MS = 3_600_000;

/** The responses of endpoints about a transaction, one of each. */
export type Script = (txHash: string, signal: AbortSignal | undefined) => TxState[] | Promise<TxState[]>;

/** The delivery of a transfer, as its record states it. */
export function delivery(more: JsonObject = {}): JsonObject {
  return { chainId: Number(CHAIN), txHash: txOf(1), token: TOKEN, amount: '1000', ...more };
}

export function txOf(number: number): string {
  return `0x${number.toString(16).padStart(64, '0')}`;
}

/** A response: the transaction is in a final block, and moved these amounts of the token, or these, to the payee. */
export function found(
  endpoint: string,
  more: {
    isFinal?: boolean;
    succeeded?: boolean;
    amounts?: readonly string[];
    to?: string;
    timestamp?: number;
    tokens?: readonly string[];
  } = {},
): TxState {
  const {
    isFinal = true,
    succeeded = true,
    amounts = ['1000'],
    to = PAYEE,
    timestamp = 1_800_000_000,
    tokens = [],
  } = more;
  const block = { number: '100', hash: `0x${'b1'.repeat(32)}`, timestamp };
  const moves = amounts.map((amount, index) => ({
    token: tokens[index] ?? TOKEN,
    from: SOLVER,
    to,
    amount,
    index,
  }));
  const head = isFinal ? { ...block, number: '101' } : { ...block, number: '99', timestamp: timestamp - 1 };
  return {
    endpoint,
    host: `${endpoint}.example`,
    outcome: 'found',
    block,
    head,
    isFinal,
    succeeded,
    moves,
    fulfilled: null,
  };
}

export function failed(endpoint: string, reason = 'timed out'): TxState {
  return { endpoint, host: `${endpoint}.example`, outcome: 'failed', reason };
}

export function absent(endpoint: string): TxState {
  return { endpoint, host: `${endpoint}.example`, outcome: 'absent', isSynced: true, head: null };
}

/** Moves all times back by some ms, so that checks due within that span are due now. */
const PASS = `
for _, kind in ipairs({ 'due', 'failed' }) do
  for _, key in ipairs(redis.call('KEYS', KEYS[1] .. ':' .. kind .. ':*')) do
    local all = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    for i = 1, #all, 2 do redis.call('ZADD', key, string.format('%.0f', all[i + 1] - ARGV[1]), all[i]) end
  end
end
for _, kind in ipairs({ 'endpoint', 'of' }) do
  for _, key in ipairs(redis.call('KEYS', KEYS[1] .. ':' .. kind .. ':*')) do
    for _, field in ipairs({ 'answeredAt', 'recoveredAt', 'probedAt', 'headAt', 'polledAt', 'seenAt', 'statedAt' }) do
      local at = tonumber(redis.call('HGET', key, field) or '')
      if at then redis.call('HSET', key, field, string.format('%.0f', at - ARGV[1])) end
    end
  end
end
return 0`;

/** One process that feeds checks and works on them. */
export type Verifier = { feed: CheckFeed; checks: PaymentChecks; signals: Signals; close(): Promise<void> };

/** Transfers, their checks and their events, in a Redis under a prefix of its own. */
export class ChecksStage {
  readonly redis: RedisClient;
  readonly prefix = testPrefix();
  readonly keys = new Keys(this.prefix);
  readonly subjects: SubjectStore;
  readonly store: CheckStore;
  readonly log: EventLog;
  script: Script = () => [found('own'), found('other')];
  /** Makes the chain reader of each process, in place of the script. */
  newReader: (() => ChainReader) | null = null;
  readonly requests: string[] = [];
  readonly #open: Verifier[] = [];

  constructor(redis: RedisClient) {
    this.redis = redis;
    this.subjects = new SubjectStore(redis, this.keys, {
      epoch: firstEpoch(redis, this.keys),
    });
    this.store = new CheckStore(redis, this.keys, { retentionMs: RETENTION_MS });
    this.log = new EventLog(redis, this.keys);
  }

  /** The components of a process on a connection of its own, or on that of the stage. */
  deps(redis: RedisClient = this.redis): CheckContext {
    const subjects = new SubjectStore(redis, this.keys, {
      epoch: firstEpoch(redis, this.keys),
    });
    const { learning, signals } = commitDeps(redis, this.keys, {
      subjects,
      plan: new PlanStore(redis, this.keys),
    });
    const reader: ChainReader = {
      chainId: CHAIN,
      endpoints: ['own', 'other'],
      finalHead: async () => null,
      close: async () => undefined,
      read: async (txHash, { signal } = {}) => {
        this.requests.push(txHash);
        return this.script(txHash, signal);
      },
    };
    return {
      process: 'p1',
      redis,
      stores: {
        checks: new CheckStore(redis, this.keys, { retentionMs: RETENTION_MS }),
        subjects,
        registry: new Registry(redis, this.keys, subjects),
      },
      readers: new Map([[CHAIN, this.newReader?.() ?? reader]]),
      tokens: () => ({
        isListed: (token) => token === TOKEN || token === OTHER_TOKEN,
        isCheckable: () => true,
      }),
      learning,
      signals,
      log: pino({ level: 'silent' }),
      failures: new FailureLog(pino({ level: 'silent' })),
    };
  }

  feed(redis: RedisClient = this.redis, more: { onFed?: () => void; signals?: Signals } = {}): CheckFeed {
    return new CheckFeed({
      stores: {
        checks: new CheckStore(redis, this.keys, { retentionMs: RETENTION_MS }),
        events: new EventLog(redis, this.keys),
        lease: new FencedLease(redis, { lease: this.keys.checksLease, fence: this.keys.checksFence }),
      },
      chains: new Set([CHAIN]),
      onFed: more.onFed ?? (() => undefined),
      signals: more.signals ?? new Signals(),
      log: pino({ level: 'silent' }),
    });
  }

  start(redis: RedisClient = this.redis): Verifier {
    const deps = this.deps(redis);
    const checks = new PaymentChecks(deps);
    const feed = this.feed(redis, { onFed: () => checks.wake(), signals: deps.signals });
    feed.start();
    checks.start();
    const close = async (): Promise<void> => void (await Promise.all([feed.close(), checks.close()]));
    const verifier = { feed, checks, signals: deps.signals, close };
    this.#open.push(verifier);
    return verifier;
  }

  /** Begins the feed at the end of the log, as the first process does. */
  async begin(): Promise<void> {
    await this.feed().begin();
  }

  /** Ingests a record of a transfer, as a requested poll does. */
  async report(hash: string, status: string, record: JsonObject): Promise<SubjectId> {
    const subject = intentId(hash);
    const { redis, keys, subjects } = this;
    const asOf = (await redis.get(keys.commit)) ?? '0';
    const [entry] = await subjects.readEach([subject]);
    if (entry === undefined) throw new Error('nothing was found');
    const nowMs = await redisTimeMs(redis);
    const updatedAt = Math.floor(nowMs / 1_000);
    const raw = { id: subject, type: 'intent', status, updatedAt, ...record };
    const deps = commitDeps(redis, keys, { subjects, plan: new PlanStore(redis, keys) });
    const claim = { key: `s|${subject}`, atMs: 1, historyBefore: null, served: false };
    await redis.hset(keys.wanted, claim.key, '1');
    const claims = entry.claims.length === 0 ? [claim] : [];
    await commitRecord(deps, { subject, status, updatedAt, names: [], raw, unreadable: [] }, entry, {
      asOf,
      nowMs,
      price: 1,
      exact: true,
      claims,
    });
    return subject;
  }

  /** Makes checks of the deliveries of transfers whose records are gone, stated `agoMs` ago. */
  async state(numbers: readonly number[], { agoMs }: { agoMs: number }): Promise<SubjectId[]> {
    const nowMs = await redisTimeMs(this.redis);
    const stated = numbers.map((number) => ({
      subject: intentId(hashOf(number)),
      intentHash: hashOf(number),
      payment: 'destination' as const,
      chainId: CHAIN,
      txHash: txOf(number),
      token: TOKEN,
      amount: '1000',
      sent: null,
    }));
    const checks = stated.map((one) => {
      return { stated: one, sequence: 1, statedAtMs: nowMs - agoMs, updatedAt: null, corridor: null };
    });
    const lease = new FencedLease(this.redis, { lease: this.keys.checksLease, fence: this.keys.checksFence });
    await eventually('they are fed, beside a feed that runs', async () => {
      const token = (await this.redis.get(this.keys.checksLease)) ?? (await lease.hold());
      const from = await this.store.cursor();
      return token !== null && (await this.store.feed({ token, from, to: from }, checks)) !== null;
    });
    await lease.release();
    return stated.map(({ subject }) => subject);
  }

  async pass(ms: number): Promise<void> {
    await this.redis.eval(PASS, 1, this.keys.checks, String(ms));
  }

  /** Ms until the delivery of a transfer is read again. */
  async dueInMs(subject: SubjectId): Promise<number> {
    const due = await this.redis.zscore(`${this.keys.checks}:due:${CHAIN}`, `${subject}|destination`);
    return Number(due) - (await redisTimeMs(this.redis));
  }

  /** Number of checks that wait for an endpoint: until it answers, or until its final head has come so far. */
  async waitingFor(endpoint: string, what: 'failed' | 'until'): Promise<number> {
    return this.redis.zcard(`${this.keys.checks}:${what}:${CHAIN}|${endpoint}`);
  }

  async events(): Promise<Event[]> {
    return (await logEntries(this.redis, this.keys)).flatMap((entry) => eventOf(entry) ?? []);
  }

  async proofs(): Promise<Event[]> {
    return (await this.events()).filter(({ data }) => data.proof !== undefined);
  }

  async until(subject: SubjectId, state: Check['state']): Promise<Check> {
    return eventually(`${subject} is ${state}`, async () => {
      const checks = await this.store.of(subject);
      const check = checks.find(({ statement }) => statement.payment === 'destination');
      return check?.state === state ? check : null;
    });
  }

  /** Makes all waiting checks due now, as if their wait, or the lease of their process, were over. */
  async makeDue(): Promise<void> {
    const due = `${this.keys.checks}:due:${CHAIN}`;
    for (const id of await this.redis.zrange(due, '0', '-1')) await this.redis.zadd(due, '0', id);
  }

  async close(): Promise<void> {
    await Promise.all(this.#open.map((verifier) => verifier.close()));
  }
}
