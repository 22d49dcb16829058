import { base58 } from '@scure/base';
import { getAddress } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { Sandbox } from '../../sandbox/sandbox.ts';

let sandbox: Sandbox;

beforeAll(async () => {
  sandbox = new Sandbox({ transfersPerSecond: 0 });
  await sandbox.start();
});

afterAll(async () => {
  await sandbox.close();
});

function get(path: string, apiKey?: string): Promise<Response> {
  return fetch(sandbox.url + path, { headers: apiKey === undefined ? {} : { 'x-api-key': apiKey } });
}

describe('keys', () => {
  test('a path that does not exist under /v1 wants one too', async () => {
    expect((await get('/v1/nothing-here')).status).toBe(403);
    expect((await get('/v1/nothing-here', 'wrong')).status).toBe(401);
  });

  test('a wrong key outside /v1 is ignored', async () => {
    expect((await get('/deposit-gateway/v1/gasless/jobs/x', 'wrong')).status).toBe(404);
  });
});

describe('without a key that is required', () => {
  let keyless: Sandbox;

  beforeAll(async () => {
    keyless = new Sandbox({ transfersPerSecond: 0, requiresKey: false });
    await keyless.start();
  });

  afterAll(() => keyless.close());

  test.each([
    ['no key', {}, 200],
    ['the right key', { 'x-api-key': 'sandbox-key' }, 200],
    ['a wrong key', { 'x-api-key': 'wrong' }, 401],
  ])('a request with %s is answered %j: %i', async (_case, headers, status) => {
    expect((await fetch(`${keyless.url}/v1/tokens`, { headers })).status).toBe(status);
  });
});

describe('paths', () => {
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
