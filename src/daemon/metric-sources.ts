import type { Config } from '../config/config.ts';
import { quantileSeconds } from '../domain/cadence/hazard.ts';
import { feeRatio, readRoute } from '../domain/quotes/route.ts';
import { ENDPOINT_GROUPS } from '../domain/subjects/kinds.ts';
import { routeId } from '../domain/subjects/subject.ts';
import { routesOf } from '../domain/subjects/subscription.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import type { MetricNames, MetricSources } from '../metrics/metrics.ts';
import { oldestUndelivered } from '../operations/receivers.ts';
import { hasCapacity } from '../queues/deliveries/follow.ts';
import { redisTimeMs } from '../store/commands.ts';
import { readPlanState, readWaits } from '../store/plan-state.ts';
import type { RedisMonitor } from '../store/redis-monitor.ts';
import { readOpenTransfers } from '../store/wallets.ts';
import type { DaemonContext } from './assemble.ts';

function secondsBetween(fromMs: number, toMs: number): number {
  return Math.max(0, toMs - fromMs) / 1_000;
}

/** Sources of the gauges of `/metrics`. They read Redis, so none is read while it is away. */
export function daemonMetricSources(deps: () => DaemonContext | null, monitor: RedisMonitor): MetricSources {
  const running = (): DaemonContext => {
    const current = deps();
    if (current === null) throw new Error('the daemon has not started');
    if (!monitor.isReachable()) throw new Error('Redis is away');
    return current;
  };
  return {
    transfers: async () => {
      const { redis, keys } = running();
      const [open, nowMs] = await Promise.all([readOpenTransfers(redis, keys), redisTimeMs(redis)]);
      return { ...open, nowMs };
    },
    subjects: async () => {
      const { redis, keys, stores } = running();
      const [counts, kinds] = await Promise.all([
        stores.registry.counts(),
        redisTimeMs(redis).then((ms) => readWaits(redis, keys, ms)),
      ]);
      const unseen = kinds.map(({ kind, count }) => {
        const shown = counts.reduce((sum, one) => sum + (one.kind === kind ? one.count : 0), 0);
        return { kind, status: kind === 'wallet' ? 'watched' : 'unseen', count: count - shown };
      });
      return [...counts, ...unseen.filter(({ count }) => count > 0)];
    },
    queues: async () => {
      const { stores, polling } = running();
      const { backlog, registry } = stores;
      const receivers = await registry.receivers();
      const depths = await Promise.all([
        ...ENDPOINT_GROUPS.map(async (endpointGroup) => ({
          queue: endpointGroup as string,
          ...(await polling.queues.depth(endpointGroup)),
        })),
        ...receivers.map(async ({ name }) => ({
          queue: `deliver-${name}`,
          ...(await backlog.depth(name)),
        })),
      ]);
      return depths.flatMap(({ queue, waiting, delayed, active }) => [
        { queue, state: 'waiting' as const, count: waiting },
        { queue, state: 'delayed' as const, count: delayed },
        { queue, state: 'active' as const, count: active },
      ]);
    },
    deliveries: async () => {
      const { backlog, registry } = running().stores;
      return Promise.all(
        (await registry.receivers()).map(async ({ name, removed }) => ({
          receiver: name,
          removed,
          ...(await backlog.counts(name)),
        })),
      );
    },
    receivers: async () => {
      const { redis, stores, api } = running();
      const { receivers, backlog, registry } = stores;
      const current = (await registry.receivers()).filter(({ removed }) => !removed);
      const nowMs = await redisTimeMs(redis);
      return Promise.all(
        current.map(async (receiver) => {
          const { name } = receiver;
          const [{ state, notBefore }, { pending }, depth] = await Promise.all([
            receivers.condition(name),
            backlog.counts(name),
            backlog.depth(name),
          ]);
          const undeliveredMs = await oldestUndelivered(receiver, depth, api.operations);
          return {
            receiver: name,
            state,
            full: !hasCapacity({ open: pending }),
            oldestSeconds: secondsBetween(depth.oldestMs ?? nowMs, nowMs),
            undeliveredSeconds: secondsBetween(undeliveredMs ?? nowMs, nowMs),
            nextAttemptSeconds: secondsBetween(nowMs, notBefore ?? nowMs),
          };
        }),
      );
    },
    suspensions: async () => running().stores.registry.suspensions.counts(),
    endpointGroups: async () => {
      const { redis, keys, stores } = running();
      return Promise.all(
        ENDPOINT_GROUPS.map(async (endpointGroup) => ({
          endpointGroup,
          ...(await readPlanState(redis, keys, endpointGroup)),
          state: (await stores.health.state(endpointGroup)).state,
        })),
      );
    },
    waits: async () => {
      const { redis, keys } = running();
      return readWaits(redis, keys, await redisTimeMs(redis));
    },
    sweeps: async () => running().stores.wallets.unswept(),
    learned: async () => {
      const { stages, model } = running().polling.learning;
      return {
        stages: stages.map(({ route, watch, observations, curve }) => ({
          route,
          stage: watch,
          observations,
          medianSeconds: quantileSeconds(curve, 0.5),
          p99Seconds: quantileSeconds(curve, 0.99),
        })),
        newTransfersPerSecond: model.usualArrivals,
      };
    },
    checks: async () => {
      const { stores, redis, verifying } = running();
      const chains = [...verifying.readers.keys()];
      if (chains.length === 0) return { chains: [], unreadSeconds: null };
      const [counts, oldest, unreadMs, nowMs] = await Promise.all([
        stores.checks.counts(),
        stores.checks.oldest(chains),
        verifying.oldestUnreadMs(),
        redisTimeMs(redis),
      ]);
      return {
        chains: oldest.map(({ chain, sinceMs }) => ({
          chain,
          states: counts.filter((count) => count.chain === chain),
          oldestSeconds: secondsBetween(sinceMs ?? nowMs, nowMs),
        })),
        unreadSeconds: secondsBetween(unreadMs ?? nowMs, nowMs),
      };
    },
    routes: async () => {
      const { stores, polling } = running();
      const { routes } = polling;
      const entries = await stores.subjects.readEach(routes.map(routeId));
      return entries.flatMap(({ snapshot }, index) => {
        const price = snapshot === null ? null : readRoute(snapshot.record);
        if (price === null) return [];
        const { outputPerInput, fillEstimateSeconds, solvers } = price;
        const outputRatio = outputPerInput === null ? null : Number(outputPerInput);
        const route = routes[index]?.name ?? '';
        return [{ route, outputRatio, feeRatio: feeRatio(price), fillEstimateSeconds, solvers }];
      });
    },
  };
}

/** A directory that delegates to the current one. */
export function directoryOf(present: () => Directory): Directory {
  return {
    chain: (chainId) => present().chain(chainId),
    token: (chainId, address) => present().token(chainId, address),
  };
}

/** Names in a config for which metrics have series. */
export function metricNames({ receivers, subscriptions, checkedChains }: Config): MetricNames {
  return {
    receivers: receivers.map(({ name, type }) => ({ name, type })),
    routes: routesOf(subscriptions).map(({ name }) => name),
    chains: checkedChains.map(({ chainId, endpoints }) => ({
      chainId,
      endpoints: endpoints.map(({ name }) => name),
    })),
  };
}
