import { writeFile } from 'node:fs/promises';
import { Redis } from 'ioredis';
import { privateKeyToAccount } from 'viem/accounts';
import { describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import type { JsonObject } from '../../src/domain/json.ts';
import { INTERFACE_DOMAIN } from '../../src/domain/quotes/quote-signature.ts';
import { signalled } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import {
  chainsWith,
  now,
  QUOTE_ID,
  quoteStage,
  signedQuote,
  typesOf,
  UNKNOWN,
} from '../support/quote-stage.ts';
import { hashOf, type Scripted } from '../support/scripted-upstream.ts';
import { IN_2100, QUOTE_SIGNER } from '../support/signed-quote.ts';

const open = opening();
const { later } = open;
const { serving, shown, quoteFile, watching } = quoteStage(open);

const OTHER_SIGNER = privateKeyToAccount(`0x${'22'.repeat(32)}`);

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** The same signature with its last byte counted from another number than 27. */
function withEnd(signature: string, from: number): string {
  const parity = Number.parseInt(signature.slice(-2), 16) - 27;
  return `${signature.slice(0, -2)}${(from + parity).toString(16).padStart(2, '0')}`;
}

/** The other of the two signatures that recover alike. */
function withHighS(signature: string): string {
  const s = (ORDER - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0');
  return `${signature.slice(0, 66)}${s}${signature.endsWith('1b') ? '1c' : '1b'}`;
}

describe('an imported quote of a deployment whose quotes have another domain', () => {
  const NAME = 'AcmeQuoteV1';

  async function isValid({ prefix }: { prefix: string }): Promise<void> {
    const redis = new Redis(inject('redisUrl'));
    later(() => redis.quit());
    await eventually('it is verified', async () =>
      (await redis.hvals(`{${prefix}}:verdicts`)).some((verdict) => /\bvalid\b/.test(verdict)),
    );
  }

  test('is undecided, reported to the operator once, and verified once the config names the domain', async () => {
    const upstream = await serving(() => shown('active'));
    const file = await quoteFile(await signedQuote(IN_2100, QUOTE_SIGNER, NAME));
    const { hook, config, start } = await watching(upstream.url, [{ file }], { quoteDomain: null });
    for (let times = 0; times < 2; times += 1) {
      const { daemon } = await start();
      await hook.until((all) => all.length === 2);
      await daemon.close();
    }
    expect(typesOf(hook.events).sort()).toEqual(['intentwatch.quote_domain_unproven', 'quote.active']);
    const event = hook.events.find(({ type }) => type.startsWith('intentwatch.'));
    expect(event?.data.record).toEqual({
      setting: 'upstream.quoteDomain',
      quoteDomain: { name: 'ServiceQuoteV1', version: '1' },
      reason: expect.stringMatching(
        /^set upstream\.quoteDomain: no quote has verified under "ServiceQuoteV1", version "1" yet/,
      ),
    });
    config.upstream = { quoteDomain: { name: NAME } };
    await start();
    await isValid(config);
    expect(hook.events).toHaveLength(2);
  });

  test('is verified anew once the config names the right domain in place of a wrong one', async () => {
    const upstream = await serving(() => shown('active'));
    const file = await quoteFile(await signedQuote(IN_2100, QUOTE_SIGNER, NAME));
    const quoteDomain = { name: 'WrongQuoteV1', version: '1' };
    const { hook, config, start } = await watching(upstream.url, [{ file }], { quoteDomain });
    const { daemon } = await start();
    const events = await hook.until((all) => all.length === 2);
    expect(typesOf(events)).toContain('quote.signature_invalid');
    await daemon.close();
    config.upstream = { quoteDomain: { name: NAME } };
    await start();
    await isValid(config);
    expect(hook.events).toHaveLength(2);
  });

  test('is invalid where another key signed it, once one quote has proven the domain, also after a restart', async () => {
    const upstream = await serving(() => shown('active'));
    const { name } = INTERFACE_DOMAIN;
    const valid = await quoteFile(await signedQuote(IN_2100, QUOTE_SIGNER, name));
    const { hook, config, start } = await watching(upstream.url, [{ file: valid }], { quoteDomain: null });
    const first = await start();
    await isValid(config);
    await first.daemon.close();
    await writeFile(valid, JSON.stringify(await signedQuote(IN_2100, OTHER_SIGNER, name)));
    expect(config.upstream).toEqual({ quoteDomain: null });
    await start();
    const events = await hook.until((all) => all.length === 2);
    expect(typesOf(events)).toEqual(['quote.active', 'quote.signature_invalid']);
  });
});

describe('an imported quote', () => {
  test('is verified before any request about it, and followed in silence when it is valid', async () => {
    const upstream = await serving(() => shown('active'));
    const { hook, start } = await watching(upstream.url, [{ file: await quoteFile(await signedQuote()) }]);
    await start();
    const events = await hook.until((all) => all.length === 1);
    const paths = upstream.requests.map(({ path }) => path);
    expect(paths.indexOf('/v1/chains')).toBe(0);
    expect(paths).toContain('/v1/intents/status');
    expect(events).toMatchObject([{ type: 'quote.active', data: { sequence: 1, previousStatus: null } }]);
  });

  test.each([
    ['recovery byte 0 or 1', (signature: string) => withEnd(signature, 0)],
    ['a high s', (signature: string) => withHighS(signature)],
  ])('and signed with %s holds, so that its expiry is reported', async (_, rewrite) => {
    const upstream = await serving(() => shown('active'));
    const quote = await signedQuote(now() - 10);
    const file = await quoteFile({ ...quote, signature: rewrite(String(quote.signature)) });
    const { hook, start } = await watching(upstream.url, [{ file }]);
    await start();
    const events = await hook.until((all) => all.length === 2);
    expect(typesOf(events)).toEqual(['quote.active', 'quote.expired']);
  });

  test.each<[string, (quote: JsonObject) => JsonObject, object]>([
    ['another key', (quote) => quote, { part: 'signature', recovered: OTHER_SIGNER.address }],
    ['an expiry that was moved', (quote) => ({ ...quote, expiresAt: IN_2100 + 1 }), { part: 'signature' }],
    [
      'an intent that was added',
      ({ steps, ...quote }) => ({ ...quote, steps: [...z.array(z.json()).parse(steps), step(hashOf(9))] }),
      { part: 'steps', recovered: expect.any(String) },
    ],
    ['a signature cut short', (quote) => ({ ...quote, signature: '0x1234' }), { part: 'signature' }],
    ['no expiry', ({ expiresAt: _, ...quote }) => quote, { part: 'expiresAt', recovered: null }],
  ])('and has %s is reported as invalid, with the part that is wrong', async (name, alter, signature) => {
    const upstream = await serving(() => UNKNOWN);
    const signer = name === 'another key' ? OTHER_SIGNER : QUOTE_SIGNER;
    const file = await quoteFile(alter(await signedQuote(IN_2100, signer)));
    const { hook, start } = await watching(upstream.url, [{ file }]);
    await start();
    const [event] = await hook.until((all) => all.length === 1);
    expect(event).toMatchObject({
      type: 'quote.signature_invalid',
      data: {
        sequence: 1,
        status: 'unknown',
        changes: [],
        record: { id: QUOTE_ID, signature: { valid: false, reason: expect.any(String), ...signature } },
      },
    });
  });

  test('and is invalid is reported so once, also over a restart, and followed all the same', async () => {
    let status = UNKNOWN;
    const upstream = await serving(() => status);
    const file = await quoteFile(await signedQuote(now() - 10, OTHER_SIGNER));
    const { hook, start } = await watching(upstream.url, [{ file }]);
    const { daemon } = await start();
    await hook.until((all) => all.length === 1);
    await daemon.close();
    // It was found out once: a restart neither emits it again nor polls again.
    const requests = upstream.requests.length;
    status = shown('active');
    await start();
    const events = await hook.until((all) => all.length === 2);
    expect(events[1]).toMatchObject({
      type: 'quote.active',
      data: { sequence: 2, previousStatus: 'unknown' },
    });
    expect(upstream.requests.slice(requests).filter(({ path }) => path === '/v1/chains')).toEqual([]);
  });

  test('and is invalid is reported so once, also when the process ends between the event and our note of it', async () => {
    const upstream = await serving(() => shown('active'));
    const file = await quoteFile(await signedQuote(IN_2100, OTHER_SIGNER));
    const { hook, config, start } = await watching(upstream.url, [{ file }]);
    const { daemon } = await start();
    await hook.until((all) => all.length === 2);
    await daemon.close();
    const redis = new Redis(inject('redisUrl'));
    later(() => redis.quit());
    await redis.del(`{${config.prefix}}:verdicts`);
    await start();
    await eventually('a second verdict', async () =>
      redis.exists(`{${config.prefix}}:verdicts`).then(Boolean),
    );
    expect(typesOf(hook.events)).toEqual(['quote.signature_invalid', 'quote.active']);
    expect(await redis.xlen(`{${config.prefix}}:events`)).toBe(2);
  });

  test('is verified once: a later rotation of the signer changes nothing', async () => {
    let signer = QUOTE_SIGNER.address;
    let status = shown('active');
    const upstream = await serving(
      () => status,
      () => chainsWith(signer),
    );
    const { hook, start } = await watching(upstream.url, [{ file: await quoteFile(await signedQuote()) }]);
    const { daemon } = await start();
    await hook.until((all) => all.length === 1);
    await daemon.close();
    signer = OTHER_SIGNER.address;
    status = shown('submitted');
    await start();
    expect(typesOf(await hook.until((all) => all.length === 2))).toEqual(['quote.active', 'quote.submitted']);
  });

  test('is verified anew with another content', async () => {
    const upstream = await serving(() => UNKNOWN);
    const file = await quoteFile({ ...(await signedQuote(now() - 10)), expiresAt: IN_2100 });
    const { hook, start } = await watching(upstream.url, [{ file }]);
    const { daemon } = await start();
    await hook.until((all) => all.length === 1);
    await daemon.close();
    await writeFile(file, JSON.stringify(await signedQuote(now() - 10)));
    await start();
    expect(typesOf(await hook.until((all) => all.length === 2))).toEqual([
      'quote.signature_invalid',
      'quote.expired',
    ]);
  });

  test.each<[string, Scripted]>([
    ['cannot be read', { status: 503, body: '<html>gateway</html>' }],
    ['name no signer', chainsWith(null)],
    ['name something that is no signer', chainsWith('soon')],
  ])('is not called invalid where the chains %s, and goes on being polled', async (_, answer) => {
    const upstream = await serving(
      () => shown('active'),
      () => answer,
    );
    const { hook, config, start } = await watching(upstream.url, [
      { file: await quoteFile(await signedQuote(now() - 10, OTHER_SIGNER)) },
    ]);
    const { signals } = await start();
    await hook.until((all) => all.length === 1);
    // No member of it is trusted before it is verified, not even its expiry.
    await upstream.awaitRequest(({ path }) => path === '/v1/intents/status');
    await signalled<{ outcome: string }>((take) => signals.on('poll.ended', take));
    const redis = new Redis(inject('redisUrl'));
    later(() => redis.quit());
    expect(await redis.hgetall(`{${config.prefix}}:verdicts`)).toEqual({});
    expect(await redis.xlen(`{${config.prefix}}:events`)).toBe(1);
    expect(typesOf(hook.events)).toEqual(['quote.active']);
  });

  test('is reported as invalid later where the chains could not be read at first', async () => {
    let away = true;
    const upstream = await serving(
      () => shown('active'),
      () => (away ? { status: 503, body: '' } : chainsWith(QUOTE_SIGNER.address)),
    );
    const { hook, start } = await watching(upstream.url, [
      { file: await quoteFile(await signedQuote(IN_2100, OTHER_SIGNER)) },
    ]);
    const { daemon } = await start();
    await hook.until((all) => all.length === 1);
    await daemon.close();
    away = false;
    await start();
    const events = await hook.until((all) => all.length === 2);
    expect(events[1]).toMatchObject({
      type: 'quote.signature_invalid',
      data: { sequence: 2, status: 'active', record: { status: 'active', signature: { part: 'signature' } } },
    });
  });
});

function step(intentHash: string): JsonObject {
  return { type: 'BRIDGE', intents: [{ intentHash, role: 'primary' }] };
}
