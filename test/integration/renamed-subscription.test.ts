import { expect, inject, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { asSubjectId } from '../../src/domain/subjects/subject.ts';
import type { Claim } from '../../src/domain/subjects/subscription.ts';
import { planKeys } from '../../src/domain/subjects/suspended-keys.ts';
import { redisTimeMs } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { Registry } from '../../src/store/registry.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import type { Desired } from '../../src/store/sync-config.ts';
import { cutClient } from '../support/cut-client.ts';
import { type TestConfig, testPrefix } from '../support/daemon.ts';
import { firstEpoch } from '../support/epoch.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { reloadable } from '../support/reloadable.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';
import { syncConfig } from '../support/sync-config.ts';

const { later, started } = opening();

const WALLET = '0x52908400098527886e0f7030069857d2e4169ee7';
const [ONE, TWO, THREE] = [hashOf(1), hashOf(2), hashOf(3)];

type State = { status: string; updatedAt: number };

/** An upstream with one wallet, on a clock that the test sets ahead. */
class WalletUpstream {
  readonly states = new Map<string, State>();
  aheadSeconds = 0;
  hasPages = true;
  isAway = false;
  readonly server = new ScriptedUpstream(({ query }) => {
    if (this.isAway) return { status: 503, body: '' };
    if (query.wallet !== undefined) {
      if (!this.hasPages) return { status: 500, body: '' };
      return this.#answer([...this.states].map(([hash, state]) => recordOf(hash, state)));
    }
    const hash = query.intentHash ?? '';
    const state = this.states.get(hash);
    return this.#answer([state === undefined ? intentRecord(hash, 'unknown', null) : recordOf(hash, state)]);
  });

  #answer(results: JsonObject[]) {
    const date = new Date(this.nowSeconds * 1_000).toUTCString();
    return { status: 200, body: JSON.stringify({ results, nextCursor: null }), headers: { date } };
  }

  get nowSeconds(): number {
    return Math.floor(Date.now() / 1_000) + this.aheadSeconds;
  }

  set(hash: string, status: string, updatedAt = this.nowSeconds): void {
    this.states.set(hash, { status, updatedAt });
  }
}

function recordOf(hash: string, { status, updatedAt }: State): JsonObject {
  return intentRecord(hash, status, updatedAt);
}

/** Starts a daemon on a wallet with one pending transfer that the receiver `backend` knows. */
async function stage() {
  const upstream = new WalletUpstream();
  await started(upstream.server);
  const [backend, desk] = [await started(new Hook()), await started(new Hook())];
  const all = { backend: { url: backend.url }, desk: { url: desk.url } };
  const configOf = (subscriptions: object[], receivers: TestConfig['receivers'] = all): TestConfig => ({
    baseUrl: upstream.server.url,
    redisUrl: inject('redisUrl'),
    prefix,
    receivers,
    subscriptions,
  });
  const prefix = testPrefix();
  const { daemon, write } = await reloadable(
    configOf([{ name: 'treasury', receivers: ['backend'], wallets: [WALLET] }]),
    { later },
  );
  await new Promise<void>((resolve) => {
    upstream.server.awaitRequest(({ query }) => query.wallet !== undefined).then(resolve);
  });
  upstream.set(ONE, 'pending', upstream.nowSeconds + 10);
  await backend.until((came) => came.length === 1);
  const reload = async (subscriptions: object[], receivers?: TestConfig['receivers']): Promise<void> => {
    await write(configOf(subscriptions, receivers));
    expect(await daemon.reload()).toMatchObject({ ok: true });
  };
  /** Makes two changes that no poll sees before the reload. */
  const changeAfter = async (...reloads: object[][]): Promise<void> => {
    upstream.isAway = true;
    upstream.set(ONE, 'filled', upstream.nowSeconds + 30);
    upstream.set(TWO, 'pending', upstream.nowSeconds + 30);
    upstream.aheadSeconds = 120;
    for (const subscriptions of reloads) await reload(subscriptions);
    upstream.isAway = false;
  };
  return { upstream, backend, desk, reload, changeAfter };
}

