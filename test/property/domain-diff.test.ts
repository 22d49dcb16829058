import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Completeness, diffRecords } from '../../src/domain/changes/diff.ts';
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from '../../src/domain/json.ts';

const BOTH: Completeness[] = ['grows', 'replaces'];
const SETS = ['intentHashes', 'quoteIds', 'wallets', 'subStatuses'];

const member = fc.constantFrom(
  'id',
  'status',
  'updatedAt',
  'txHash',
  'steps',
  'type',
  'intentHash',
  'mood',
  'constructor',
  'toString',
  ...SETS,
);
const scalar = fc.constantFrom<JsonValue[]>(null, '', '0xab', '0xAB', 'TxY', 'TXY', '1', 1, 0, true, false);

/** Any JSON with few names, so that they collide. */
const anyValue = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    scalar,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(member, tie('value'), { maxKeys: 5, noNullPrototype: true }),
  ),
})).value;
const anyRecord: fc.Arbitrary<JsonObject> = fc.dictionary(member, anyValue, {
  maxKeys: 6,
  noNullPrototype: true,
});

const hash = fc.integer({ min: 0, max: 40 }).map((n) => `0xabcdef${n.toString(16)}`);
const subStatus = fc.record({
  chainId: fc.constantFrom(1, 10),
  quoteIds: fc.uniqueArray(fc.constantFrom('quote:a', 'quote:b', 'quote:c'), { maxLength: 3 }),
  txHash: fc.option(hash),
  intentHashes: fc.uniqueArray(hash, { maxLength: 3 }),
  state: fc.constantFrom('pending', 'submitted', 'failed'),
});
const record = fc.record({
  id: fc.constant('gasless:a'),
  intentHashes: fc.uniqueArray(hash, { maxLength: 4 }),
  wallets: fc.uniqueArray(hash, { maxLength: 4 }),
  subStatuses: fc.array(subStatus, { maxLength: 4 }),
});

/** The same record with its sets in another order and its hex in another case, by the keys. */
function reorder(value: JsonValue, keys: readonly number[], name = ''): JsonValue {
  if (typeof value === 'string') {
    return value.startsWith('0x') && (keys[0] ?? 0) % 2 === 1 ? `0x${value.slice(2).toUpperCase()}` : value;
  }
  if (Array.isArray(value)) {
    const inner = value.map((one) => reorder(one, keys));
    if (!SETS.includes(name)) return inner;
    return inner
      .map((one, index) => ({ one, key: keys[index % keys.length] ?? 0 }))
      .sort((a, b) => a.key - b.key)
      .map(({ one }) => one);
  }
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, reorder(inner, keys, key)]));
}

describe('the difference of any two records', () => {
  test('is empty between a record and itself, and does not change it', () => {
    fc.assert(
      fc.property(anyRecord, fc.constantFrom(...BOTH), (one, completeness) => {
        const difference = diffRecords(one, structuredClone(one), { completeness, unreadable: [] });
        expect(difference.changes).toEqual([]);
        expect(canonicalJson(difference.merged)).toBe(canonicalJson(one));
      }),
      { numRuns: 500 },
    );
  });

  test('is empty once it was applied, and applying it again changes nothing', () => {
    fc.assert(
      fc.property(anyRecord, anyRecord, fc.constantFrom(...BOTH), (one, other, completeness) => {
        const { merged } = diffRecords(one, other, { completeness, unreadable: [] });
        const again = diffRecords(merged, other, { completeness, unreadable: [] });
        expect(again.changes).toEqual([]);
        expect(canonicalJson(again.merged)).toBe(canonicalJson(merged));
      }),
      { numRuns: 1_500 },
    );
  });

  test('changes neither record, and merges them to JSON', () => {
    fc.assert(
      fc.property(anyRecord, anyRecord, fc.constantFrom(...BOTH), (one, other, completeness) => {
        const before = canonicalJson([one, other]);
        const { merged } = diffRecords(one, other, { completeness, unreadable: [] });
        expect(canonicalJson([one, other])).toBe(before);
        expect(canonicalJson(JSON.parse(JSON.stringify(merged)))).toBe(canonicalJson(merged));
      }),
      { numRuns: 500 },
    );
  });

  test('never names an unreadable member, and retains its stored value', () => {
    fc.assert(
      fc.property(
        anyRecord,
        anyRecord,
        member,
        fc.constantFrom(...BOTH),
        (one, other, name, completeness) => {
          const { changes, merged } = diffRecords(one, other, { completeness, unreadable: [name] });
          expect(changes).not.toContain(name);
          if (Object.hasOwn(one, name)) expect(merged[name]).toEqual(one[name]);
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe('the order of a set', () => {
  test('never matters, nor does the case of hex', () => {
    let moved = 0;
    fc.assert(
      fc.property(
        record,
        fc.array(fc.nat(), { minLength: 5, maxLength: 5 }),
        fc.constantFrom(...BOTH),
        (one, keys, completeness) => {
          const other = reorder(one, keys);
          if (!isJsonObject(other)) throw new Error('a record became something else');
          if (canonicalJson(one) !== canonicalJson(other)) moved += 1;
          expect(diffRecords(one, other, { completeness, unreadable: [] }).changes).toEqual([]);
        },
      ),
      { numRuns: 500 },
    );
    expect(moved).toBeGreaterThan(250);
  });
});
