import { hash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { pack, packFields, unpack, unpackFields } from '../../src/store/packed.ts';
import { intentRecord } from '../support/scripted-upstream.ts';

const HASH = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';

test('any text comes back as it was', () => {
  const texts = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 150 }),
    fc.json({ maxDepth: 2 }),
    fc.string({ minLength: 20, maxLength: 30 }).map((text) => text.repeat(8)),
  );
  fc.assert(
    fc.property(
      texts.filter((text) => text.isWellFormed()),
      (text) => {
        // A stored text is JSON, which no mark of a packed one begins.
        if (!text.startsWith('~')) expect(unpack(pack(text))).toBe(text);
      },
    ),
  );
});

test('a usual record takes less than half of its bytes', () => {
  const leg = {
    chainId: 8453,
    txHash: `0x${HASH}`,
    token: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    amount: '1250',
  };
  const text = JSON.stringify(
    intentRecord(`0x${HASH}`, 'filled', 1_795_000_000, { sourceTx: leg, destinationTx: leg }),
  );
  expect(pack(text).length * 2).toBeLessThan(text.length);
});

test('a text of any size comes back, also where zlib makes it in several pieces', () => {
  const hashes = (count: number): string[] =>
    Array.from({ length: count }, (_, at) => hash('sha256', String(at), 'hex'));
  const noise = hashes(1_100).join('');
  for (const size of [126, 127, 1_023, 1_024, 1_025, 2_050, 8_192, 16_381, 16_382, 16_383, 16_384, 65_534]) {
    for (const text of [
      JSON.stringify(noise.slice(0, size)),
      JSON.stringify('filled '.repeat(9_400).slice(0, size)),
    ]) {
      const packed = pack(text);
      expect(packed.startsWith(`~${size + 2}~`), String(size)).toBe(true);
      expect(unpack(packed)).toBe(text);
    }
  }
});

test('short texts and those beyond 64 KiB are stored as they are', () => {
  for (const text of ['{"id":"1"}', JSON.stringify('x'.repeat(65_536))]) expect(pack(text)).toBe(text);
});

test('a damaged text is returned as it is, and nothing is unpacked beyond its stated length', () => {
  const packed = pack(JSON.stringify({ text: 'filled '.repeat(100) }));
  const lying = packed.replace(/^~\d+~/, '~10~');
  for (const damaged of [packed.slice(0, 30), lying, '~7~', '~9~!!!!', '~~x'])
    expect(unpack(damaged)).toBe(damaged);
});

test('a text in pieces is no JSON where one of them is lost, and comes back whole before those of a longer one', () => {
  const hashes = (count: number): string[] =>
    Array.from({ length: count }, (_, at) => hash('sha256', String(at), 'hex'));
  const pieces = packFields('record', JSON.stringify(hashes(12)));
  const names = Object.keys(pieces);
  expect(names.length).toBeGreaterThan(4);
  for (const lost of names.slice(1)) {
    const rest = Object.fromEntries(Object.entries(pieces).filter(([name]) => name !== lost));
    expect(() => JSON.parse(unpackFields('record', rest) ?? ''), lost).toThrow(SyntaxError);
  }
  const shorter = JSON.stringify(hashes(3));
  expect(unpackFields('record', { ...pieces, ...packFields('record', shorter) })).toBe(shorter);
});

test('a text that is not packed has no pieces', () => {
  const left = packFields(
    'record',
    JSON.stringify(Array.from({ length: 12 }, (_, at) => hash('sha256', String(at)))),
  );
  expect(unpackFields('record', { ...left, record: '{"id":"1"}' })).toBe('{"id":"1"}');
});