const typesOf = (hook: Hook, from = 0) =>
  hook.came
    .slice(from)
    .map(({ event: { type, data } }) => [type, data.subject.id, data.subscriptions])
    .sort();

test('a renamed subscription reports the changes before the reload, once, under the new name', async () => {
  const { backend, changeAfter, reload, upstream } = await stage();
  await changeAfter([{ name: 'renamed', receivers: ['backend'], wallets: [WALLET] }]);
  await backend.until((came) => came.length === 3);
  expect(typesOf(backend, 1)).toEqual([
    ['intent.filled', `intent:${ONE}`, ['renamed']],
    ['intent.pending', `intent:${TWO}`, ['renamed']],
  ]);
  // The old name is back, and nothing is reported twice.
  await reload([{ name: 'treasury', receivers: ['backend'], wallets: [WALLET] }]);
  upstream.set(THREE, 'pending');
  await backend.until((came) => came.length === 4);
  expect(typesOf(backend, 3)).toEqual([['intent.pending', `intent:${THREE}`, ['treasury']]]);
});

test('a subscription that is renamed twice before the next poll loses nothing', async () => {
  const { backend, changeAfter } = await stage();
  await changeAfter(
    [{ name: 'second', receivers: ['backend'], wallets: [WALLET] }],
    [{ name: 'third', receivers: ['backend'], wallets: [WALLET] }],
  );
  await backend.until((came) => came.length === 3);
  expect(typesOf(backend, 1).map(([type]) => type)).toEqual(['intent.filled', 'intent.pending']);
});

test('a receiver that was away while its subscription was renamed gets the events committed under the old name', async () => {
  const { upstream, backend, desk, reload } = await stage();
  const wallets = [WALLET];
  const alone = { desk: { url: desk.url } };
  await reload([{ name: 'treasury', receivers: ['backend', 'desk'], wallets }]);
  await reload([{ name: 'treasury', receivers: ['desk'], wallets }], alone);
  upstream.set(ONE, 'filled', upstream.nowSeconds + 30);
  await desk.until((came) => came.some(({ event: { type } }) => type === 'intent.filled'));
  await reload([{ name: 'renamed', receivers: ['desk'], wallets }], alone);
  upstream.set(TWO, 'pending', upstream.nowSeconds + 30);
  await desk.until((came) => came.some(({ event: { data } }) => data.subject.id === `intent:${TWO}`));
  await reload([{ name: 'renamed', receivers: ['backend', 'desk'], wallets }]);
  await backend.until((came) => came.length === 3);
  expect(typesOf(backend, 1)).toEqual([
    ['intent.filled', `intent:${ONE}`, ['treasury']],
    ['intent.pending', `intent:${TWO}`, ['renamed']],
  ]);
});

test('a receiver that is new to a moved wallet starts at the reload, and the others go on', async () => {
  const { upstream, backend, desk, changeAfter } = await stage();
  await changeAfter([{ name: 'renamed', receivers: ['backend', 'desk'], wallets: [WALLET] }]);
  await backend.until((came) => came.length === 3);
  upstream.set(THREE, 'pending');
  upstream.set(ONE, 'settled');
  await Promise.all([backend.until((came) => came.length === 5), desk.until((came) => came.length === 2)]);
  expect(typesOf(backend, 1).map(([type, subject]) => [type, subject])).toEqual([
    ['intent.filled', `intent:${ONE}`],
    ['intent.pending', `intent:${TWO}`],
    ['intent.pending', `intent:${THREE}`],
    ['intent.settled', `intent:${ONE}`],
  ]);
  expect(typesOf(desk)).toEqual([
    ['intent.pending', `intent:${THREE}`, ['renamed']],
    ['intent.settled', `intent:${ONE}`, ['renamed']],
  ]);
});

test('transfers that are polled by themselves before the next page retain their receivers', async () => {
  const { upstream, backend, changeAfter } = await stage();
  upstream.hasPages = false;
  await changeAfter([{ name: 'renamed', receivers: ['backend'], wallets: [WALLET] }]);
  await backend.until((came) => came.length === 2);
  upstream.set(ONE, 'settled');
  await backend.until((came) => came.length === 3);
  expect(typesOf(backend, 1).map(([type]) => type)).toEqual(['intent.filled', 'intent.settled']);
  upstream.hasPages = true;
  await backend.until((came) => came.length === 4);
  expect(typesOf(backend, 3)).toEqual([['intent.pending', `intent:${TWO}`, ['renamed']]]);
});

