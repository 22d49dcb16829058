import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { JsonObject, JsonValue } from '../../src/domain/json.ts';
import { ASSUMPTIONS } from '../../src/operations/probe/assumptions.ts';
import { CHAINS } from '../../src/upstream/wire/chain-list.ts';
import { GATEWAY_JOB } from '../../src/upstream/wire/gateway-record.ts';
import { type MemberReport, reportMembers } from '../../src/upstream/wire/member-report.ts';
import { QUOTE_ANSWER } from '../../src/upstream/wire/quote.ts';
import { readStatusPage, STATUS_PAGE } from '../../src/upstream/wire/status-page.ts';

const side = { token: '0xusdc', amount: '1000000', chainId: 8453 };

const RECORD: JsonObject = {
  id: 'intent:0x1',
  type: 'intent',
  status: 'filled',
  updatedAt: 1763638259,
  txHash: null,
  intentHashes: ['0x1'],
  sourceTx: { ...side, txHash: '0x01' },
  steps: [
    {
      type: 'BRIDGE',
      intentHash: '0x2',
      status: 'FULFILLED',
      from: side,
      to: side,
      transactions: { created: { chainId: 8453, txHash: '0x01' } },
    },
  ],
};

const page = (record: JsonValue): JsonValue => ({ results: [record], nextCursor: null });

/** A report without its sets and maps. */
function plain({ read, unknown, unreadable }: MemberReport) {
  return {
    read: [...read].sort(),
    unknown: [...unknown.values()].map(({ parent, name, types }) => [parent, name, ...types]),
    unreadable: [...unreadable].map(([path, reasons]) => [path, ...reasons]),
  };
}

describe('members of an answer', () => {
  test('are read, unknown, or unreadable with the reason', () => {
    const record = {
      ...RECORD,
      mood: { inner: 1 },
      txHash: 5,
      steps: [{ type: 'BRIDGE', intentHash: '0x2', status: '', from: { ...side, amount: null }, to: [] }],
    };
    const report = plain(reportMembers(STATUS_PAGE, page(record)));
    expect(report.unknown).toEqual([['results[]', 'mood', 'an object']]);
    expect(report.unreadable).toEqual([
      ['results[].txHash', 'found a number, expected a string'],
      ['results[].steps[].from.amount', 'found null, expected a string'],
      ['results[].steps[].to', 'found an array, expected an object'],
      ['results[].steps[].transactions', 'found nothing, expected an object'],
    ]);
    expect(report.read).toEqual([
      'nextCursor',
      'results[].id',
      'results[].intentHashes[]',
      'results[].sourceTx.amount',
      'results[].sourceTx.chainId',
      'results[].sourceTx.token',
      'results[].sourceTx.txHash',
      'results[].status',
      'results[].steps[].from.chainId',
      'results[].steps[].from.token',
      'results[].steps[].intentHash',
      'results[].steps[].status',
      'results[].steps[].type',
      'results[].type',
      'results[].updatedAt',
    ]);
  });

  test('of a record without its core are reported beside the missing one', () => {
    const { id, ...coreless } = RECORD;
    const report = plain(reportMembers(STATUS_PAGE, page({ ...coreless, Id: id ?? null })));
    expect(report.unreadable).toEqual([['results[].id', 'found nothing, expected a string']]);
    expect(report.unknown).toEqual([['results[]', 'Id', 'a string']]);
    expect(report.read).toContain('results[].steps[].from.amount');
  });

  test.each([
    ['a bare list', [{ chainId: 1 }], ['[].chainId']],
    ['a list in an envelope', { data: [{ chainId: '1', name: null }] }, ['data[].chainId', 'data[].name']],
  ])('of chains are read in %s', (_name, body, read) => {
    expect(plain(reportMembers(CHAINS, body)).read).toEqual(read);
  });

  test('of an unexpected answer are none', () => {
    expect(plain(reportMembers(GATEWAY_JOB, 'text'))).toEqual({
      read: [],
      unknown: [],
      unreadable: [['the answer', 'found a string, expected an object']],
    });
  });

  test('that a union allows are compared with the fitting form', () => {
    const fees = [
      { type: 'solver', token: '0x1', amount: '1' },
      { type: 'cctp', token: { address: '0x1', mood: true }, amount: '1' },
    ];
    const { unknown, read } = plain(reportMembers(QUOTE_ANSWER, { fees }));
    expect(unknown).toEqual([['fees[].token', 'mood', 'a boolean']]);
    expect(read).toEqual(['fees[].amount', 'fees[].token', 'fees[].token.address', 'fees[].type']);
  });

  test('become read when the schema of the reader has them, with no further change', () => {
    const body = { ...RECORD, mood: 'good', steps: [] };
    const before = plain(reportMembers(STATUS_PAGE, page(body)));
    expect(before.unknown).toEqual([['results[]', 'mood', 'a string']]);
    const record = STATUS_PAGE.shape.results.element.extend({ mood: z.string() });
    const after = plain(reportMembers(STATUS_PAGE.extend({ results: z.array(record) }), page(body)));
    expect(after).toEqual({ ...before, unknown: [], read: [...before.read, 'results[].mood'].sort() });
  });

  test('are unreadable exactly where the reader finds them unreadable', () => {
    const names = Object.keys(RECORD);
    const junk = fc.constantFrom<JsonValue[]>(null, true, '', 'x', 0, 1.5, 1e15, [], [null], {}, [{}]);
    const changed = fc.dictionary(fc.constantFrom(...names), junk, { maxKeys: 4, noNullPrototype: true });
    fc.assert(
      fc.property(changed, (changes) => {
        const body = page({ ...RECORD, ...changes });
        const parsed = readStatusPage(body);
        if (!('value' in parsed)) throw new Error('a page with results is one');
        const { records, unreadable } = parsed.value;
        const found = [...reportMembers(STATUS_PAGE, body).unreadable.keys()];
        const members = new Set(found.map((path) => path.split(/[.[]/)[2] ?? path.split('.')[1]));
        const core = unreadable.map(({ reason }) => reason.split(':')[0]);
        const expected = new Set([...records.flatMap((one) => one.unreadable), ...core]);
        if (core.length === 0) expect(members).toEqual(expected);
        else expect([...members]).toEqual(expect.arrayContaining([...expected]));
      }),
    );
  });
});

test('docs/assumptions.md has a row for each assumption that a probe judges, and no other anchor', async () => {
  const text = await readFile(resolve(import.meta.dirname, '../../docs/assumptions.md'), 'utf8');
  const rows = [...text.matchAll(/^\| <a id="([^"]+)"><\/a>\*\*([^*]+)\.\*\* \S/gm)];
  expect(rows.map(([, id, title]) => [id, title])).toEqual(
    expect.arrayContaining(Object.entries(ASSUMPTIONS).map(([id, { title }]) => [id, title])),
  );
  expect(text.match(/<a id=/g)).toHaveLength(Object.keys(ASSUMPTIONS).length);
});
