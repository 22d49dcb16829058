import { describe, expect, test } from 'vitest';
import { type JsonValue, parseJson } from '../../src/domain/json.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { readGatewayJob, readVault } from '../../src/upstream/wire/gateway-record.ts';
import { readStatusPage, type StatusPage } from '../../src/upstream/wire/status-page.ts';
import type { Parsed } from '../../src/upstream/wire/wire.ts';

const hash = (digit: string): string => `0x${digit.repeat(64)}`;

const filled = {
  id: `intent:${hash('a')}`,
  type: 'intent',
  status: 'filled',
  updatedAt: 1763638259,
  txHash: null,
  sourceTx: { chainId: 8453, txHash: hash('1'), token: '0xusdc', amount: '1000000' },
  destinationTx: { chainId: 10, txHash: hash('2'), token: '0xusdt', amount: '999000' },
  steps: [
    {
      type: 'BRIDGE',
      intentHash: hash('b'),
      status: 'FULFILLED',
      from: { token: '0xusdc', amount: '1000000', chainId: 8453 },
      to: { token: '0xusdt', amount: '999000', chainId: 10 },
      transactions: { created: { chainId: 8453, txHash: hash('1') } },
    },
  ],
};

function read<T>(parsed: Parsed<T>): T {
  if ('mismatch' in parsed) throw new Error(parsed.mismatch);
  return parsed.value;
}

const page = (...results: JsonValue[]): StatusPage => read(readStatusPage({ results, nextCursor: null }));

describe('a status page', () => {
  test('gives a whole record unchanged', () => {
    expect(page(filled)).toEqual({
      records: [
        {
          id: filled.id,
          type: 'intent',
          status: 'filled',
          updatedAt: 1763638259,
          intentHashes: [hash('b')],
          raw: filled,
          unreadable: [],
        },
      ],
      digests: null,
      unreadable: [],
      nextCursor: null,
    });
  });

  test.each([
    ['updatedAt', 'yesterday'],
    ['updatedAt', 1.5],
    ['intentHashes', 'one'],
    ['txHash', 7],
    ['subStatuses', [{ chainId: 1 }]],
    ['sourceTx', { chainId: 1, txHash: '0x', token: '0x' }],
    ['sourceTx', null],
    ['destinationTx', []],
    ['steps', [{ type: 'SWAP' }]],
  ])('lists a bad %s of %j as unreadable and reads the rest of the record', (member, value) => {
    const raw = { ...filled, [member]: value };
    const [record] = page(raw).records;
    expect(record?.unreadable).toEqual([member]);
    expect(record?.raw).toEqual(raw);
    expect(record?.status).toBe('filled');
  });

  test.each([
    [1763638259, 1763638259, []],
    ['1763638259', 1763638259, []],
    [null, null, []],
    [{}, null, ['updatedAt']],
    [1763638259000, null, ['updatedAt']],
  ])('reads updatedAt %j as %j', (updatedAt, expected, unreadable) => {
    const [record] = page({ ...filled, updatedAt }).records;
    expect(record?.updatedAt).toBe(expected);
    expect(record?.unreadable).toEqual(unreadable);
  });

  test('reads an absent updatedAt as null without calling it unreadable', () => {
    const [record] = page({ id: 'intent:0x1', type: 'intent', status: 'unknown' }).records;
    expect(record).toMatchObject({ updatedAt: null, unreadable: [] });
  });

  test('passes unknown types, statuses and members', () => {
    const raw = { id: 'route:x', type: 'teleport', status: 'halfway', updatedAt: 1, mood: { good: true } };
    expect(page(raw).records).toEqual([
      {
        id: 'route:x',
        type: 'teleport',
        status: 'halfway',
        updatedAt: 1,
        intentHashes: [],
        raw,
        unreadable: [],
      },
    ]);
  });

  test('accepts steps and sub-statuses with statuses and members the interface does not name', () => {
    const [step] = filled.steps;
    const raw = {
      ...filled,
      steps: [
        { ...step, type: 'TELEPORT', transactions: { created: { chainId: 1, txHash: '0x', extra: 1 } } },
      ],
      subStatuses: [{ chainId: 1, quoteIds: [], txHash: null, intentHashes: [], state: 'dreaming' }],
    };
    expect(page(raw).records[0]?.unreadable).toEqual([]);
  });

  test('lists results without a core and reads their neighbours', () => {
    const result = page(
      { ...filled, id: '' },
      filled,
      { id: 'x', type: 'intent' },
      'nonsense',
      { ...filled, type: 1 },
      { ...filled, id: 'intent:0x2' },
    );
    expect(result.records.map((record) => record.id)).toEqual([filled.id, 'intent:0x2']);
    expect(result.unreadable).toEqual([
      { index: 0, reason: 'id: found an empty string, expected text' },
      { index: 2, reason: 'status: found nothing, expected text' },
      { index: 3, reason: 'result: found a string, expected an object' },
      { index: 4, reason: 'type: found a number, expected text' },
    ]);
  });

  test('names every intent hash once, in order, as spelled, bad neighbours or not', () => {
    const [record] = page({
      id: 'quote:1',
      type: 'quote',
      status: 'submitted',
      updatedAt: 1,
      intentHashes: [hash('A'), 5, null, '', hash('b')],
      subStatuses: ['bad', { intentHashes: [hash('a'), hash('c')] }, { intentHashes: 'bad' }],
      steps: [{ intentHash: hash('d') }, null, { intentHash: 9 }, { intentHash: hash('B') }],
    }).records;
    expect(record?.intentHashes).toEqual([hash('A'), hash('b'), hash('c'), hash('d')]);
    expect(record?.unreadable).toEqual(['intentHashes', 'subStatuses', 'steps']);
  });

  test.each([
    [undefined, 'nothing'],
    [7, 'a number'],
    ['', 'an empty string'],
    [{}, 'an object'],
  ])('reads nextCursor %j as null and reports it', (nextCursor, found) => {
    const body = nextCursor === undefined ? { results: [filled] } : { results: [filled], nextCursor };
    const result = read(readStatusPage(body));
    expect(result.records).toHaveLength(1);
    expect(result.nextCursor).toBeNull();
    expect(result.unreadable).toEqual([
      { index: -1, reason: `nextCursor: found ${found}, expected text or null` },
    ]);
  });

  test('is none with thousands of results', () => {
    const results = Array.from({ length: 2_001 }, () => ({}));
    expect(readStatusPage({ results })).toEqual({ mismatch: '2001 results' });
  });

  test('reads a cursor', () => {
    expect(read(readStatusPage({ results: [], nextCursor: 'abc==' }))).toEqual({
      records: [],
      digests: null,
      unreadable: [],
      nextCursor: 'abc==',
    });
  });

  test.each([[{ results: {} }], [{ nextCursor: null }], [[]], [null], ['text']])('is not %j', (body) => {
    expect(readStatusPage(body)).toHaveProperty('mismatch');
  });
});