test('a sync that is cut off at any command and done again ends like one that was not', async () => {
  const wallet = asSubjectId(`wallet:${WALLET}`);
  const receiver = (name: string): Desired['receivers'][number] => ({
    name,
    type: 'webhook',
    events: [],
    filter: { wallets: null, chains: null, minAmount: null },
    ordering: 'none',
  });
  const wantedOf = (name: string, receivers: string[]): Desired => ({
    digest: name,
    graceSpanMs: 86_400_000,
    receivers: [receiver('backend'), receiver('desk')],
    routes: [],
    subscriptions: [
      {
        name,
        receivers,
        subjects: [wallet],
        metadata: {},
        history: 'skip',
        overdueAfterMs: null,
        warnBeforeMs: null,
        recipients: [],
      },
    ],
  });
  const redis = await connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const outcomes = new Set<string>();
  let calls = Number.POSITIVE_INFINITY;
  for (let cutAt = 0; cutAt <= calls; cutAt += 1) {
    const keys = new Keys(testPrefix());
    const { client: cut, sent } = cutClient(redis, cutAt);
    const registryOn = (client: typeof redis) =>
      new Registry(client, keys, new SubjectStore(client, keys, { epoch: firstEpoch(client, keys) }));
    await syncConfig(registryOn(redis), wantedOf('old', ['backend']), '0-0');
    const startMs = await redis.hget(keys.wanted, `old|${wallet}`);
    while ((await redisTimeMs(redis)) === Number(startMs));
    const next = wantedOf('new', ['backend', 'desk']);
    await syncConfig(registryOn(cut), next, '0-0').catch(() => undefined);
    if (cutAt === 0) calls = sent();
    await syncConfig(registryOn(redis), next, '0-0');
    const wanted = await redis.hgetall(keys.wanted);
    const continued = await redis.hget(keys.continued, `old|${wallet}`);
    const shown = Object.entries(wanted).map(([key, at]) => [key, at === startMs ? 'as before' : 'anew']);
    outcomes.add(JSON.stringify([shown.sort(), continued?.split('\n').slice(1)]));
  }
  expect(calls).toBeGreaterThan(10);
  expect([...outcomes]).toEqual([
    JSON.stringify([
      [
        [`new>backend|${wallet}`, 'as before'],
        [`new|${wallet}`, 'anew'],
      ],
      [`new>backend|${wallet}`],
    ]),
  ]);
});

/** A registry of subscriptions to one wallet, and a transfer that a page of it has shown. */
function registryStage() {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(testPrefix());
  const subjects = new SubjectStore(redis, keys, { epoch: firstEpoch(redis, keys) });
  const registry = new Registry(redis, keys, subjects);
  const [wallet, transfer] = [asSubjectId(`wallet:${WALLET}`), asSubjectId(`intent:${ONE}`)];
  const claimOf = async (name: string): Promise<Claim> => {
    const key = `${name}|${wallet}`;
    return { key, atMs: Number(await redis.hget(keys.wanted, key)), historyBefore: null, served: false };
  };
  return {
    claimOf,
    sync: async (names: string[], receivers: string[] = []): Promise<void> => {
      const subscriptions = names.map((name) => ({
        name,
        receivers,
        subjects: [wallet],
        metadata: {},
        history: 'skip' as const,
        overdueAfterMs: null,
        warnBeforeMs: null,
        recipients: [],
      }));
      await syncConfig(
        registry,
        { digest: names.join(), graceSpanMs: 0, receivers: [], routes: [], subscriptions },
        '0-0',
      );
    },
    /** Adds a claim to the transfer. Returns true when that needs a poll of it. */
    claim: (claim: Claim): Promise<boolean> => subjects.claim(transfer, [claim]),
    serve: async (name: string): Promise<Claim> => {
      const claim = await claimOf(name);
      await subjects.claim(transfer, [claim]);
      await redis.hset(keys.claims(transfer), claim.key, `${claim.atMs}::1`);
      return claim;
    },
    claims: (): Promise<Record<string, string>> => redis.hgetall(keys.claims(transfer)),
    pass: async ({ atMs }: Claim): Promise<void> => {
      while ((await redisTimeMs(redis)) === atMs);
    },
  };
}

