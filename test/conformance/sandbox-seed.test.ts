import { expect, test } from 'vitest';
import { z } from 'zod';
import { Sandbox } from '../../sandbox/sandbox.ts';

const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';
const REQUEST = {
  type: 'exact-in',
  dappId: 'tests',
  source: {
    chainId: 8453,
    token: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    funder: WALLET,
    amount: '100000000',
  },
  destination: { chainId: 10, token: '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85', recipient: WALLET },
};

// The hash of an intent, and its calldata, also follow from the deadline: they differ from second to second.
const quoteSchema = z.object({ id: z.string(), fees: z.unknown(), source: z.unknown() });

async function quotesOf(seed: number) {
  const sandbox = new Sandbox({ transfersPerSecond: 0, seed });
  await sandbox.start();
  const quotes: z.infer<typeof quoteSchema>[] = [];
  for (let index = 0; index < 2; index++) {
    const response = await fetch(`${sandbox.url}/v1/quotes`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': sandbox.apiKey },
      body: JSON.stringify(REQUEST),
    });
    quotes.push(quoteSchema.parse(await response.json()));
  }
  await sandbox.close();
  return quotes;
}

test('the same seed makes the same quotes in the same order, another seed others', async () => {
  const [first, second] = await quotesOf(7);
  expect(await quotesOf(7)).toEqual([first, second]);
  expect(second?.id).not.toBe(first?.id);
  expect((await quotesOf(8))[0]?.id).not.toBe(first?.id);
});