describe('a gateway job', () => {
  test('is read with its members', () => {
    const data = { id: 'job-1', status: 'PENDING', intentHash: hash('a'), amount: '5', error: '' };
    expect(read(readGatewayJob({ data }))).toEqual({
      id: 'job-1',
      status: 'PENDING',
      intentHash: hash('a'),
      raw: data,
      unreadable: [],
    });
  });

  test('survives unreadable members', () => {
    const data = { id: 'job-1', status: 'WARPED', intentHash: null, permitTxHash: 4, extra: [1] };
    expect(read(readGatewayJob({ data }))).toEqual({
      id: 'job-1',
      status: 'WARPED',
      intentHash: null,
      raw: data,
      unreadable: ['permitTxHash', 'intentHash'],
    });
  });

  test('needs none of its members', () => {
    expect(read(readGatewayJob({ data: { error: 'no gas' } }))).toMatchObject({ id: null, status: null });
    expect(read(readGatewayJob({ data: { id: 1, status: 'b' } }))).toMatchObject({
      id: null,
      status: 'b',
      unreadable: ['id'],
    });
  });

  test.each([
    [{ id: 'a', status: 'b' }],
    [{ data: {} }],
    [{ data: { id: 1, status: null } }],
    [{ data: { message: 'ok' } }],
    [{ data: [] }],
  ])('is not %j', (body) => {
    expect(readGatewayJob(body)).toHaveProperty('mismatch');
  });
});

