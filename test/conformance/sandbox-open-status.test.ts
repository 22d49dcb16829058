import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { orderAt } from '../support/sandbox-order.ts';

const NOBODYS_HASH = `0x${'0'.repeat(64)}`;

let sandbox: Sandbox;
let settled: { intentHash: string; sourceTxHash: string };
let refunded: { intentHash: string; sourceTxHash: string };

beforeAll(async () => {
  sandbox = new Sandbox({ timeScale: 2_000, transfersPerSecond: 0 });
  await sandbox.start();
  settled = await orderAt(sandbox, { fate: 'settled' });
  refunded = await orderAt(sandbox, { fate: 'refunded' });
  const ended = { [settled.intentHash]: 'settled', [refunded.intentHash]: 'refunded' };
  for (const [hash, status] of Object.entries(ended)) {
    await vi.waitFor(async () => expect(await v1Status(hash)).toBe(status), { timeout: 60_000 });
  }
});

afterAll(async () => {
  await sandbox.close();
});

const transaction = z.strictObject({ chainId: z.int(), transactionHash: z.string() }).nullable();
const recordSchema = z.strictObject({
  intentHash: z.string(),
  status: z.union([z.strictObject({ Pending: z.string() }), z.strictObject({ Completed: z.string() })]),
  intentCreated: transaction,
  fulfillment: transaction,
  refund: transaction,
});

async function v1Status(hash: string): Promise<unknown> {
  const query = `${sandbox.url}/v1/intents/status?intentHash=${hash}`;
  const response = await fetch(query, { headers: { 'x-api-key': sandbox.apiKey } });
  return z.object({ results: z.array(z.object({ status: z.string() })) }).parse(await response.json())
    .results[0]?.status;
}

function post(endpoint: 'intentStatus' | 'status', body: unknown): Promise<Response> {
  return fetch(`${sandbox.quotesUrl}/api/v3/intents/${endpoint}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

async function statusBy(body: unknown) {
  const response = await post('intentStatus', body);
  expect(response.status).toBe(200);
  return z.strictObject({ data: recordSchema }).parse(await response.json()).data;
}

describe('intentStatus', () => {
  test('shows the sub-status of an intent in its status, with its transactions, and needs no key', async () => {
    const filled = await statusBy({ intentHash: settled.intentHash });
    expect(filled).toMatchObject({
      intentHash: settled.intentHash,
      status: { Completed: 'Fulfilled' },
      intentCreated: { chainId: 8453, transactionHash: settled.sourceTxHash },
      fulfillment: { chainId: 10 },
      refund: null,
    });
    const returned = await statusBy({ intentHash: refunded.intentHash });
    expect(returned).toMatchObject({
      status: { Completed: 'Refunded' },
      fulfillment: null,
      refund: { chainId: 8453 },
    });
  });

  test('finds an intent by its hash in any case, and by each of its transactions', async () => {
    const filled = await statusBy({ intentHash: settled.intentHash });
    const upper = `0x${settled.intentHash.slice(2).toUpperCase()}`;
    expect(await statusBy({ intentHash: upper })).toEqual(filled);
    expect(await statusBy({ intentCreatedHash: settled.sourceTxHash })).toEqual(filled);
    expect(await statusBy({ fulfillmentHash: filled.fulfillment?.transactionHash })).toEqual(filled);
  });

  test('answers 404 to the hash of no intent', async () => {
    const response = await post('intentStatus', { intentHash: NOBODYS_HASH });
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({
      statusCode: 404,
      validationErrors: [{ field: 'intentHash' }],
    });
  });

  test.each([
    {},
    { intentHash: '0x01' },
    { intentHash: NOBODYS_HASH, fulfillmentHash: NOBODYS_HASH },
    { intentHash: NOBODYS_HASH, chainId: 1 },
  ])('refuses %j', async (body) => {
    expect((await post('intentStatus', body)).status).toBe(400);
  });
});

describe('status', () => {
  async function statusesOf(intentHashes: string[]) {
    const response = await post('status', { intentHashes });
    expect(response.status).toBe(200);
    return z.strictObject({ data: z.array(recordSchema) }).parse(await response.json()).data;
  }

  test('shows those of up to 100 hashes that are intents', async () => {
    const unknown = Array.from({ length: 98 }, (_, index) => `0x${(index + 1).toString().padStart(64, '0')}`);
    const found = await statusesOf([settled.intentHash, ...unknown, refunded.intentHash]);
    expect(found.map(({ intentHash }) => intentHash)).toEqual([settled.intentHash, refunded.intentHash]);
    expect(found[0]).toEqual(await statusBy({ intentHash: settled.intentHash }));
  });

  test('answers 404 if it knows none, and refuses none and more than 100', async () => {
    expect((await post('status', { intentHashes: [NOBODYS_HASH] })).status).toBe(404);
    expect((await post('status', { intentHashes: [] })).status).toBe(400);
    expect((await post('status', { intentHashes: Array(101).fill(settled.intentHash) })).status).toBe(400);
  });
});