test('claims that a subscription had served stay served where it takes an older name again', async () => {
  const { sync, serve, pass, claim, claimOf, claims } = registryStage();
  await sync(['a']);
  const first = await serve('a');
  await sync([]);
  await pass(first);
  await sync(['b']);
  const second = await serve('b');
  await sync(['a']);
  expect(await claim(await claimOf('a'))).toBe(false);
  expect(await claims()).toEqual({ [first.key]: `${second.atMs}::1` });
});

test('a receiver goes on where a name comes back before a transfer is polled, with a receiver more', async () => {
  const { sync, serve, pass, claim, claimOf, claims } = registryStage();
  await sync(['a'], ['backend']);
  const first = await serve('a');
  await pass(first);
  await sync(['b'], ['backend', 'desk']);
  await sync(['a'], ['backend', 'desk']);
  const narrowed = await claimOf('a>backend');
  expect(narrowed.atMs).toBe(first.atMs);
  expect(await claim(narrowed)).toBe(false);
  expect(await claims()).toEqual({ [narrowed.key]: `${first.atMs}::1` });
});

const W = asSubjectId(`wallet:${WALLET}`);

test.each([
  {
    what: 'a new name with the same receivers',
    stored: [{ key: `a|${W}`, atMs: 5, receivers: ['r'] }],
    named: [{ subscription: 'b', receivers: ['r'], subject: W }],
    continued: [{ key: `b|${W}`, subject: W, atMs: 5, from: [`a|${W}`] }],
  },
  {
    what: 'a receiver more',
    stored: [{ key: `a|${W}`, atMs: 5, receivers: ['r'] }],
    named: [{ subscription: 'b', receivers: ['r', 'new'], subject: W }],
    continued: [{ key: `b>r|${W}`, subject: W, atMs: 5, from: [`a|${W}`] }],
  },
  {
    what: 'another receiver: only the log goes on',
    stored: [{ key: `a|${W}`, atMs: 5, receivers: ['r'] }],
    named: [{ subscription: 'b', receivers: ['new'], subject: W }],
    continued: [{ key: `b>|${W}`, subject: W, atMs: 5, from: [`a|${W}`] }],
  },
  {
    what: 'two subscriptions of different age become one',
    stored: [
      { key: `a|${W}`, atMs: 5, receivers: ['r'] },
      { key: `b|${W}`, atMs: 7, receivers: ['q', 'r'] },
    ],
    named: [{ subscription: 'c', receivers: ['q', 'r'], subject: W }],
    continued: [
      { key: `c>r|${W}`, subject: W, atMs: 5, from: [`a|${W}`] },
      { key: `c|${W}`, subject: W, atMs: 7, from: [`b|${W}`] },
    ],
  },
  {
    what: 'the older of two leaves',
    stored: [
      { key: `a|${W}`, atMs: 5, receivers: ['r'] },
      { key: `b|${W}`, atMs: 7, receivers: ['r'] },
    ],
    named: [{ subscription: 'b', receivers: ['r'], subject: W }],
    continued: [{ key: `b>r|${W}`, subject: W, atMs: 5, from: [`a|${W}`] }],
  },
  {
    what: 'the younger of two leaves',
    stored: [
      { key: `a|${W}`, atMs: 5, receivers: ['r'] },
      { key: `b|${W}`, atMs: 7, receivers: ['r'] },
    ],
    named: [{ subscription: 'a', receivers: ['r'], subject: W }],
    continued: [],
  },
  {
    what: 'nothing leaves',
    stored: [{ key: `a|${W}`, atMs: 5, receivers: ['r'] }],
    named: [
      { subscription: 'a', receivers: ['r'], subject: W },
      { subscription: 'b', receivers: ['r'], subject: W },
    ],
    continued: [],
  },
])('subscription keys after a reload: $what', ({ stored, named, continued }) => {
  expect(planKeys(stored, named).continued).toEqual(continued);
});
