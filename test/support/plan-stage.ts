import { inject } from 'vitest';
import { intentId, type SubjectId, walletId } from '../../src/domain/subjects/subject.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import { type AnswerKind, HealthStore } from '../../src/store/health.ts';
import { ImportedQuotes } from '../../src/store/imported-quotes.ts';
import { Keys } from '../../src/store/keys.ts';
import { NOTHING_OBSERVED, type PageFacts } from '../../src/store/observed.ts';
import { type ClaimedPoll, type ClaimResult, PlanStore, type PollEnd } from '../../src/store/plan.ts';
import { parseMember } from '../../src/store/plan-members.ts';
import { type PollStart, startPolls } from '../../src/store/poll-start.ts';
import { Registry } from '../../src/store/registry.ts';
import { scripts } from '../../src/store/scripts.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { WalletStore } from '../../src/store/wallets.ts';
import { testPrefix } from './daemon.ts';
import { firstEpoch } from './epoch.ts';
import { hashOf } from './scripted-upstream.ts';
import { syncFence } from './sync-config.ts';

/** Long enough ago that Redis's own time does not come near. */
const BEGIN_MS = 1_000_000_000_000;

/** Makes `count` wallets, or intents, always the same ones. */
export const wallets = (count: number): SubjectId[] =>
  Array.from({ length: count }, (_, index) => walletId(`0x${String(index).padStart(40, '0')}`));
export const intents = (count: number): SubjectId[] =>
  Array.from({ length: count }, (_, index) => intentId(hashOf(index)));

/** The usual end of a poll. */
export const SUCCESS = {
  outcome: 'next',
  next: { virtualSeconds: 10, restMs: 1_000, latestMs: 30_000 },
} as const;

/** The end of a poll of the stage; an omitted member has its default. */
export type StageEnd = {
  virtualSeconds?: number;
  restMs?: number;
  latestMs?: number;
  alarmMs?: number;
  unseen?: boolean;
};

/** The plan of the group `status` in a real Redis, under a clock of the test. Polls take no time unless the test sets one. */
export class PlanStage {
  readonly redis: RedisClient;
  readonly keys = new Keys(testPrefix());
  nowMs = BEGIN_MS;
  readonly #atMs = (): string => String(this.nowMs);
  readonly plan: PlanStore;
  readonly health: HealthStore;
  readonly subjects: SubjectStore;
  readonly importedQuotes: ImportedQuotes;
  readonly wallets: WalletStore;
  readonly registry: Registry;

  constructor(url = inject('redisUrl')) {
    const clock = { atMs: this.#atMs };
    this.redis = connect({ kind: 'server', url });
    this.plan = new PlanStore(this.redis, this.keys, clock);
    this.health = new HealthStore(this.redis, this.keys, clock);
    this.subjects = new SubjectStore(this.redis, this.keys, {
      epoch: firstEpoch(this.redis, this.keys),
    });
    this.importedQuotes = new ImportedQuotes(this.redis, this.keys);
    this.wallets = new WalletStore(this.redis, this.keys);
    this.registry = new Registry(this.redis, this.keys, this.subjects);
  }

  async budget(requestsPerSecond: number): Promise<void> {
    await this.plan.setBudgets({ status: requestsPerSecond });
  }

  /** Names subjects in one subscription, so that they are wanted, and gives them a place in the plan of this clock. */
  async name(named: readonly SubjectId[], lane: 'first' | 'fair' = 'fair'): Promise<void> {
    const at = String(Date.now());
    const naming = this.redis.pipeline();
    for (const subject of named) {
      naming.hset(this.keys.wanted, `s|${subject}`, at);
      naming.hset(this.keys.claims(subject), `s|${subject}`, `${at}::1`);
    }
    await naming.exec();
    if (lane === 'fair') await this.plan.track(named);
    else await this.#nameFirst(named);
  }

  async #nameFirst(named: readonly SubjectId[]): Promise<void> {
    const keys = this.keys;
    const forgetting = this.redis.pipeline();
    for (const subject of named) forgetting.hdel(keys.claims(subject), `s|${subject}`);
    await forgetting.exec();
    const fence = await syncFence(this.redis, keys);
    await scripts.addSubscriptionKeys(this.redis, {
      keys: { wanted: keys.wanted, plan: keys.plan('status'), events: keys.events, ...fence.keys },
      args: {
        token: fence.token,
        claimsPrefix: keys.claims(''),
        subjectPrefix: keys.subject(''),
        atMs: this.#atMs(),
        since: keys.since,
        named: named.map((subject) => ({ claimKey: `s|${subject}`, subject, at: '', from: '' })),
      },
    });
  }

