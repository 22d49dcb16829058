import { z } from 'zod';
import { ENDPOINT_GROUPS, type EndpointGroup, endpointGroupKinds } from '../domain/subjects/kinds.ts';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { OPEN_STATUS_KIND } from './plan-members.ts';
import { scripts } from './scripts.ts';

/** The state of a plan for `/metrics`. */
export type PlanState = {
  price: number;
  budget: number;
  used: number;
  failing: number;
  suspects: number;
  overdueSeconds: number;
};

const FIRST_PRICE = 1;
const LEAST_PRICE = 1e-4;
const MOST_PRICE = 1e9;

/**
 * Returns the price of a request, in weighted seconds of delay: virtual time runs with the inverse of its square root. `dv`
 * and `dt` are decayed sums of virtual and real time.
 */
export function priceOf(dv: number, dt: number): number {
  if (!(dv > 0 && dt > 0)) return FIRST_PRICE;
  return Math.min(MOST_PRICE, Math.max(LEAST_PRICE, (dt / dv) ** 2));
}

const REPLIES = z.tuple([
  z.array(z.string().nullable()),
  z.number(),
  z.number(),
  z.array(z.string()),
  z.array(z.string()),
]);

/** Reads the state of an endpoint group's plan. */
export async function readPlanState(
  redis: RedisClient,
  keys: Keys,
  endpointGroup: EndpointGroup,
): Promise<PlanState> {
  const key = keys.plan(endpointGroup);
  const replies = await redis
    .pipeline()
    .hmget(key, 'dv', 'dt', 'budget', 'used', 'last')
    .zcard(`${key}:failing`)
    .zcard(`${key}:suspects`)
    .zrange(`${key}:latest`, '0', '0', 'WITHSCORES')
    .zrange(`${key}:bound`, '0', '0', 'WITHSCORES')
    .exec();
  const [clock, failing, suspects, latest, bound] = REPLIES.parse(
    (replies ?? []).map(([error, reply]) => {
      if (error) throw error;
      return reply;
    }),
  );
  const [dv, dt, budget, used, last] = clock;
  const perSecond = Number(dt ?? 0) > 0 ? Number(used ?? 0) / Number(dt) : 0;
  return {
    price: priceOf(Number(dv ?? 0), Number(dt ?? 0)),
    budget: Number(budget ?? 0),
    used: Number(budget ?? 0) > 0 ? perSecond / Number(budget) : 0,
    failing,
    suspects,
    overdueSeconds:
      Math.max(
        0,
        ...[latest[1], bound[1]].flatMap((at) => (at === undefined ? [] : [Number(last ?? 0) - Number(at)])),
      ) / 1_000,
  };
}

/** Counts tracked subjects by kind, with the longest time since a successful poll; suspended ones do not count for that. */
export async function readWaits(
  redis: RedisClient,
  keys: Keys,
  nowMs: number,
): Promise<{ kind: string; count: number; longestSeconds: number }[]> {
  const rows = ENDPOINT_GROUPS.flatMap((endpointGroup) =>
    endpointGroupKinds(endpointGroup).map(async (kind) => {
      const plan = keys.plan(endpointGroup);
      const [count, oldestMs] = await Promise.all([
        redis.zcard(keys.polledAt(endpointGroup, kind)),
        scripts.longestWaiting(redis, { keys: { plan }, args: { kind } }),
      ]);
      return { kind, count, oldestMs };
    }),
  );
  // The second source of transfers: it adds no subject, and its wait counts as that of a transfer.
  const openPlan = keys.plan('open-status');
  const second = scripts
    .longestWaiting(redis, { keys: { plan: openPlan }, args: { kind: OPEN_STATUS_KIND } })
    .then((oldestMs) => ({ kind: 'intent', count: 0, oldestMs }));
  const kinds = new Map<string, { kind: string; count: number; longestSeconds: number }>();
  for (const { kind, count, oldestMs } of await Promise.all([...rows, second])) {
    const seconds = oldestMs === null ? 0 : Math.max(0, nowMs - oldestMs) / 1_000;
    const sum = kinds.get(kind) ?? { kind, count: 0, longestSeconds: 0 };
    kinds.set(kind, {
      kind,
      count: sum.count + count,
      longestSeconds: Math.max(sum.longestSeconds, seconds),
    });
  }
  return [...kinds.values()];
}
