import { writeFile } from 'node:fs/promises';
import { Redis } from 'ioredis';
import { describe, expect, inject, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { runCommand } from '../support/command.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { now, QUOTE_ID, QUOTE_INTENT, quoteStage, typesOf } from '../support/quote-stage.ts';
import type { Scripted } from '../support/scripted-upstream.ts';
import { IN_2100, QUOTE_SIGNER, signQuote } from '../support/signed-quote.ts';

const open = opening();
const { serving, shown, quoteFile, watching } = quoteStage(open);

const SOLANA = 1_399_811_149;
const USDC_SOLANA = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const USDC_BASE = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
const FUNDER = '7EYnhQoR9YM3N7UoaKRoA44Uy8JeaZV3qyouov87awMs';
const RECIPIENT = '0x52908400098527886e0f7030069857d2e4169ee7';
const SOLVER = '0x8617e340b3d01fa5f11f306f4090fd50e238070d';
const SECOND_INTENT = `0x${'c2'.repeat(32)}` as const;
const ESTIMATE_SECONDS = 35;

const svm = {
  transaction: { type: 'svm', chainId: SOLANA, feePayer: FUNDER, instructions: [] },
  vault: null,
};

/** A signed quote from Solana in the shape that a deployment was seen to send. */
async function solanaQuote(execution: JsonObject | null = svm, name?: string): Promise<JsonObject> {
  const covered = {
    intentHashes: [QUOTE_INTENT, SECOND_INTENT],
    expiresAt: BigInt(IN_2100),
    chainId: SOLANA,
  };
  const named = name === undefined ? {} : { name };
  const step = { provider: 'a provider', from: {}, to: {}, fees: [] };
  return {
    id: QUOTE_ID,
    type: 'exact-in',
    signature: await signQuote({ id: QUOTE_ID, ...covered, ...named }),
    expiresAt: IN_2100,
    intentHash: QUOTE_INTENT,
    slippage: 0,
    solver: { id: SOLVER },
    quotes: null,
    source: {
      chainId: SOLANA,
      token: USDC_SOLANA,
      amount: '1000000',
      funder: FUNDER,
      symbol: null,
      decimals: null,
    },
    destination: {
      chainId: 8453,
      token: USDC_BASE,
      amountOut: '999000',
      minAmountOut: '994000',
      recipient: RECIPIENT,
    },
    refundRecipient: FUNDER,
    fees: [
      {
        type: 'protocol',
        amount: '100',
        token: { chainId: SOLANA, address: USDC_SOLANA, symbol: null, decimals: null },
        estimate: false,
      },
    ],
    steps: [
      {
        ...step,
        type: 'bridge',
        estimatedDurationSec: 14.5,
        intents: [{ role: 'remote', intentHash: SECOND_INTENT }],
      },
      { ...step, type: 'transfer', estimatedDurationSec: 20, intents: [] },
    ],
    execution,
  };
}

const chains = (signer: string | null): Scripted => ({
  status: 200,
  body: JSON.stringify([{ chainId: SOLANA, quoteSigner: signer }]),
});

/** An upstream that shows the quote as consumed, and its intent as pending since a time, Unix seconds. */
function upstreamOf({
  since = now() - 10,
  signer = QUOTE_SIGNER.address,
}: {
  since?: number;
  signer?: string | null;
}) {
  const steps = [
    {
      type: 'bridge',
      intentHash: QUOTE_INTENT,
      status: 'pending',
      from: { chainId: SOLANA, token: USDC_SOLANA, amount: '1000000' },
      to: { chainId: 8453, token: USDC_BASE, amount: '999000' },
      transactions: {},
    },
  ];
  const intent = {
    id: `intent:${QUOTE_INTENT}`,
    type: 'intent',
    status: 'pending',
    updatedAt: since,
    steps,
  };
  return serving(
    ({ query }) =>
      query.intentHash === undefined
        ? shown('submitted', { intentHashes: [QUOTE_INTENT] })
        : { records: [intent] },
    () => chains(signer),
  );
}

describe.each([
  ['with an svm execution', svm],
  ['without an execution', null],
])('a quote from Solana %s', (_, execution) => {
  test('is verified when it is imported, promises, and is overdue as its estimate states', async () => {
    const upstream = await upstreamOf({ since: now() - 15 * ESTIMATE_SECONDS - 5 });
    const file = await quoteFile(await solanaQuote(execution));
    const { hook, config, start } = await watching(upstream.url, [{ file }], { overdueAfter: 'learned' });
    await start();
    const events = await hook.until((all) => all.some(({ type }) => type === 'intent.overdue'));
    expect(typesOf(events).sort()).toEqual(['intent.overdue', 'intent.pending', 'quote.submitted']);
    expect(events.find(({ type }) => type === 'intent.pending')?.data.transfer).toMatchObject({
      funder: FUNDER,
      recipient: RECIPIENT,
      refundRecipient: FUNDER,
      promised: { amount: '999000', token: USDC_BASE },
      minimum: { amount: '994000' },
      fees: [{ amount: '100', token: USDC_SOLANA, kind: 'protocol' }],
    });
    const redis = new Redis(inject('redisUrl'));
    open.later(() => redis.quit());
    expect(await redis.hvals(`{${config.prefix}}:verdicts`)).toEqual([expect.stringMatching(/^valid:/)]);
    await eventually('its estimate is stored', async () => {
      const estimates = await redis.hgetall(`{${config.prefix}}:estimates`);
      return JSON.stringify(estimates).includes(`${SOLANA}:8453`);
    });
  });

  test('is undecided and not invalid where its chain publishes no signer', async () => {
    const upstream = await upstreamOf({ signer: null });
    const file = await quoteFile(await solanaQuote(execution));
    const { hook, config, start } = await watching(upstream.url, [{ file }]);
    await start();
    const events = await hook.until((all) => all.length === 2);
    expect(typesOf(events).sort()).toEqual(['intent.pending', 'quote.submitted']);
    const redis = new Redis(inject('redisUrl'));
    open.later(() => redis.quit());
    expect(await redis.exists(`{${config.prefix}}:verdicts`)).toBe(0);
  });

  test('is verified by verify-quote, and unverifiable under another name', async () => {
    const file = await quoteFile(await solanaQuote(execution));
    const verify = (...args: string[]) =>
      runCommand(['verify-quote', file, '--signer', QUOTE_SIGNER.address, ...args]);
    expect(await verify()).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^quote: valid, .* 2 intents, /),
    });
    await writeFile(file, JSON.stringify(await solanaQuote(execution, 'AcmeQuoteV1')));
    expect(await verify()).toMatchObject({
      code: 75,
      out: expect.stringContaining('UNVERIFIABLE, quoteDomain'),
    });
    expect(await verify('--quote-domain', 'AcmeQuoteV1')).toMatchObject({ code: 0 });
  });
});