describe('a vault', () => {
  test('is read with its members', () => {
    const data = {
      vaultAddress: '0xAb',
      state: 'PENDING',
      amount: '1',
      deadline: 1763638259,
      intentHash: hash('a'),
      sourceChainId: 8453,
    };
    expect(read(readVault({ data }))).toEqual({
      vaultAddress: '0xAb',
      state: 'PENDING',
      chainId: 8453,
      intentHash: hash('a'),
      deadline: 1763638259,
      raw: data,
      unreadable: [],
    });
  });

  test('survives unreadable members', () => {
    const data = { vaultAddress: '0xAb', state: 'NEW', deadline: 'soon', sourceChainId: {}, amount: 1 };
    expect(read(readVault({ data }))).toMatchObject({
      chainId: null,
      deadline: null,
      intentHash: null,
      raw: data,
      unreadable: ['amount', 'deadline', 'sourceChainId'],
    });
  });

  test('needs none of its members', () => {
    expect(read(readVault({ data: { vaultAddress: '0xAb' } }))).toMatchObject({ state: null });
    expect(read(readVault({ data: { vaultAddress: '', state: 'x' } }))).toMatchObject({
      vaultAddress: null,
      state: 'x',
    });
  });

  test.each([
    [{ data: {} }],
    [{ data: { vaultAddress: '' } }],
    [{ data: { id: 'a' } }],
    [[]],
  ])('is not %j', (body) => {
    expect(readVault(body)).toHaveProperty('mismatch');
  });
});

describe('a number that is too large to be held', () => {
  const huge = (text: string): JsonValue =>
    parseJson(JSON.stringify(text).replaceAll('"@"', '1e400'), { limits: LIMITS.upstream });
  const pageOf = (record: object): StatusPage => {
    const body = JSON.stringify({ results: [record], nextCursor: null });
    return read(readStatusPage(parseJson(body.replaceAll('"@"', '1e400'), { limits: LIMITS.upstream })));
  };

  test('is no text, no hash and no id', () => {
    expect(pageOf({ ...filled, txHash: '@' }).records[0]?.unreadable).toEqual(['txHash']);
    expect(
      pageOf({ ...filled, sourceTx: { ...filled.sourceTx, token: '@' } }).records[0]?.unreadable,
    ).toEqual(['sourceTx']);
    expect(pageOf({ ...filled, intentHashes: ['@'] }).records[0]?.intentHashes).toEqual([hash('b')]);
    for (const core of ['id', 'type', 'status']) {
      expect(pageOf({ ...filled, [core]: '@' })).toMatchObject({ records: [], unreadable: [{ index: 0 }] });
    }
    const job = huge('@');
    expect(read(readGatewayJob({ data: { id: 'u', status: job } })).status).toBeNull();
    expect(read(readVault({ data: { vaultAddress: '0xAb', state: job } })).state).toBeNull();
  });

  test('is an amount where its digits form one', () => {
    const amount = parseJson('99999999999999999999999', { limits: LIMITS.upstream });
    const { sourceTx } = filled;
    expect(page({ ...filled, sourceTx: { ...sourceTx, amount } }).records[0]?.unreadable).toEqual([]);
    expect(page({ ...filled, sourceTx: { ...sourceTx, amount: '1e400' } }).records[0]?.unreadable).toEqual([
      'sourceTx',
    ]);
  });
});

describe.each([
  ['a whole number', `1${'0'.repeat(20_000)}1`],
  ['a fraction', `1.${'0'.repeat(20_000)}1`],
])('%s with a text of more than 1,000 characters', (_, number) => {
  const pageOf = (record: object): StatusPage => {
    const body = JSON.stringify({ results: [record, filled], nextCursor: null });
    const text = body.replaceAll('"@"', number);
    return read(readStatusPage(parseJson(text, { limits: LIMITS.upstream, longNumber: 'drop' })));
  };

  test('is an unreadable member, and the record counts', () => {
    const { sourceTx } = filled;
    for (const [name, record] of [
      ['sourceTx', { ...filled, sourceTx: { ...sourceTx, amount: '@' } }],
      ['txHash', { ...filled, txHash: '@' }],
      ['updatedAt', { ...filled, updatedAt: '@' }],
      ['steps', { ...filled, steps: '@' }],
    ] as const) {
      expect(pageOf(record).records.map(({ unreadable }) => unreadable)).toEqual([[name], []]);
    }
  });

  test('is no core of a record, and its neighbours count', () => {
    for (const core of ['id', 'type', 'status'])
      expect(pageOf({ ...filled, [core]: '@' })).toMatchObject({ records: [{}], unreadable: [{ index: 0 }] });
  });
});
