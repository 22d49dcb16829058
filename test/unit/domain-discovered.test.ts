import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { COMMON_NAMES, extendDirectory, tokenKey } from '../../src/domain/transfers/chains.ts';
import {
  contradictions,
  type DiscoveredToken,
  discoveredDirectory,
  mergeTokens,
  parseChains,
  quoteSigners,
} from '../../src/domain/transfers/discovered.ts';

const ADDRESS = `0x${'1B'.repeat(20)}`;
const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';

type Listed = Parameters<typeof mergeTokens>[1][number];

function token(more: Partial<Listed> = {}): Listed {
  return { chainId: 8453, address: ADDRESS, symbol: 'PUSD', decimals: 6, ...more };
}

function mergedOf(...lists: (readonly Listed[])[]): DiscoveredToken[] {
  return lists.reduce<DiscoveredToken[]>((before, list) => mergeTokens(before, list).entries, []);
}

function directory(tokens: DiscoveredToken[], chains: Parameters<typeof parseChains>[0] = []) {
  return discoveredDirectory(COMMON_NAMES, { chains: parseChains(chains).entries, tokens });
}

describe('a token that the upstream lists', () => {
  test('is known in either case of its address', () => {
    const found = directory(mergedOf([token()]));
    expect(found.token('8453', ADDRESS.toLowerCase())).toEqual({ symbol: 'PUSD', decimals: 6 });
    expect(found.token('10', ADDRESS)).toBeNull();
  });

  test.each([
    ['without symbol', { symbol: null }],
    ['without decimals', { decimals: null }],
    ['with decimals that no token has', { decimals: 78 }],
    ['with negative decimals', { decimals: -6 }],
    ['with a symbol of control characters', { symbol: 'US\u0007' }],
    ['with a symbol that is a sentence', { symbol: 'the one true dollar' }],
    ['with no address', { address: '../../' }],
    ['of a chain that cannot be', { chainId: 0 }],
  ])('%s is skipped', (_, more) => {
    expect(mergeTokens([], [token(more), token()])).toMatchObject({ skipped: 1, entries: [{ decimals: 6 }] });
  });

  test('and not any more stays known', () => {
    expect(directory(mergedOf([token()], [])).token('8453', ADDRESS)).toEqual({
      symbol: 'PUSD',
      decimals: 6,
    });
  });

  test.each([
    ['twice in one list', mergedOf([token(), token({ decimals: 18 })])],
    ['twice in one list, the first again at the end', mergedOf([token(), token({ decimals: 18 }), token()])],
    ['at two times', mergedOf([token()], [token({ decimals: 18 })])],
    ['otherwise than it is built in', mergedOf([token({ address: USDC, decimals: 18 })])],
  ])('with other decimals %s is reported in base units', (_, tokens) => {
    const address = tokens[0]?.address ?? '';
    expect(directory(tokens).token('8453', address)).toBeNull();
    expect(contradictions(COMMON_NAMES, { chains: [], tokens })).toEqual([
      { chainId: '8453', address, stored: 6, listed: 18 },
    ]);
  });

  test('is known again once the upstream repeats its first answer', () => {
    const tokens = mergedOf([token()], [token({ decimals: 18 })], [token()]);
    expect(directory(tokens).token('8453', ADDRESS)).toEqual({ symbol: 'PUSD', decimals: 6 });
  });

  test('counts less than the config', () => {
    const named = {
      chains: [],
      tokens: [{ chainId: '8453', address: ADDRESS, symbol: 'OURS', decimals: 8 }],
    };
    const found = extendDirectory(named, directory(mergedOf([token()])));
    expect(found.token('8453', ADDRESS)).toEqual({ symbol: 'OURS', decimals: 8 });
    expect(contradictions(extendDirectory(named), { chains: [], tokens: mergedOf([token()]) })).toHaveLength(
      1,
    );
  });
});

describe('a chain that the upstream lists', () => {
  const chain = { chainId: 8453, name: 'Base by another name', quoteSigner: '0xabc' };

  test('has its name and the explorer that is built in', () => {
    expect(directory([], [chain]).chain('8453')).toEqual({
      name: 'Base by another name',
      explorer: 'https://basescan.org/tx/{txHash}',
    });
  });

  test('with a name that no mail could show retains the built-in one, and its signer', () => {
    const { entries } = parseChains([{ ...chain, name: 'Base\r\nBcc: x@example.com' }]);
    expect(discoveredDirectory(COMMON_NAMES, { chains: entries, tokens: [] }).chain('8453')?.name).toBe(
      'Base',
    );
    expect(quoteSigners(entries)).toEqual(new Map([[8453, '0xabc']]));
  });
});

test('for any lists, a token that is shown has the decimals of every entry of the last list that names it', () => {
  const entry = fc.record({
    chainId: fc.integer({ min: -1, max: 3 }),
    address: fc.constantFrom(ADDRESS, ADDRESS.toLowerCase(), USDC),
    symbol: fc.constantFrom('PUSD', null, 'two words'),
    decimals: fc.constantFrom(6, 18, null, -1),
  });
  fc.assert(
    fc.property(fc.array(fc.array(entry, { minLength: 1 }), { minLength: 1, maxLength: 4 }), (lists) => {
      const tokens = mergedOf(...lists);
      const found = directory(tokens);
      for (const { chainId, address, decimals } of takeable(lists.at(-1) ?? [])) {
        const shown = found.token(String(chainId), address);
        if (shown !== null) expect(shown.decimals).toBe(decimals);
      }
      expect(new Set(tokens.map((one) => tokenKey(one.chainId, one.address))).size).toBe(tokens.length);
    }),
  );
});

function takeable(list: readonly Listed[]): Listed[] {
  return list.filter((one) => mergeTokens([], [one]).skipped === 0);
}
