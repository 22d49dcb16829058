import { Redis } from 'ioredis';
import { describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { newSandbox } from '../support/deployment.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { now, QUOTE_ID, quoteStage, signedQuote, typesOf, UNKNOWN } from '../support/quote-stage.ts';
import type { Scripted } from '../support/scripted-upstream.ts';

const open = opening();
const { later, started } = open;
const { serving, shown, quoteFile, watching } = quoteStage(open);

describe('an imported quote', () => {
  test('expires by the clock, once, after a poll that shows it unfunded, and can be known later', async () => {
    let status = UNKNOWN;
    const upstream = await serving(() => status);
    const expiresAt = now() + 3;
    const { hook, start } = await watching(upstream.url, [
      { file: await quoteFile(await signedQuote(expiresAt)) },
    ]);
    const { daemon } = await start();
    const [event] = await hook.until((all) => all.length === 1);
    expect(event).toMatchObject({
      type: 'quote.expired',
      data: { sequence: 1, status: 'unknown', changes: [], record: { id: QUOTE_ID, expiresAt } },
    });
    expect(Date.parse(event?.timestamp ?? '')).toBeGreaterThanOrEqual(expiresAt * 1_000);
    await daemon.close();
    status = shown('active');
    const again = await start();
    await hook.until((all) => all.length === 2);
    await again.daemon.close();
    status = shown('submitted');
    await start();
    expect(typesOf(await hook.until((all) => all.length === 3))).toEqual([
      'quote.expired',
      'quote.active',
      'quote.submitted',
    ]);
  });

  test('has a poll due right after its end, however rarely it is polled by then', async () => {
    const old = { id: QUOTE_ID, type: 'quote', status: 'active', updatedAt: now() - 3 * 86_400 };
    const upstream = await serving(() => ({ records: [old] }));
    const expiresAt = now() + 300;
    const { hook, config, start } = await watching(upstream.url, [
      { file: await quoteFile(await signedQuote(expiresAt)) },
    ]);
    await start();
    await hook.until((all) => all.length === 1);
    const redis = new Redis(inject('redisUrl'));
    later(() => redis.quit());
    const dueMs = await eventually('the plan of the next poll', async () => {
      const planned = Number(await redis.zscore(`{${config.prefix}}:plan:status:alarms`, QUOTE_ID));
      return planned > 0 && planned;
    });
    expect(dueMs - expiresAt * 1_000).toBeGreaterThan(0);
    expect(dueMs - expiresAt * 1_000).toBeLessThan(10_000);
  });

  test('does not expire when the poll after its end shows that it was funded', async () => {
    const expiresAt = now() + 2;
    const upstream = await serving(() =>
      Date.now() < expiresAt * 1_000 ? shown('active') : shown('submitted'),
    );
    const { hook, start } = await watching(upstream.url, [
      { file: await quoteFile(await signedQuote(expiresAt)) },
    ]);
    await start();
    await hook.until((all) => typesOf(all).includes('quote.submitted'));
    await upstream.awaitRequest(({ path }) => path === '/v1/intents/status');
    expect(typesOf(hook.events)).not.toContain('quote.expired');
  });
});

describe('quotes of the sandbox', () => {
  const FUNDED = z.looseObject({ intentHash: z.string() });
  const QUOTE = z.looseObject({ id: z.string(), source: z.looseObject({ chainId: z.number() }) });

  /** Their events, and their ids; null where this machine stalled until they had expired. */
  async function reported(timeScale: number) {
    const sandbox = await started(newSandbox({ timeScale, transfersPerSecond: 0 }));
    const { url, controlUrl } = sandbox;
    const post = async (target: string, body: object): Promise<unknown> => {
      const headers = { 'content-type': 'application/json', 'x-api-key': 'sandbox-key' };
      const answer = await fetch(target, { method: 'POST', headers, body: JSON.stringify(body) });
      return answer.json();
    };
    const quote = async () =>
      QUOTE.parse(
        await post(`${url}/v1/quotes`, {
          type: 'exact-in',
          dappId: 'test',
          slippage: 0.005,
          source: { chainId: 8453, token: USDC_BASE, funder: OWNER, amount: '100000000' },
          destination: { chainId: 10, token: USDC_OPTIMISM, recipient: OWNER },
        }),
      );
    const old = await quote();
    await post(`${controlUrl}/rotate-signer`, {});
    const [funded, expired, altered] = [await quote(), await quote(), await quote()];
    const files = await Promise.all(
      [old, funded, expired, { ...altered, source: { ...altered.source, chainId: 10 } }].map(async (one) => ({
        file: await quoteFile(z.record(z.string(), z.json()).parse(one)),
      })),
    );
    if (!FUNDED.safeParse(await post(`${controlUrl}/fund`, { quoteId: funded.id })).success) return null;
    const { hook, start } = await watching(url, files);
    await start();
    const of = (events: readonly RenderedEvent[], id: string): string[] =>
      events.filter(({ data }) => data.subject.id === id).map(({ type }) => type);
    const events = await hook.until(
      (all) =>
        of(all, expired.id).includes('quote.expired') &&
        of(all, funded.id).length > 0 &&
        [old.id, altered.id].every((id) => of(all, id).length > 1),
    );
    const isInTime = [old, expired, altered].every(({ id }) => of(events, id).includes('quote.active'));
    return isInTime ? { of, events, old, funded, expired, altered } : null;
  }

  test('are reported as they are: funded in time, expired, altered, signed by a signer of before', async () => {
    let scale = 120;
    const { of, events, old, funded, expired, altered } = await eventually('they were seen in time', () => {
      scale /= 2;
      return reported(scale);
    });
    expect(of(events, expired.id)).toEqual(['quote.active', 'quote.expired']);
    expect(of(events, funded.id)[0]).toBe('quote.submitted');
    expect(of(events, funded.id)).not.toContain('quote.expired');
    for (const id of [old.id, altered.id]) {
      expect(of(events, id).slice(0, 2)).toEqual(['quote.signature_invalid', 'quote.active']);
    }
    const parts = events.flatMap(
      ({ data }) =>
        z.object({ signature: z.object({ part: z.string() }) }).safeParse(data.record).data?.signature.part ??
        [],
    );
    expect(parts.sort()).toEqual(['signature', 'source.chainId']);
  });
});

const OWNER = '0x52908400098527886e0f7030069857d2e4169ee7';
const USDC_BASE = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
const USDC_OPTIMISM = '0x0b2c639c533813f4aa9d7837caf62653d097ff85';

describe('before a quote expires', () => {
  const watched = async (status: Scripted, expiresAt: number, more: Record<string, unknown> = {}) => {
    const upstream = await serving(() => status);
    const file = await quoteFile(await signedQuote(expiresAt));
    const { hook, start } = await watching(upstream.url, [{ file }], more);
    await start();
    return hook;
  };

  /** The events of a quote that is usable for so long; for longer where this machine stalled for much of it. */
  const reportedOf = async (
    seconds: number,
    { count, more = () => ({}) }: { count: number; more?: (seconds: number) => Record<string, unknown> },
  ): Promise<RenderedEvent[]> => {
    const hook = await watched(shown('active'), now() + seconds, more(seconds));
    const events = await hook.until((all) => typesOf(all).includes('quote.expired'));
    return events.length >= count || seconds > 60 ? events : reportedOf(2 * seconds, { count, more });
  };

  test('that is reported to subscribers that want it, once, and then its end', async () => {
    const more = (seconds: number) => ({ warnBefore: `${seconds / 2}s` });
    const events = await reportedOf(6, { count: 3, more });
    expect(typesOf(events)).toEqual(['quote.active', 'quote.expiring', 'quote.expired']);
    expect(events[1]?.data).toMatchObject({ status: 'active', changes: [], record: { id: QUOTE_ID } });
  });

  test('no warning is sent where no subscriber wants it, nor after the expiry', async () => {
    expect(typesOf(await reportedOf(3, { count: 2 }))).toEqual(['quote.active', 'quote.expired']);
    const past = await watched(shown('active'), now() - 10, { warnBefore: '1m' });
    expect(typesOf(await past.until((all) => all.length === 2))).toEqual(['quote.active', 'quote.expired']);
  });
});
