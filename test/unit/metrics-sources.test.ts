import { afterEach, expect, test, vi } from 'vitest';
import type { EndpointGroupState } from '../../src/metrics/definition.ts';
import type { Health, MetricSources, Metrics } from '../../src/metrics/metrics.ts';
import { metricsOf } from '../support/metrics-stage.ts';

const STATUS: EndpointGroupState = {
  endpointGroup: 'status',
  state: 'unauthorized',
  budget: 7,
  used: 0.75,
  price: 1.5,
  failing: 12,
  suspects: 2,
  overdueSeconds: 90,
};
const GATEWAY: EndpointGroupState = {
  endpointGroup: 'gateway',
  state: 'ok',
  budget: 2,
  used: 0,
  price: 1,
  failing: 0,
  suspects: 6,
  overdueSeconds: 0,
};

function create(sources: Partial<MetricSources>, health: Partial<Health> = {}): Metrics {
  return metricsOf({
    health,
    sources: {
      subjects: async () => [{ kind: 'intent', status: 'pending', count: 3 }],
      queues: async () => [{ queue: 'status', state: 'delayed', count: 4 }],
      deliveries: async () => [{ receiver: 'backend', pending: 5, dead: 6, removed: false }],
      receivers: async () => [
        {
          receiver: 'backend',
          state: 'failing',
          full: true,
          oldestSeconds: 7,
          undeliveredSeconds: 9,
          nextAttemptSeconds: 3,
        },
      ],
      suspensions: async () => ({ claimKeys: 0, waiting: 0 }),
      endpointGroups: async () => [STATUS, GATEWAY],
      waits: async () => [{ kind: 'wallet', longestSeconds: 40 }],
      sweeps: async () => [
        { state: 'sweeping', count: 0 },
        { state: 'broken', count: 9 },
      ],
      ...sources,
    },
  });
}

/** The lines of the source gauges that are not 0, and of scrape errors. */
async function gauges(metrics: Metrics): Promise<string[]> {
  const { body } = await metrics.expose();
  const names =
    /^intentwatch_(subjects|queue_depth|deliveries_pending|dead_letters|receiver_(state|full)|oldest_(delivery|undelivered)|next_attempt|upstream_(state|budget)|upstream_request_price|poll_overdue|wallets|longest|scrape)/;
  return body.split('\n').filter((line) => names.test(line) && !/_changes|(?<![.\d]) 0$/.test(line));
}

const SUBJECTS = 'intentwatch_subjects{kind="intent",status="pending"} 3';
const QUEUES = 'intentwatch_queue_depth{queue="status",state="delayed"} 4';
const ENDPOINT_GROUPS = [
  'intentwatch_upstream_state{endpoint_group="status",state="unauthorized"} 1',
  'intentwatch_upstream_budget_requests_per_second{endpoint_group="status"} 7',
  'intentwatch_upstream_budget_used_ratio{endpoint_group="status"} 0.75',
  'intentwatch_upstream_request_price_seconds{endpoint_group="status"} 1.5',
  'intentwatch_subjects_failing{endpoint_group="status"} 12',
  'intentwatch_poll_overdue_seconds{endpoint_group="status"} 90',
  'intentwatch_upstream_state{endpoint_group="gateway",state="ok"} 1',
  'intentwatch_upstream_budget_requests_per_second{endpoint_group="gateway"} 2',
  'intentwatch_upstream_request_price_seconds{endpoint_group="gateway"} 1',
  // The sum of both endpoint groups.
  'intentwatch_subjects_crashing 8',
];
const DELIVERIES = [
  'intentwatch_deliveries_pending{receiver="backend"} 5',
  'intentwatch_dead_letters{receiver="backend"} 6',
];
const RECEIVERS = [
  'intentwatch_receiver_state{receiver="backend",state="failing"} 1',
  'intentwatch_receiver_full{receiver="backend"} 1',
  'intentwatch_oldest_delivery_seconds{receiver="backend"} 7',
  'intentwatch_oldest_undelivered_event_seconds{receiver="backend"} 9',
  'intentwatch_next_attempt_seconds{receiver="backend"} 3',
];
const WAITS = 'intentwatch_longest_wait_seconds{kind="wallet"} 40';
const SWEEPS = 'intentwatch_wallets_never_swept{state="broken"} 9';

afterEach(() => {
  vi.useRealTimers();
});

test('gauges show the values of their sources', async () => {
  const shown = await gauges(create({}));
  expect(shown.sort()).toEqual(
    [SUBJECTS, QUEUES, ...ENDPOINT_GROUPS, ...DELIVERIES, ...RECEIVERS, WAITS, SWEEPS].sort(),
  );
});

