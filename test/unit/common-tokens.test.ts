import { base58 } from '@scure/base';
import list from '@uniswap/default-token-list' with { type: 'json' };
import { getAddress, sha256 } from 'viem';
import { describe, expect, test } from 'vitest';
import { TOKENS } from '../../sandbox/world/chains.ts';
import { COMMON_NAMES, COMMON_TOKENS, TOKEN_SOURCES, tokenKey } from '../../src/domain/transfers/chains.ts';

/** The list uses another id for Solana. */
const SOLANA = { ours: '1399811149', lists: 501000101 };
const TRON = '728126428';

const listed = new Map(
  list.tokens.map(({ chainId, address, decimals }) => [
    tokenKey(chainId === SOLANA.lists ? SOLANA.ours : String(chainId), address),
    { address, decimals },
  ]),
);

const named = COMMON_TOKENS.map((entry) => [`${entry.token.symbol} on ${entry.chainId}`, entry] as const);

describe('a token that is built in', () => {
  test.each(named)('%s has a source, and the address and decimals that the token list has', (_, entry) => {
    const { chainId, address, token, source } = entry;
    expect(TOKEN_SOURCES[source]).toMatch(/^https:/);
    const found = listed.get(tokenKey(chainId, address));
    // Every token of Solana must match the list: a base58 address of an SPL token has no checksum to show a slip.
    if (source === 'list' || chainId === SOLANA.ours || found !== undefined) {
      expect(found).toEqual({ address, decimals: token.decimals });
    }
  });

  test.each(named)('%s has a checksum that holds, where its addresses have one', (_, {
    chainId,
    address,
  }) => {
    if (address.startsWith('0x')) expect(getAddress(address)).toBe(address);
    else if (chainId === TRON) expect(isTronAddress(address)).toBe(true);
    else expect(base58.decode(address)).toHaveLength(32);
  });
});

test('every token of the sandbox is known by its address', () => {
  for (const { chainId, address, decimals } of TOKENS)
    expect(COMMON_NAMES.token(String(chainId), address), `${chainId} ${address}`).toMatchObject({ decimals });
});

/** Base58 over 21 bytes and the first 4 of their double hash. */
function isTronAddress(address: string): boolean {
  const bytes = base58.decode(address);
  const check = sha256(sha256(bytes.slice(0, 21), 'bytes'), 'bytes').slice(0, 4);
  return bytes.length === 25 && bytes[0] === 0x41 && check.every((byte, at) => byte === bytes[21 + at]);
}
