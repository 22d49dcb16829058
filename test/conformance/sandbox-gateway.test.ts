import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { Sandbox } from '../../sandbox/sandbox.ts';

let sandbox: Sandbox;

beforeAll(async () => {
  sandbox = new Sandbox({ timeScale: 2_000, transfersPerSecond: 0 });
  await sandbox.start();
  await vi.waitFor(() => expect(sandbox.pace().livingTransfers).toBe(0), { timeout: 170_000 });
});

afterAll(async () => {
  await sandbox.close();
});

const HASH = expect.stringMatching(/^0x[0-9a-f]{64}$/);
const envelopeSchema = z.strictObject({ data: z.record(z.string(), z.unknown()) });
const UNKNOWN_VAULT = `0x${'0'.repeat(40)}`;

async function getData(path: string): Promise<Record<string, unknown>> {
  const response = await fetch(sandbox.url + path);
  expect(response.status).toBe(200);
  return envelopeSchema.parse(await response.json()).data;
}

async function expectRefusal(path: string, status: number): Promise<void> {
  const response = await fetch(sandbox.url + path);
  expect(response.status).toBe(status);
  expect(await response.json()).toEqual({
    requestId: expect.stringMatching(/^\d{1,5}$/),
    statusCode: status,
    message: expect.stringMatching(/./),
    error: expect.stringMatching(/./),
    code: status === 404 ? 'not-found' : 'invalid-request',
    details: { cause: expect.stringMatching(/./) },
  });
}

describe('gasless jobs', () => {
  const jobPath = (id: string) => `/deposit-gateway/v1/gasless/jobs/${id}`;
  const allJobs = () => Promise.all(sandbox.subjects().gaslessJobs.map((id) => getData(jobPath(id))));

  test('a completed job shows its transactions and its intent', async () => {
    const completed = (await allJobs()).filter(({ status }) => status === 'COMPLETED');
    expect(completed.length).toBeGreaterThan(0);
    // Those of ERC-3009 send no permit.
    expect(new Set(completed.map(({ permitTxHash }) => typeof permitTxHash))).toEqual(
      new Set(['string', 'undefined']),
    );
    for (const job of completed) {
      expect({ permitTxHash: `0x${'0'.repeat(64)}`, ...job }).toEqual({
        id: expect.any(String),
        status: 'COMPLETED',
        amount: expect.stringMatching(/^\d+$/),
        permitTxHash: HASH,
        transferTxHash: HASH,
        intentHash: HASH,
      });
    }
  });

  test('a failed job states the reason and names no intent', async () => {
    const failed = (await allJobs()).filter(({ status }) => status === 'FAILED');
    expect(failed.length).toBeGreaterThan(0);
    for (const job of failed) {
      expect(job).toMatchObject({ error: expect.stringMatching(/./) });
      expect(job).not.toHaveProperty('intentHash');
    }
  });

  test("an unknown job is a 404 in the gateway's own format", async () => {
    await expectRefusal(jobPath('00000000-0000-4000-8000-000000000000'), 404);
    await expectRefusal(jobPath('anything'), 404);
  });
});

describe.each([
  ['older', (address: string) => `/deposit-gateway/v2/depositAddresses/${address}`],
  ['current', (address: string) => `/v1/deposit-gateway/${address}`],
])('vaults at the %s path', (_name, vaultPath) => {
  const allVaults = () =>
    Promise.all(
      sandbox
        .subjects()
        .vaults.map(({ address, chainId }) => getData(`${vaultPath(address)}?sourceChainId=${chainId}`)),
    );

  test('a published vault names its intent', async () => {
    const published = (await allVaults()).filter(({ state }) => state === 'PUBLISHED');
    expect(published.length).toBeGreaterThan(0);
    for (const vault of published) {
      expect(vault).toEqual({
        vaultAddress: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
        amount: expect.stringMatching(/^\d+$/),
        deadline: expect.any(Number),
        state: 'PUBLISHED',
        intentHash: HASH,
        sourceChainId: expect.any(Number),
      });
    }
  });

  test('a vault that was not funded expires after its deadline', async () => {
    const expired = (await allVaults()).find(({ state }) => state === 'EXPIRED_UNFUNDED');
    expect(expired).not.toHaveProperty('intentHash');
    const id = `vault:${expired?.sourceChainId}:${String(expired?.vaultAddress).toLowerCase()}`;
    const last = sandbox.transitions().findLast(({ subject }) => subject === id);
    expect(last?.to).toBe('EXPIRED_UNFUNDED');
    expect(last?.at).toBeGreaterThanOrEqual(Number(expired?.deadline) * 1000);
  });

  test('a vault is found in any case', async () => {
    const [vault] = sandbox.subjects().vaults;
    const query = `?sourceChainId=${vault?.chainId}`;
    const record = await getData(vaultPath(String(vault?.address)) + query);
    expect(await getData(vaultPath(String(vault?.address).toLowerCase()) + query)).toEqual(record);
  });

  test('a vault is unknown on another chain', async () => {
    const [vault] = sandbox.subjects().vaults;
    await expectRefusal(`${vaultPath(String(vault?.address))}?sourceChainId=999`, 404);
  });

  test('a vault that was never seen is unknown', async () => {
    await expectRefusal(`${vaultPath(UNKNOWN_VAULT)}?sourceChainId=1`, 404);
  });

  test.each([
    ['a malformed address', '0x123', '?sourceChainId=1'],
    ['a missing chain id', UNKNOWN_VAULT, ''],
    ['an empty chain id', UNKNOWN_VAULT, '?sourceChainId='],
    ['a chain id that is no number', UNKNOWN_VAULT, '?sourceChainId=base'],
    ['a chain id of 0', UNKNOWN_VAULT, '?sourceChainId=0'],
    ['two chain ids', UNKNOWN_VAULT, '?sourceChainId=1&sourceChainId=2'],
  ])('%s is refused', async (_case, address, query) => {
    await expectRefusal(vaultPath(address) + query, 400);
  });
});
