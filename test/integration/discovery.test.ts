import { Redis } from 'ioredis';
import { describe, expect, inject, test } from 'vitest';
import type { JsonValue } from '../../src/domain/json.ts';
import { Keys } from '../../src/store/keys.ts';
import { startDaemon, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import {
  hashOf,
  intentRecord,
  type Scripted,
  type ScriptedRequest,
  ScriptedUpstream,
} from '../support/scripted-upstream.ts';

const { later, started } = opening();

const TOKEN = `0x${'1b'.repeat(20)}`;
const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const CHAINS = [
  { chainId: 8453, name: 'Base by another name', quoteSigner: `0x${'5a'.repeat(20)}` },
  { chainId: 98_866, name: 'Plume' },
];

/** Is watched all the time, and never found. */
const QUIET = hashOf(999);
const UNSEEN: Scripted = { records: [intentRecord(QUIET, 'unknown', null)] };

/** The answers of the discovery endpoints; `null` makes them answer 503. */
type Lists = { chains: JsonValue; tokens: JsonValue };

const json = (body: JsonValue): Scripted => ({ status: 200, body: JSON.stringify(body) });

function record(hash: string, token: string, amount = '2500000000'): Scripted {
  const leg = { chainId: 98_866, txHash: `0x${'ab'.repeat(32)}`, token, amount };
  const updatedAt = Math.floor(Date.now() / 1_000);
  return { records: [intentRecord(hash, 'pending', updatedAt, { sourceTx: leg })] };
}

/** A daemon that watches intents of one token, with one receiver whose messages have texts. */
async function stage(options: { lists: Lists | null; token?: string; more?: object; receiver?: object }) {
  const held = { lists: options.lists, token: options.token ?? TOKEN };
  const isList = ({ path }: ScriptedRequest): boolean => path === '/v1/chains' || path === '/v1/tokens';
  const upstream = await started(
    new ScriptedUpstream(
      ({ path, query }) => {
        if (path !== '/v1/chains' && path !== '/v1/tokens')
          return query.intentHash === QUIET ? UNSEEN : record(query.intentHash ?? '', held.token);
        if (held.lists === null) return { status: 503, body: 'none' };
        return json(path === '/v1/chains' ? held.lists.chains : held.lists.tokens);
      },
      { lists: true },
    ),
  );
  const hook = await started(new Hook());
  const prefix = testPrefix();
  const lines: { msg: string; [member: string]: unknown }[] = [];
  const start = async (intents: string[]) => {
    const { daemon } = await startDaemon(
      {
        baseUrl: upstream.url,
        redisUrl: inject('redisUrl'),
        prefix,
        receivers: {
          chat: { url: hook.url, more: { format: 'slack', secrets: undefined, ...options.receiver } },
        },
        subscriptions: [{ name: 's', intents: [QUIET, ...intents], receivers: ['chat'] }],
        more: options.more ?? {},
      },
      (line) => lines.push(JSON.parse(line)),
    );
    later(() => daemon.close());
    return daemon;
  };
  const redis = new Redis(inject('redisUrl'));
  later(() => redis.quit());
  const keys = new Keys(prefix);
  return {
    held,
    lines,
    start,
    redis,
    keys,
    lists: () => upstream.requests.filter(isList).map(({ path }) => path),
    read: () => eventually('the lists were read', () => logged(lines, 'directory.read', 'tokens')),
    reported: async (count = 1) => (await hook.until((came) => came.length >= count)).map(({ body }) => body),
  };
}

function logged(lines: readonly { msg: string; [member: string]: unknown }[], msg: string, list?: string) {
  return lines.find((line) => line.msg === msg && (list === undefined || line.list === list)) ?? null;
}

describe('chains and tokens of the upstream', () => {
  const tokens = [{ chainId: 98_866, address: TOKEN, symbol: 'PUSD', decimals: 6 }];

  test('are requested once at start, stored over a restart, and reported by their names', async () => {
    const run = await stage({ lists: { chains: { chains: CHAINS }, tokens: { tokens } } });
    const first = await run.start([]);
    await run.read();
    await first.close();
    await run.start([hashOf(1)]);
    const [body] = await run.reported();
    expect(body).toContain('2,500.00 PUSD');
    expect(body).toContain('Plume');
    expect(run.lists()).toEqual(['/v1/chains', '/v1/tokens']);
  });

  test('lend no symbol to the metrics: a USDC of the upstream counts as other', async () => {
    const spoofed = [{ chainId: 98_866, address: TOKEN, symbol: 'USDC', decimals: 0 }];
    const run = await stage({ lists: { chains: CHAINS, tokens: spoofed } });
    const first = await run.start([]);
    await run.read();
    await first.close();
    const daemon = await run.start([hashOf(1)]);
    await run.reported();
    const lines = await eventually('the transfer is counted', async () => {
      const body = await (await fetch(`${daemon.url}/metrics`)).text();
      const found = body.split('\n').filter((line) => /_tokens(_total)?\{.* [^0]/.test(line));
      return found.length > 0 && found;
    });
    expect(lines).toEqual([
      'intentwatch_transfers_open_value_tokens{state="pending",token="other"} 2500000000',
      'intentwatch_transfer_volume_tokens_total{route="98866:*",token="other",outcome="pending"} 2500000000',
    ]);
  });

  test('are requested again when a record names a missing one, and once an hour', async () => {
    const run = await stage({ lists: { chains: CHAINS, tokens: [] } });
    // One at a time: another process would use its own read lists for some seconds.
    const first = await run.start([]);
    await run.read();
    await first.close();
    run.held.lists = { chains: CHAINS, tokens };
    const daemon = await run.start([hashOf(1)]);
    const [unknown] = await run.reported();
    expect(unknown).toContain('2500000000 base units');
    // It was read just now: it is not requested again so soon.
    expect(run.lists()).toHaveLength(2);
    await daemon.close();
    await age(run, 301_000);
    const second = await run.start([hashOf(1), hashOf(2)]);
    await eventually('the lists are read again', () => run.lists().length === 4);
    await eventually('the token is known', async () =>
      ((await run.redis.hget(run.keys.directory, 'tokens')) ?? '').includes('PUSD'),
    );
    await run.reported(2);
    await second.close();
    await run.start([hashOf(3)]);
    const all = await run.reported(3);
    expect(all.at(-1)).toContain('2,500.00 PUSD');
    await age(run, 3_601_000);
    await eventually('they are read once an hour', () => run.lists().length === 6);
  });

  test('that cannot be had hold up nothing, and are requested again after a while', async () => {
    const run = await stage({ lists: null, token: USDC });
    await run.start([hashOf(1)]);
    const failed = await eventually('it is logged', () => logged(run.lines, 'directory.not_read'));
    expect(failed).toMatchObject({ nextInMs: 60_000, reason: expect.stringContaining('503') });
    expect(await run.reported()).toHaveLength(1);
    const waitMs = await run.redis.pttl(run.keys.directoryTurn);
    expect(waitMs).toBeGreaterThan(0);
    run.held.lists = { chains: CHAINS, tokens };
    await run.redis.del(run.keys.directoryTurn);
    await run.read();
  });

  test('have each entry and member that is unreadable counted', async () => {
    const broken: JsonValue[] = [null, { chainId: 'x' }, { chainId: 5, name: 7, quoteSigner: true }];
    const run = await stage({ lists: { chains: [...CHAINS, ...broken], tokens: [...tokens, 'none'] } });
    const daemon = await run.start([]);
    await run.read();
    expect(logged(run.lines, 'directory.read')).toMatchObject({ list: 'chains', count: 3, skipped: 4 });
    const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
    expect(metrics).toContain('intentwatch_records_unreadable_total{kind="other"} 5');
  });

  test('count for `minAmount`', async () => {
    const run = await stage({
      lists: { chains: CHAINS, tokens },
      receiver: { minAmount: '2500.01', events: ['intent.*', '!intent.updated'] },
    });
    await run.start([]);
    await run.read();
    await run.start([hashOf(1)]);
    await eventually('the event was made', async () => (await run.redis.xlen(run.keys.events)) === 1);
    await eventually('the relay has gone past it', async () => {
      const cursor = await run.redis.hget(run.keys.cursors, 'chat');
      const [newest] = await run.redis.xrevrange(run.keys.events, '+', '-', 'COUNT', 1);
      return newest !== undefined && cursor === newest[0];
    });
    expect(await run.redis.zcard(run.keys.pending('chat'))).toBe(0);
    expect(logged(run.lines, 'delivery.attempted')).toBeNull();
  });

  test.each([
    ['of two entries', [...tokens, { ...tokens[0], decimals: 18 }], {}, '2500000000 base units'],
    [
      'that the config contradicts',
      [...tokens, { ...tokens[0], decimals: 18 }],
      { tokens: [{ chainId: 98_866, address: TOKEN, symbol: 'OURS', decimals: 8 }] },
      '25.00 OURS',
    ],
  ])('with decimals that contradict each other (%s) show no amount that may be wrong, and are reported', async (_, listed, more, shown) => {
    const run = await stage({ lists: { chains: CHAINS, tokens: listed }, more });
    await run.start([]);
    await run.read();
    await run.start([hashOf(1)]);
    expect((await run.reported())[0]).toContain(shown);
    expect(logged(run.lines, 'directory.contradicted')).toMatchObject({ chainId: '98866', address: TOKEN });
  });

  test('are requested in slots of the budget, and not while the endpoint group is paused', async () => {
    const run = await stage({ lists: { chains: CHAINS, tokens } });
    const nowMs = Date.now();
    await run.redis.hset(run.keys.endpointGroup('status'), 'pausedUntil', nowMs + 600_000, 'pausedAt', nowMs);
    await run.start([]);
    await eventually('it waits', () => logged(run.lines, 'directory.not_read'));
    expect(run.lists()).toEqual([]);
  });

  test('of another shape in Redis are read anew', async () => {
    const run = await stage({ lists: { chains: CHAINS, tokens } });
    const nowMs = Date.now();
    await run.redis.hset(
      run.keys.directory,
      'tokens',
      '{"not":"a list"}',
      'tokensAtMs',
      nowMs,
      'chainsAtMs',
      nowMs,
    );
    await run.start([]);
    await run.read();
    expect(logged(run.lines, 'store.foreign')).toMatchObject({ what: 'directory' });
  });
});

/** Makes the stored lists older, as if no request had come since. */
async function age({ redis, keys }: { redis: Redis; keys: Keys }, byMs: number): Promise<void> {
  const atMs = String(Date.now() - byMs);
  await redis.hset(keys.directory, 'chainsAtMs', atMs, 'tokensAtMs', atMs);
  await redis.del(keys.directoryTurn);
}
