import { describe, expect, inject, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { now, QUOTE_ID, quoteStage, signedQuote, UNKNOWN } from '../support/quote-stage.ts';
import { IN_2100 } from '../support/signed-quote.ts';

const open = opening();
const { serving, quoteFile, watching } = quoteStage(open);

const VAULT = '0xde709f2102306220921060314715629080e2fb77';
const SUBJECT = `vault:8453:${VAULT}`;
const PENDING = {
  vaultAddress: VAULT,
  amount: '5',
  state: 'PENDING',
  sourceChainId: 8453,
  deadline: IN_2100,
};

/** The quote with a vault, whose deadline is that of the quote. */
async function quoteWithVault(expiresAt = IN_2100): Promise<JsonObject> {
  return { ...(await signedQuote(expiresAt)), execution: { vault: VAULT } };
}

/** An upstream that does not know the quote, and answers about the vault by `vault`, or that there is none. */
function gateway(vault: () => JsonObject | null) {
  return serving(({ path }) => {
    if (!path.includes('/depositAddresses/')) return UNKNOWN;
    const data = vault();
    const body = JSON.stringify(data === null ? { message: 'no such vault' } : { data });
    return { status: data === null ? 404 : 200, body };
  });
}

const vaultRequests = (upstream: Awaited<ReturnType<typeof gateway>>) =>
  upstream.requests.filter(({ path }) => path.includes('/depositAddresses/'));

/** Place of the vault in the plan, and its claims. */
async function stored(prefix: string): Promise<{ isPlanned: boolean; claims: string[] }> {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  try {
    const keys = new Keys(prefix);
    const isPlanned = (await redis.hexists(`${keys.plan('gateway')}:items`, SUBJECT)) === 1;
    return { isPlanned, claims: await redis.hkeys(`{${prefix}}:claims:${SUBJECT}`) };
  } finally {
    disconnect(redis);
  }
}

describe('the vault of an imported quote', () => {
  test('is watched on request, and its states are reported to those that requested it', async () => {
    const upstream = await gateway(() => PENDING);
    const file = await quoteFile(await quoteWithVault());
    const { hook, start } = await watching(upstream.url, [{ file, watchVault: true }]);
    await start();
    const [event] = await hook.until((all) => all.length === 1);
    expect(event).toMatchObject({ type: 'vault.pending', data: { subject: { kind: 'vault', id: SUBJECT } } });
    expect(vaultRequests(upstream)[0]).toMatchObject({
      path: `/deposit-gateway/v2/depositAddresses/${VAULT}`,
      query: { sourceChainId: '8453' },
    });
  });

  test('is not watched without a request, and is once a reload requests it', async () => {
    const upstream = await gateway(() => PENDING);
    const file = await quoteFile(await quoteWithVault());
    const { hook, config, start } = await watching(upstream.url, [{ file }]);
    const { daemon } = await start();
    await eventually(
      'the quote was polled twice',
      () => upstream.requests.filter(({ query }) => query.quoteId !== undefined).length >= 2,
    );
    expect(vaultRequests(upstream)).toEqual([]);
    expect(await stored(config.prefix)).toEqual({ isPlanned: false, claims: [] });
    await daemon.close();
    config.subscriptions = [{ name: 's', quotes: [{ file, watchVault: true }], receivers: ['hook'] }];
    await start();
    await hook.until((all) => all.some(({ type }) => type === 'vault.pending'));
  });

  test('is watched where it is requested of a quote that is tracked by itself', async () => {
    const upstream = await gateway(() => PENDING);
    const { hook, start } = await watching(upstream.url, [`${QUOTE_ID.slice(0, -1)}0`.slice(6)]);
    const { daemon } = await start();
    const track = async (body: object) => {
      const answer = await fetch(`${daemon.url}/api/v1/subjects`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ receivers: ['hook'], ...body }),
      });
      return { status: answer.status, text: await answer.text() };
    };
    const quote = await quoteWithVault();
    expect(await track({ quote })).toMatchObject({ status: 201 });
    expect(await track({ quote: { ...quote, execution: { vault: null } }, watchVault: true })).toMatchObject({
      status: 400,
      text: expect.stringContaining(
        'body.watchVault: found a quote with null as its execution.vault, expected',
      ),
    });
    expect(await track({ kind: 'quote', id: QUOTE_ID.slice(6), watchVault: true })).toMatchObject({
      status: 400,
      text: expect.stringContaining('body.watchVault: expected none but beside a whole quote'),
    });
    expect(vaultRequests(upstream)).toEqual([]);
    expect(await track({ quote, watchVault: true })).toMatchObject({ status: 200 });
    const [event] = await hook.until((all) => all.length === 1);
    expect(event).toMatchObject({ type: 'vault.pending', data: { subject: { id: SUBJECT } } });
  });

  test('ends unseen an hour after its deadline where no answer knows it', async () => {
    const upstream = await gateway(() => null);
    const file = await quoteFile(await quoteWithVault(now() - 3_601));
    const { config, start } = await watching(upstream.url, [{ file, watchVault: true }]);
    await start();
    await eventually('it has ended', async () => {
      const { isPlanned, claims } = await stored(config.prefix);
      return claims.length === 1 && !isPlanned;
    });
    expect(vaultRequests(upstream)).toHaveLength(1);
  });

  test('ends unseen an hour after its deadline where its requests are refused, after one of them', async () => {
    const upstream = await serving(({ path }) =>
      path.includes('/depositAddresses/') ? { status: 400, body: '{"message":"no"}' } : UNKNOWN,
    );
    const file = await quoteFile(await quoteWithVault(now() - 3_601));
    const { config, start } = await watching(upstream.url, [{ file, watchVault: true }]);
    const { daemon } = await start();
    await eventually('it was refused', () => vaultRequests(upstream).length === 1);
    // Once: each one plans it again.
    await fetch(`${daemon.url}/api/v1/subjects/${SUBJECT}/recheck`, { method: 'POST' });
    await eventually('it has ended with the next poll', async () => !(await stored(config.prefix)).isPlanned);
  });

  test('goes on before that, and where it is named itself', async () => {
    const upstream = await gateway(() => null);
    const young = await quoteWithVault(now() - 3_000);
    const first = await watching(upstream.url, [{ file: await quoteFile(young), watchVault: true }]);
    await first.start();
    const over = await quoteWithVault(now() - 3_601);
    const vaults = [{ address: VAULT, chainId: 8453 }];
    const second = await watching(upstream.url, [{ file: await quoteFile(over), watchVault: true }], {
      vaults,
    });
    await second.start();
    for (const { config } of [first, second]) {
      await eventually('it was polled, and goes on', async () => {
        const redis = connect({ kind: 'server', url: inject('redisUrl') });
        const polled = await redis.zscore(`{${config.prefix}}:plan:gateway:polled:vault`, SUBJECT);
        disconnect(redis);
        return polled !== null && (await stored(config.prefix)).isPlanned;
      });
    }
    expect((await stored(second.config.prefix)).claims.sort()).toEqual([`s|${QUOTE_ID}`, `s|${SUBJECT}`]);
  });
});
