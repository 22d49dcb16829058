import { keccak256 as reference, stringToHex } from 'viem/utils';
import { expect, test } from 'vitest';
import { keccak256 } from '../../src/domain/keccak256.ts';

/** Around each length at which a block of 136 bytes is full, in one and in several bytes a character. */
const TEXTS = [
  ...Array.from({ length: 300 }, (_, length) => 'a'.repeat(length)),
  ...Array.from({ length: 100 }, (_, length) => '€'.repeat(length)),
  '\ud800 half of a pair',
];

test('Keccak-256 of a text is what Ethereum’s libraries compute', () => {
  expect(keccak256('')).toBe('c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470');
  for (const text of TEXTS) expect(`0x${keccak256(text)}`, text).toBe(reference(stringToHex(text)));
});
