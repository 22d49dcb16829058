import { describe, type ExpectStatic, onTestFinished, test } from 'vitest';
import { connect } from '../../src/store/connection.ts';
import { cannedServer, type SeenRequest } from '../support/canned-server.ts';
import { eventually } from '../support/eventually.ts';
import { RedisProcess } from '../support/redis-process.ts';
import {
  hashOf,
  intentRecord,
  type Scripted,
  type ScriptedRequest,
  ScriptedUpstream,
} from '../support/scripted-upstream.ts';
import { type ShippedConfig, ShippedDaemon } from '../support/shipped-daemon.ts';

const PROBLEM = { 'content-type': 'application/problem+json' };
const QUIET: Scripted = { records: [] };

const wallet = (index: number): string => `0x${String(index).padStart(40, '0')}`;
const wallets = (count: number): string[] => Array.from({ length: count }, (_, index) => wallet(index));

/** A request with its arrival time (own clock, ms). */
type Came = ScriptedRequest & { atMs: number };

/** An upstream with given answers that records the times of requests. */
async function upstream(
  answer: (request: ScriptedRequest) => Scripted | Promise<Scripted>,
): Promise<{ url: string; came: Came[]; server: ScriptedUpstream }> {
  const came: Came[] = [];
  const server = new ScriptedUpstream((request) => {
    came.push({ ...request, atMs: performance.now() });
    return answer(request);
  });
  await server.start();
  onTestFinished(() => server.close());
  return { url: server.url, came, server };
}

async function daemon(config: ShippedConfig): Promise<ShippedDaemon> {
  return ShippedDaemon.of(config, onTestFinished);
}

function problem(status: number, code: string, headers: Record<string, string> = {}): Scripted {
  const body = JSON.stringify({ type: `https://x/errors/${code}`, title: code, status, code });
  return { status, body, headers: { ...PROBLEM, ...headers } };
}

async function receiver(): Promise<{ url: string; types: () => string[] }> {
  const server = await cannedServer(() => ({ status: 204, body: '' }));
  onTestFinished(() => server.close());
  const types = (): string[] => server.seen.map(({ body }: SeenRequest) => String(JSON.parse(body).type));
  return { url: server.url, types };
}

/** When each wallet was requested ten times, none was requested much more often: none has waited long. */
async function isFair(came: readonly Came[], all: readonly string[], expect: ExpectStatic): Promise<void> {
  const requestTimes = (): number[] =>
    all.map((address) => came.filter(({ query }) => query.wallet === address).length);
  await eventually('ten requests each wallet', () => Math.min(...requestTimes()) >= 10, 600_000);
  expect(Math.max(...requestTimes())).toBeLessThan(30);
}

async function untilMs(atMs: number): Promise<void> {
  await eventually('the time to pass', () => performance.now() >= atMs, 600_000);
}

describe('with default settings, from a cold start', () => {
  test('a newcomer with one wallet is notified of a new transfer, and then of its fill, within seconds', async ({
    expect,
  }) => {
    let records: ReturnType<typeof intentRecord>[] = [];
    const service = await upstream(() => ({ records }));
    const hook = await receiver();
    const program = await daemon({
      baseUrl: service.url,
      receiver: hook,
      subscription: { wallets: [wallet(1)] },
    });
    await program.start();
    await untilMs(performance.now() + 6_000);
    const now = (): number => Math.floor(Date.now() / 1_000);
    records = [intentRecord(hashOf(1), 'pending', now())];
    await eventually('intent.pending', () => hook.types().includes('intent.pending'));
    records = [intentRecord(hashOf(1), 'filled', now() + 1)];
    await eventually('intent.filled', () => hook.types().includes('intent.filled'));
    // A webhook may come twice.
    expect([...new Set(hook.types())]).toEqual(['intent.pending', 'intent.filled']);
  });

  test('twenty quiet wallets at ten requests a second are each polled every few seconds, from the first', async ({
    expect,
  }) => {
    const service = await upstream(() => QUIET);
    const program = await daemon({
      baseUrl: service.url,
      requestsPerSecond: 10,
      subscription: { wallets: wallets(20) },
    });
    await program.start();
    await isFair(service.came, wallets(20), expect);
  });

  test('a slow upstream does not prevent the use of the whole budget', async ({ expect }) => {
    let underWay = 0;
    let most = 0;
    const service = await upstream(async () => {
      most = Math.max(most, ++underWay);
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      underWay--;
      return QUIET;
    });
    const program = await daemon({
      baseUrl: service.url,
      requestsPerSecond: 100,
      subscription: { wallets: wallets(400) },
    });
    await program.start();
    await eventually('many requests under way at once', () => most > 45, 600_000);
    expect(most).toBeGreaterThan(45);
  });
});

