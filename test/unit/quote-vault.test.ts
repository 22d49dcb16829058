import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { readImportedQuote } from '../../src/domain/quotes/promised.ts';
import { quoteVault, vaultUnseenUntilMs } from '../../src/domain/quotes/quote-vault.ts';

const VAULT = '0xDE709f2102306220921060314715629080e2fb77';
const EXPIRES_AT = 1_800_000_000;
const DEADLINE = EXPIRES_AT + 5_760;

function importedQuote(more: JsonObject) {
  const quote = readImportedQuote({
    id: 'quote:3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41',
    expiresAt: EXPIRES_AT,
    source: { chainId: 8453 },
    ...more,
  });
  if (quote === null) throw new Error('expected a quote');
  return quote;
}

const reward = { intent: { route: { calls: [] }, reward: { deadline: DEADLINE, tokens: [] } } };

test('only the vault and the deadline of its reward are stored of an execution', () => {
  const { raw } = importedQuote({ execution: { transaction: { data: '0x' }, vault: VAULT, ...reward } });
  expect(raw.execution).toEqual({ vault: VAULT, intent: { reward: { deadline: DEADLINE } } });
});

test.each<[string, JsonObject, number]>([
  ['that of the reward', { execution: { vault: VAULT, ...reward } }, DEADLINE],
  [
    'that of the reward as text',
    { execution: { vault: VAULT, intent: { reward: { deadline: `${DEADLINE}` } } } },
    DEADLINE,
  ],
  ["the quote's expiry without one", { execution: { vault: VAULT } }, EXPIRES_AT],
  ["the quote's expiry where it cannot be read", { execution: { vault: VAULT, intent: null } }, EXPIRES_AT],
])('the deadline of a vault is %s, and its polls end an hour later', (_, more, seconds) => {
  const quote = importedQuote(more);
  expect(quoteVault(quote)).toEqual({ address: VAULT, chainId: 8453, deadlineMs: seconds * 1_000 });
  expect(vaultUnseenUntilMs(quote)).toBe(seconds * 1_000 + 3_600_000);
});

test.each<[string, JsonObject, RegExp]>([
  ['a null vault', { execution: { vault: null } }, /null as its execution\.vault/],
  ['no vault', { execution: {} }, /none in its execution\.vault/],
  ['null as its execution', { execution: null }, /none in its execution\.vault/],
  [
    'a vault on Solana',
    {
      source: { chainId: 1_399_811_149 },
      execution: { vault: '7EYnhQoR9YM3N7UoaKRoA44Uy8JeaZV3qyouov87awMs' },
    },
    /on chain 1399811149/,
  ],
  [
    'an EVM vault on Solana',
    { source: { chainId: 1_399_811_149 }, execution: { vault: VAULT } },
    /on chain 1399811149/,
  ],
  ['a vault on no chain', { source: {}, execution: { vault: VAULT } }, /on chain unknown/],
  ['no time', { expiresAt: null, execution: { vault: VAULT } }, /without expiresAt/],
])('a quote with %s has no vault to watch', (_, more, found) => {
  const quote = importedQuote(more);
  expect(quoteVault(quote)).toMatchObject({
    found: expect.stringMatching(found),
    expected: expect.any(String),
  });
  expect(vaultUnseenUntilMs(quote)).toBeNull();
});