  async claim(
    most = 1,
    process = 'p1',
    aheadMs = 0,
    sent: readonly ClaimedPoll[] = [],
  ): Promise<ClaimResult> {
    return this.plan.claim('status', { process, most, aheadMs, sent });
  }

  /** Claims one poll, or null where none is allowed now. */
  async next(process = 'p1'): Promise<ClaimedPoll | null> {
    return (await this.claim(1, process)).polls[0] ?? null;
  }

  async take(
    poll: { member: string; token: string },
    process = 'p1',
    wallets = this.wallets,
  ): Promise<PollStart | null> {
    const { redis, keys, subjects, registry, importedQuotes } = this;
    const readers = { redis, keys, subjects, registry, importedQuotes, wallets, atMs: this.#atMs };
    const [start = null] = await startPolls(readers, [poll], process);
    if (start instanceof Error) throw start;
    return start;
  }

  async end(
    poll: { member: string; token: string },
    outcome: PollEnd = 'next',
    next: StageEnd = {},
    observed: Partial<PageFacts> = {},
  ): Promise<boolean | null> {
    const { virtualSeconds = 1, restMs = 0, latestMs = null, alarmMs = null, unseen = false } = next;
    const { subject } = parseMember(poll.member);
    const [reply = null] = await this.plan.end('status', [
      {
        poll: { ...poll, subject },
        outcome,
        next: { virtualSeconds, restMs, latestMs, alarmMs, unseen },
        observed: { ...NOTHING_OBSERVED, ...observed },
      },
    ]);
    if (reply instanceof Error) throw reply;
    return reply;
  }

  /** Reports to the endpoint group an answer to a request that was sent now, or `agoMs` before. */
  async answer(
    member: string,
    kind: AnswerKind,
    failure: { agoMs?: number; retryAfterMs?: number | null } = {},
  ): ReturnType<HealthStore['note']> {
    const { agoMs = 0, retryAfterMs = null } = failure;
    const sentAtMs = this.nowMs - agoMs;
    return this.health.note('status', {
      kind,
      member,
      sentAtMs,
      retryAfterMs,
      reason: 'reported by the test',
      support: {},
    });
  }

  /**
   * Lets some seconds pass and claims all allowed polls; `pollOnce` decides the end of each (null: a success with a rest of a
   * second). Processes renew nothing: no poll lasts. Returns the number of polls of each member.
   */
  async run(
    seconds: number,
    pollOnce: (member: string, start: PollStart) => Promise<{ outcome: PollEnd; next: StageEnd }>,
    // A minute and more is watched in coarser steps: most of them claim nothing.
    stepMs = seconds < 60 ? 50 : 200,
  ): Promise<Map<string, number>> {
    const polled = new Map<string, number>();
    const endMs = this.nowMs + seconds * 1_000;
    while (this.nowMs < endMs) {
      const { polls } = await this.claim(20, 'p1', 2 * stepMs);
      for (const poll of polls) {
        const start = await this.take(poll);
        if (start === null) continue;
        polled.set(poll.member, (polled.get(poll.member) ?? 0) + 1);
        const { outcome, next } = await pollOnce(poll.member, start);
        await this.end(start, outcome, next);
      }
      this.nowMs += stepMs;
    }
    return polled;
  }

  close(): void {
    this.redis.disconnect();
  }
}

/** The sum over some members. */
export function pollsOf(polled: ReadonlyMap<string, number>, members: readonly string[]): number {
  return members.reduce((sum, member) => sum + (polled.get(member) ?? 0), 0);
}
