import { z } from 'zod';
import type { JsonObject } from '../domain/json.ts';
import type { EndpointGroup } from '../domain/subjects/kinds.ts';
import { type RedisClient, redisTimeMs } from './commands.ts';
import type { Keys } from './keys.ts';
import { operatorEventTemplate, operatorSubject } from './operator-event.ts';
import { type PlanClock, REDIS_TIME } from './plan.ts';
import { scripts } from './scripts.ts';
import { RedisStore } from './stored.ts';

/** The states of an endpoint group; commands/include/endpoint-group.lua has the table of moves. */
export const HEALTH_STATES = ['ok', 'unreachable', 'unauthorized'] as const;

export type HealthState = (typeof HEALTH_STATES)[number];

/**
 * `unreachable`: no usable response; `denied`: refused, perhaps this subject alone; `refused`: the key itself; `throttled`:
 * 429.
 */
export type AnswerKind = 'ok' | 'unreachable' | 'denied' | 'refused' | 'throttled';

/** One response: the member of the plan it is for, the time its request was sent (the plan's time, ms), and its Retry-After. */
export type EndpointGroupAnswer = {
  kind: AnswerKind;
  member: string;
  sentAtMs: number;
  retryAfterMs: number | null;
  reason: string;
  support: JsonObject;
};

/** A value of another shape counts as `ok`, until a response shows otherwise. */
const STATE = z.enum(HEALTH_STATES).catch('ok');

/** The shared state of the upstream's endpoint groups: whether they respond, and until when to pause. */
export class HealthStore extends RedisStore {
  readonly #atMs: PlanClock;

  constructor(redis: RedisClient, keys: Keys, { atMs = REDIS_TIME }: { atMs?: PlanClock } = {}) {
    super(redis, keys);
    this.#atMs = atMs;
  }

  /** Records a response; the operator event is made with a move of the state, in one step. `pauseMs`: a pause that began now. */
  async note(
    endpointGroup: EndpointGroup,
    answer: EndpointGroupAnswer,
  ): Promise<{ before: HealthState; after: HealthState; pauseMs: number | null }> {
    const { kind, member, sentAtMs, retryAfterMs, reason, support } = answer;
    const nowMs = await redisTimeMs(this.redis);
    const event = (word: string): string =>
      operatorEventTemplate({
        kind: 'upstream',
        name: endpointGroup,
        word,
        nowMs,
        record: { endpointGroup, reason, ...support },
      });
    const { before, after, pauseMs } = await scripts.noteAnswer(this.redis, {
      keys: { ...this.#keysOf(endpointGroup), plan: this.keys.plan(endpointGroup) },
      args: {
        answer: kind,
        member,
        sentAtMs,
        retryAfterMs: retryAfterMs === null ? null : Math.ceil(retryAfterMs),
        atMs: this.#atMs(),
        subject: operatorSubject('upstream', endpointGroup),
        unreachable: event('unreachable'),
        unauthorized: event('unauthorized'),
        reachable: event('reachable'),
        authorized: event('authorized'),
        reason,
      },
    });
    return { before: STATE.parse(before), after: STATE.parse(after), pauseMs };
  }

  /** Rest of the pause that the upstream requested, ms; 0 for none. */
  async pauseMs(endpointGroup: EndpointGroup): Promise<number> {
    const untilMs = await this.redis.hget(this.keys.endpointGroup(endpointGroup), 'pausedUntil');
    return Math.max(0, (Number(untilMs) || 0) - (await redisTimeMs(this.redis)));
  }

  /**
   * Reports a wallet's record that is too large, once for each id, or per wallet without one. Returns whether it was the first
   * time.
   */
  async reportTooLarge(
    endpointGroup: EndpointGroup,
    { wallet, id, reason }: { wallet: string; id: string | null; reason: string },
  ): Promise<boolean> {
    const event = operatorEventTemplate({
      kind: 'upstream',
      name: endpointGroup,
      word: 'record_too_large',
      nowMs: await redisTimeMs(this.redis),
      record: { endpointGroup, reason, wallet, ...(id === null ? {} : { id }) },
    });
    return scripts.reportTooLarge(this.redis, {
      keys: { ...this.#keysOf(endpointGroup), tooLarge: this.keys.tooLarge(endpointGroup) },
      args: { subject: operatorSubject('upstream', endpointGroup), record: id ?? wallet, event },
    });
  }

  /** Reports cursors that expire before the next page is read, once until a larger rate is needed. Returns whether it did. */
  async reportExpiredCursor(
    endpointGroup: EndpointGroup,
    seen: {
      wallet: string;
      pages: number;
      lifetimeSeconds: number;
      requestsPerSecond: number;
      neededRequestsPerSecond: number;
    },
  ): Promise<boolean> {
    const reason = 'a cursor has expired before the next page was read, at the rate that the budget leaves';
    const event = operatorEventTemplate({
      kind: 'upstream',
      name: endpointGroup,
      word: 'cursor_expired',
      nowMs: await redisTimeMs(this.redis),
      record: { endpointGroup, reason, ...seen },
    });
    const subject = operatorSubject('upstream', endpointGroup);
    const args = { subject, rate: seen.neededRequestsPerSecond, event };
    return scripts.reportCursor(this.redis, { keys: this.#keysOf(endpointGroup), args });
  }

  #keysOf(endpointGroup: EndpointGroup): { endpointGroup: string; events: string } {
    return { endpointGroup: this.keys.endpointGroup(endpointGroup), events: this.keys.events };
  }

  async state(endpointGroup: EndpointGroup): Promise<{ state: HealthState; reason: string | null }> {
    const [state, reason] = await this.redis.hmget(this.keys.endpointGroup(endpointGroup), 'state', 'reason');
    return { state: STATE.parse(state ?? 'ok'), reason: reason ?? null };
  }
}