test('the delay of the event loop is that of its longest iteration since the last scrape', async () => {
  const metrics = create({});
  const delay = async (name: string): Promise<number> => {
    const { body } = await metrics.expose();
    return Number(new RegExp(`^nodejs_eventloop_lag_${name}_seconds (\\S+)$`, 'm').exec(body)?.[1]);
  };
  const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));
  await delay('max');
  await turn();
  const endMs = performance.now() + 50;
  while (performance.now() < endMs);
  await turn();
  expect(await delay('max')).toBeGreaterThanOrEqual(0.049);
});

test('a source that fails has its gauges omitted and is counted; the others are shown', async () => {
  const metrics = create({
    waits: async () => {
      throw new Error('gone');
    },
    deliveries: () => {
      throw new Error('not even a promise');
    },
  });
  const shown = await gauges(metrics);
  expect(shown.sort()).toEqual(
    [
      SUBJECTS,
      QUEUES,
      SWEEPS,
      ...ENDPOINT_GROUPS,
      ...RECEIVERS,
      'intentwatch_scrape_errors_total{source="waits"} 1',
      'intentwatch_scrape_errors_total{source="deliveries"} 1',
    ].sort(),
  );
  const { body } = await metrics.expose();
  expect(body).not.toMatch(/^intentwatch_longest_wait_seconds/m);
  expect(body).not.toMatch(/^intentwatch_deliveries_pending/m);
});

test('a source that hangs is given up after 2 s, is not read again while it hangs, and comes back', async () => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  let requests = 0;
  let answer: (waits: { kind: string; longestSeconds: number }[]) => void = () => undefined;
  const metrics = create({
    waits: () => {
      requests += 1;
      return new Promise((resolve) => {
        answer = resolve;
      });
    },
  });
  const first = gauges(metrics);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await first).toContain('intentwatch_scrape_errors_total{source="waits"} 1');
  expect(await gauges(metrics)).toContain('intentwatch_scrape_errors_total{source="waits"} 2');
  expect(requests).toBe(1);

  answer([]);
  await vi.advanceTimersByTimeAsync(2_000);
  const last = gauges(metrics);
  expect(requests).toBe(2);
  answer([{ kind: 'vault', longestSeconds: 9 }]);
  expect(await last).toContain('intentwatch_longest_wait_seconds{kind="vault"} 9');
});

test('sources are read at most once per 2 s, for any number of concurrent or successive scrapes', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  let requests = 0;
  const metrics = create({ waits: async () => [{ kind: 'wallet', longestSeconds: ++requests }] });
  await Promise.all(Array.from({ length: 20 }, () => metrics.expose()));
  for (let scrape = 0; scrape < 20; scrape += 1) await metrics.expose();
  vi.advanceTimersByTime(1_999);
  expect((await metrics.expose()).body).toContain('{kind="wallet"} 1\n');
  vi.advanceTimersByTime(1);
  expect((await metrics.expose()).body).toContain('{kind="wallet"} 2\n');
  expect(requests).toBe(2);
});

test('endpoint groups without values omit all known values of plans', async () => {
  const metrics = create({ endpointGroups: () => Promise.reject(new Error('gone')) });
  const { body } = await metrics.expose();
  expect(body).not.toMatch(
    /^intentwatch_(subjects_(crashing|failing)|poll_overdue_seconds|upstream_request_price_seconds|upstream_budget_\w+)/m,
  );
});

test('a value that a source no longer gives is gone at the next scrape', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  let status = 'pending';
  const metrics = create({ subjects: async () => [{ kind: 'intent', status, count: 3 }] });
  expect(await gauges(metrics)).toContain(SUBJECTS);
  status = 'filled';
  vi.advanceTimersByTime(2_000);
  const shown = await gauges(metrics);
  expect(shown).toContain('intentwatch_subjects{kind="intent",status="filled"} 3');
  expect(shown).not.toContain(SUBJECTS);
});

test('a process reports whether it is ready and has Redis, while all sources hang', async () => {
  const never = (): Promise<never> => new Promise(() => undefined);
  const states: { health: Partial<Health>; lines: string[] }[] = [
    { health: {}, lines: ['ready 1', 'redis_persistent 1', 'redis_reachable 1'] },
    {
      health: { ready: async () => false, redisReachable: () => false, redisPersistent: () => false },
      lines: ['ready 0', 'redis_persistent 0', 'redis_reachable 0'],
    },
    { health: { ready: never, redisPersistent: () => null }, lines: ['ready 0', 'redis_reachable 1'] },
    {
      health: { ready: async () => Promise.reject(new Error()) },
      lines: ['ready 0', 'redis_persistent 1', 'redis_reachable 1'],
    },
  ];
  for (const { health, lines } of states) {
    const { body } = await create({ subjects: never, queues: never }, health).expose();
    const shown = body.split('\n').filter((line) => /^intentwatch_(ready|redis_)/.test(line));
    expect(shown.sort()).toEqual(lines.map((line) => `intentwatch_${line}`));
  }
});