describe('every subject is polled', () => {
  test('by three kill -9 amid the poll of one subject', async ({ expect }) => {
    let hangs = true;
    const service = await upstream(async (request) => {
      if (hangs && request.query.wallet === wallet(7)) await new Promise(() => undefined);
      return QUIET;
    });
    const program = await daemon({ baseUrl: service.url, subscription: { wallets: wallets(10) } });
    const ofSeven = (): number => service.came.filter(({ query }) => query.wallet === wallet(7)).length;
    for (let kill = 1; kill <= 3; kill++) {
      const before = ofSeven();
      await program.start();
      await eventually('the subject to be polled', () => ofSeven() > before, 330_000);
      await program.kill();
    }
    hangs = false;
    const before = ofSeven();
    await program.start();
    await eventually('the subject to be polled again', () => ofSeven() > before + 1, 330_000);
    expect(ofSeven()).toBeGreaterThan(before + 1);
  }, 1_800_000);

  test('by three seconds of 503 that name an hour as Retry-After', async ({ expect }) => {
    let away = true;
    const service = await upstream(() =>
      away ? problem(503, 'service-unavailable', { 'retry-after': '3600' }) : QUIET,
    );
    const program = await daemon({ baseUrl: service.url, subscription: { wallets: wallets(20) } });
    await program.start();
    await eventually('the first refusals', () => service.came.length >= 3);
    await untilMs(performance.now() + 3_000);
    away = false;
    const fromMs = performance.now();
    const polled = (): Set<string | undefined> =>
      new Set(service.came.filter(({ atMs }) => atMs > fromMs).map(({ query }) => query.wallet));
    await eventually('everybody to be polled again', () => polled().size === 20, 600_000);
    expect(polled().size).toBe(20);
  });

  test('by one subject that answers 403 among ten wallets, and no event reports the key as refused', async ({
    expect,
  }) => {
    const service = await upstream(({ query }) =>
      query.wallet === wallet(3) ? { status: 403, body: '{"Message":"no"}' } : QUIET,
    );
    const hook = await receiver();
    const program = await daemon({
      baseUrl: service.url,
      receiver: { url: hook.url, events: ['upstream.*'] },
      subscription: { wallets: wallets(10) },
    });
    await program.start();
    const others = wallets(10).filter((one) => one !== wallet(3));
    await isFair(service.came, others, expect);
    expect(hook.types()).not.toContain('upstream.unauthorized');
  });

  test('by fifty quotes that answer 500', async ({ expect }) => {
    const service = await upstream(({ query }) =>
      query.quoteId === undefined ? QUIET : problem(500, 'internal-error'),
    );
    const hook = await receiver();
    const quotes = Array.from(
      { length: 50 },
      (_, index) => `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
    );
    const program = await daemon({
      baseUrl: service.url,
      receiver: { url: hook.url, events: ['upstream.*'] },
      subscription: { wallets: wallets(20), quotes },
    });
    await program.start();
    const requestsOf = (quoteId: string): Came[] =>
      service.came.filter(({ query }) => query.quoteId === quoteId);
    const requestsFor = (address: string): Came[] =>
      service.came.filter(({ query }) => query.wallet === address);
    const each = async (what: string, holds: () => boolean): Promise<boolean> =>
      eventually(what, holds, 600_000);
    await each('three requests each quote', () => quotes.every((quoteId) => requestsOf(quoteId).length >= 3));
    const before = service.came.length;
    const polled = new Map(wallets(20).map((address) => [address, requestsFor(address).length]));
    await each('three more polls of each wallet', () =>
      wallets(20).every((address) => requestsFor(address).length >= (polled.get(address) ?? 0) + 3),
    );
    const meanwhile = service.came.slice(before);
    const polls = meanwhile.filter(({ query }) => query.wallet !== undefined).length;
    expect(polls).toBeGreaterThan(2 * (meanwhile.length - polls));
    expect(hook.types()).toEqual([]);
  });

  test('by ten 429 at once: one pause of a second', async ({ expect }) => {
    let refused = 0;
    let open: (() => void)[] = [];
    const service = await upstream(async () => {
      if (refused >= 10) return QUIET;
      refused++;
      await new Promise<void>((resolve) => {
        open.push(resolve);
        if (open.length === 10) for (const release of open.splice(0)) release();
      });
      open = [];
      return problem(429, 'rate-limit-exceeded');
    });
    const program = await daemon({
      baseUrl: service.url,
      requestsPerSecond: 20,
      subscription: { wallets: wallets(40) },
    });
    const url = await program.start();
    const pausedSeconds = async (): Promise<string | undefined> => {
      const page = await (await fetch(`${url}/metrics`)).text();
      return /^intentwatch_upstream_paused_seconds_total\{endpoint_group="status"\} (\S+)$/m.exec(page)?.[1];
    };
    await eventually('ten refusals', () => refused === 10);
    const fromMs = performance.now();
    await eventually('polls to go on', () => service.came.some(({ atMs }) => atMs > fromMs + 3_000));
    expect(await pausedSeconds()).toBe('1');
    // Up to three polls that were under way when the pause began may come within it.
    const times = [fromMs, ...service.came.map(({ atMs }) => atMs).filter((atMs) => atMs > fromMs)];
    const spans = times.slice(4).map((atMs, index) => atMs - (times[index] ?? 0));
    expect(Math.max(...spans)).toBeGreaterThan(800);
  });

  test('by a Redis that is full and free in turns', async ({ expect }) => {
    const redis = await RedisProcess.create();
    onTestFinished(() => redis.close());
    // An answer takes longer than the turns: Redis has space when most polls begin, and is full when they end.
    const service = await upstream(async () => {
      await new Promise((resolve) => setTimeout(resolve, 500));
      return QUIET;
    });
    const program = await daemon({
      baseUrl: service.url,
      redisUrl: redis.url,
      subscription: { wallets: wallets(20) },
    });
    await program.start();
    await eventually('everybody to be polled', () => service.came.length >= 40);
    const admin = connect({ kind: 'server', url: redis.url });
    onTestFinished(() => admin.disconnect());
    const endMs = performance.now() + 60_000;
    while (performance.now() < endMs) {
      await admin.config('SET', 'maxmemory', '1000000');
      await untilMs(performance.now() + 400);
      await admin.config('SET', 'maxmemory', '0');
      await untilMs(performance.now() + 400);
    }
    const fromMs = performance.now();
    const polled = (): Set<string | undefined> =>
      new Set(service.came.filter(({ atMs }) => atMs > fromMs).map(({ query }) => query.wallet));
    await eventually('everybody to be polled again', () => polled().size === 20, 400_000);
    expect(polled().size).toBe(20);
  });
});
