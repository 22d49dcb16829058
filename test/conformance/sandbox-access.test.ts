import { base58 } from '@scure/base';
import { getAddress } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { Sandbox } from '../../src/sandbox/sandbox.ts';

let sandbox: Sandbox;

beforeAll(async () => {
  sandbox = new Sandbox({ transfersPerSecond: 0 });
  await sandbox.start();
});

afterAll(async () => {
  await sandbox.close();
});

const VAULT = `/v1/deposit-gateway/0x${'0'.repeat(40)}?sourceChainId=1`;

function get(path: string, apiKey?: string): Promise<Response> {
  return fetch(sandbox.url + path, { headers: apiKey === undefined ? {} : { 'x-api-key': apiKey } });
}

const KEYED = ['/v1/intents/status?wallet=x', '/v1/chains', '/v1/tokens', '/v1/nothing-here'];

describe('keys', () => {
  test.each(KEYED)('%s without a key is refused by the gateway in its own words', async (path) => {
    const response = await get(path);
    expect(response.status).toBe(403);
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    expect(await response.json()).toEqual({ Message: expect.stringContaining('not authorized') });
  });

  test.each([...KEYED, VAULT])('%s with a wrong key is a Problem without detail', async (path) => {
    const response = await get(path, 'wrong');
    expect(response.status).toBe(401);
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    expect(await response.json()).toEqual({
      type: `${sandbox.url}/v1/errors/invalid-api-key`,
      title: expect.stringContaining('missing, unknown, or revoked'),
      status: 401,
      code: 'invalid-api-key',
      requestId: expect.any(String),
    });
  });

  test('the vault look-up under /v1 needs no key', async () => {
    expect((await get(VAULT)).status).toBe(404);
  });

  test('a wrong key outside /v1 is ignored', async () => {
    expect((await get('/deposit-gateway/v1/gasless/jobs/x', 'wrong')).status).toBe(404);
  });
});

describe('keys that are known and do not do', () => {
  const SUBMITS = ['/v1/gasless/submit/erc-3009', '/v1/deposit-gateway/submit/erc-3009'];
  const ask = (method: string, path: string, ending: string) =>
    fetch(sandbox.url + path, { method, headers: { 'x-api-key': `${sandbox.apiKey}${ending}` } });

  test.each(SUBMITS)('at %s a key of no partner is refused, and the detail says so', async (path) => {
    const response = await ask('POST', path, '-unattributed');
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({
      code: 'invalid-api-key',
      detail: expect.stringContaining('could not be attributed'),
    });
  });

  test('a key of no partner reads', async () => {
    expect((await ask('GET', '/v1/chains', '-unattributed')).status).toBe(200);
  });

  test.each([
    ['-expired', 401, 'api-key-expired'],
    ['-forbidden', 403, 'permission-denied'],
    ['-other', 401, 'invalid-api-key'],
  ])('the ending %s gives %s %s', async (ending, status, code) => {
    const response = await ask('GET', '/v1/chains', ending);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ status, code });
  });
});

describe('paths', () => {
  test.each(['GET', 'POST'])('an unknown path under /v1 is endpoint-not-found for %s', async (method) => {
    const response = await fetch(`${sandbox.url}/v1/nothing-here`, {
      method,
      headers: { 'x-api-key': sandbox.apiKey },
    });
    expect(response.status).toBe(404);
    expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(await response.json()).toMatchObject({
      type: `${sandbox.url}/v1/errors/endpoint-not-found`,
      status: 404,
      code: 'endpoint-not-found',
    });
  });

  test('an unknown path elsewhere is a plain 404', async () => {
    const response = await get('/nothing-here');
    expect(response.status).toBe(404);
    expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
  });

  test('every answer carries the time', async () => {
    for (const path of ['/v1/chains', '/v1/nothing-here', '/nothing-here']) {
      expect(Date.parse((await get(path, sandbox.apiKey)).headers.get('date') ?? '')).not.toBeNaN();
    }
  });
});

const chainsSchema = z.object({
  chains: z.array(
    z.object({ chainId: z.number(), name: z.string(), kind: z.string(), quoteSigner: z.string() }),
  ),
});

const tokensSchema = z.object({
  tokens: z.array(
    z.object({ chainId: z.number(), address: z.string(), symbol: z.string(), decimals: z.number() }),
  ),
});

const getChains = async () =>
  chainsSchema.parse(await (await get('/v1/chains', sandbox.apiKey)).json()).chains;

const getTokens = async () =>
  tokensSchema.parse(await (await get('/v1/tokens', sandbox.apiKey)).json()).tokens;

describe('discovery', () => {
  test('every chain has an id, a name and the address that signs its quotes', async () => {
    const chains = await getChains();
    expect(chains.map(({ chainId }) => chainId)).toEqual(expect.arrayContaining([1, 10, 8453, 42161]));
    for (const { chainId, name, quoteSigner } of chains) {
      expect(chainId).toBeGreaterThan(0);
      expect(name).toMatch(/./);
      expect(getAddress(quoteSigner)).toBe(quoteSigner);
    }
  });

  test('every token is on a listed chain and has a valid address', async () => {
    const chains = await getChains();
    const tokens = await getTokens();
    const kinds = new Map(chains.map(({ chainId, kind }) => [chainId, kind] as const));
    expect(new Set(tokens.map(({ chainId }) => chainId))).toEqual(new Set(kinds.keys()));
    for (const { chainId, address, symbol, decimals } of tokens) {
      if (kinds.get(chainId) === 'evm') expect(getAddress(address)).toBe(address);
      else expect(base58.decode(address).length).toBe(kinds.get(chainId) === 'tron' ? 25 : 32);
      expect(symbol).toMatch(/^USD[CT]$/);
      expect(decimals).toBe(6);
    }
  });
});
