import { z } from 'zod';
import type { RedisClient } from './commands.ts';
import { redisTimeMs } from './connection.ts';
import type { Keys } from './keys.ts';
import { operatorEventTemplate, operatorSubject } from './operator-event.ts';
import type { Surface } from './surface.ts';

export type HealthState = 'ok' | 'unreachable' | 'unauthorized';

export type HealthOutcome = 'ok' | 'unauthorized' | 'unreachable';

/** Failures in a row, and for how long, before a surface counts as unreachable. */
const FAILURES = 5;
const FAILING_FOR_MS = 10_000;

/** While a surface is down, one request in this time probes it. */
const PROBE_EVERY_MS = { unreachable: 5_000, unauthorized: 15_000 } as const;

/** What all processes together know of the upstream's surfaces: whether they answer, and until when to pause. */
export class HealthStore {
  readonly #redis: RedisClient;
  readonly #keys: Keys;

  constructor(redis: RedisClient, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** Notes the outcome of a request; the operator's event goes with a move of the state, in one step. */
  async note(
    surface: Surface,
    outcome: HealthOutcome,
    reason: string,
  ): Promise<{ before: HealthState; after: HealthState }> {
    const nowMs = await redisTimeMs(this.#redis);
    const event = (word: string): string =>
      operatorEventTemplate({ kind: 'upstream', name: surface, word, nowMs, record: { surface, reason } });
    const [before, after] = await this.#redis.iwHealth(
      this.#keys.health(surface),
      this.#keys.events,
      outcome,
      String(FAILURES),
      String(FAILING_FOR_MS),
      operatorSubject('upstream', surface),
      event('unreachable'),
      event('unauthorized'),
      event('reachable'),
      event('authorized'),
    );
    return { before: STATE.parse(before), after: STATE.parse(after) };
  }

  /** 0 when a poll may ask the surface now, else the milliseconds it should wait. */
  async waitMs(surface: Surface): Promise<number> {
    const state = await this.state(surface);
    if (state === 'ok') return 0;
    return this.#redis.iwMayAsk(this.#keys.health(surface), String(PROBE_EVERY_MS[state]));
  }

  async state(surface: Surface): Promise<HealthState> {
    return STATE.parse((await this.#redis.hget(this.#keys.health(surface), 'state')) ?? 'ok');
  }

  /** Lengthens the pause of a surface to at least this long from now; returns how long it is. */
  async pause(surface: Surface, forMs: number): Promise<number> {
    return this.#redis.iwPause(this.#keys.pause(surface), String(Math.ceil(forMs)));
  }
}

const STATE = z.enum(['ok', 'unreachable', 'unauthorized']);
