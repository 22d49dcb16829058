import { describe, expect, test } from 'vitest';
import { isPollable } from '../../src/domain/subjects/kinds.ts';
import {
  asSubjectId,
  eventKind,
  foldHex,
  gaslessId,
  gatewayJobId,
  intentId,
  parseSubjectId,
  quoteId,
  readSubjectId,
  routeId,
  type SubjectKey,
  subjectKind,
  subjectOfRecord,
  vaultId,
  walletId,
} from '../../src/domain/subjects/subject.ts';
import {
  claimKey,
  isHistoryFor,
  parseClaimKey,
  subjectsOf,
  walletsOf,
} from '../../src/domain/subjects/subscription.ts';

const SOLANA = 'So11111111111111111111111111111111111111112';
const TRON = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t';
const UUID = '3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41';

describe('a subject id in any spelling', () => {
  test.each([
    ['deposit-address:0xAbC', 'deposit-address:0xabc'],
    [`deposit-address:${TRON}`, `deposit-address:${TRON}`],
    ['swap:8453:0xAbC', 'swap:8453:0xabc'],
    ['intent:0XABC', 'intent:0xabc'],
    [`wallet:${SOLANA}`, `wallet:${SOLANA}`],
    ['vault:8453:0XABC', 'vault:8453:0xabc'],
    [`gasless:gateway:${UUID.toUpperCase()}`, `gasless:gateway:${UUID}`],
    ['gasless:gateway:Job:7', 'gasless:gateway:Job:7'],
    ['route:v1:usdc-base', 'route:v1:usdc-base'],
  ])('%s is %s', (text, id) => {
    expect(readSubjectId(text)).toBe(id);
    expect(readSubjectId(id)).toBe(id);
  });
});

describe('a subject id', () => {
  test.each<[string, string, SubjectKey]>([
    [intentId('0xAB'), 'intent:0xab', { kind: 'intent', hash: '0xab' }],
    [intentId('Base58Hash'), 'intent:Base58Hash', { kind: 'intent', hash: 'Base58Hash' }],
    [walletId('0xABcd'), 'wallet:0xabcd', { kind: 'wallet', address: '0xabcd' }],
    [walletId('TXyZ'), 'wallet:TXyZ', { kind: 'wallet', address: 'TXyZ' }],
    [quoteId('AB-cd'), 'quote:ab-cd', { kind: 'quote', uuid: 'ab-cd' }],
    [gaslessId('AB-cd'), 'gasless:ab-cd', { kind: 'gasless', endpoint: 'status', id: 'ab-cd' }],
    [gatewayJobId('Job:7'), 'gasless:gateway:Job:7', { kind: 'gasless', endpoint: 'gateway', id: 'Job:7' }],
    [
      vaultId({ chainId: 8453, address: '0xAB' }),
      'vault:8453:0xab',
      { kind: 'vault', chainId: 8453, address: '0xab' },
    ],
    [asSubjectId('deposit-address:AbC'), 'deposit-address:AbC', { kind: 'deposit-address', id: 'AbC' }],
    [
      asSubjectId('route:usdc-base'),
      'route:usdc-base',
      { kind: 'route', service: 'open', name: 'usdc-base' },
    ],
    [
      routeId({ name: 'usdc-base', service: 'v1' }),
      'route:v1:usdc-base',
      { kind: 'route', service: 'v1', name: 'usdc-base' },
    ],
    [asSubjectId('swap:a:b'), 'swap:a:b', { kind: 'other', word: 'swap', id: 'a:b' }],
    [asSubjectId('constructor:1'), 'constructor:1', { kind: 'other', word: 'constructor', id: '1' }],
  ])('%s is %s and comes apart again', (id, text, key) => {
    expect(id).toBe(text);
    expect(parseSubjectId(id)).toEqual(key);
    expect(subjectKind(asSubjectId(text))).toBe(key.kind);
  });

  test.each([
    '',
    'intent',
    'intent:',
    ':0xab',
    'gasless:gateway:',
    'vault:0xab',
    'vault:x:0xab',
    'vault:1:',
    'vault:1:0xab:0xcd',
    'vault:1234567890123456:0xab',
    'Swap:1',
    '9lives:1',
    'a b:1',
  ])('is refused when it is %j', (text) => {
    expect(parseSubjectId(text)).toBeNull();
    expect(() => asSubjectId(text)).toThrow(`not a subject id: ${JSON.stringify(text)}`);
  });

  test('starts event types with its kind, or with the name of an unknown kind', () => {
    expect(eventKind(gatewayJobId('7'))).toBe('gasless');
    expect(eventKind(asSubjectId('deposit-address:a'))).toBe('deposit-address');
    expect(eventKind(asSubjectId('swap:1'))).toBe('swap');
  });

  test('can be requested unless only wallet pages show it', () => {
    const pollable = [intentId('0x1'), walletId('0x1'), quoteId('1'), gaslessId('1'), gatewayJobId('1')];
    for (const id of [
      ...pollable,
      vaultId({ chainId: 1, address: '0x1' }),
      routeId({ name: 'a', service: 'v1' }),
    ])
      expect(isPollable(id)).toBe(true);
    for (const text of ['deposit-address:1', 'swap:1']) {
      expect(isPollable(asSubjectId(text))).toBe(false);
    }
  });
});

describe('hex', () => {
  test.each([
    ['0xABCdef', '0xabcdef'],
    ['0XAB', '0xab'],
    ['0xABz', '0xABz'],
    ['0x', '0x'],
    ['ABCDEF', 'ABCDEF'],
    ['So11111111111111111111111111111111111111112', 'So11111111111111111111111111111111111111112'],
  ])('folds %s to %s', (text, folded) => {
    expect(foldHex(text)).toBe(folded);
  });
});

describe('a record of the status endpoint', () => {
  test.each([
    ['intent:0xAB', 'intent', 'intent:0xab'],
    ['quote:AA-bb', 'quote', 'quote:aa-bb'],
    ['gasless:AA', 'gasless', 'gasless:aa'],
    ['deposit-address:AbC', 'deposit-address', 'deposit-address:AbC'],
    ['0xAB', 'intent', 'intent:0xab'],
    ['AbC', 'deposit-address', 'deposit-address:AbC'],
    ['swap:7', 'swap', 'swap:7'],
    ['7', 'swap', 'swap:7'],
    ['intent:0xab', 'something else', 'intent:0xab'],
    [`intent:0X${'AB'.repeat(32)}`, 'intent', `intent:0x${'ab'.repeat(32)}`],
    ['deposit-address:0xAbC', 'deposit-address', 'deposit-address:0xabc'],
    ['0XAbC', 'deposit-address', 'deposit-address:0xabc'],
    ['deposit-address:8453:0xAbC', 'deposit-address', 'deposit-address:8453:0xabc'],
    [`deposit-address:${SOLANA}`, 'deposit-address', `deposit-address:${SOLANA}`],
    [`deposit-address:${TRON}`, 'deposit-address', `deposit-address:${TRON}`],
    ['swap:0xAbC', 'swap', 'swap:0xabc'],
    [`swap:${UUID.toUpperCase()}`, 'swap', `swap:${UUID}`],
    [`quote:${UUID.toUpperCase()}`, 'quote', `quote:${UUID}`],
    [`gasless:${UUID.toUpperCase()}`, 'gasless', `gasless:${UUID}`],
  ])('with id %s and type %s is about %s', (id, type, subject) => {
    expect(subjectOfRecord({ id, type })).toBe(subject);
  });

  test.each([
    ['wallet:0xab', 'wallet'],
    ['vault:1:0xab', 'vault'],
    ['route:a', 'route'],
    ['by-tx:source:0xab', 'by-tx'],
    ['gasless:gateway:7', 'gasless'],
    ['0xab', 'Not A Word'],
    ['', 'intent'],
    ['!!:backend', 'receiver'],
    [':backend', 'Audit'],
  ])('with id %j and type %j is about nothing that can be watched', (id, type) => {
    expect(subjectOfRecord({ id, type })).toBeNull();
  });
});

describe('a subscription', () => {
  test('names each subject once, in any letter case', () => {
    expect(
      subjectsOf({
        wallets: ['0xAB', '0xab', 'TxY'],
        intents: ['0xCD', '0xcd'],
        sourceTxs: ['0xAA', '0xaa', 'SoL'],
        destinationTxs: ['0xAA'],
        quotes: ['AA', 'aa'],
        gaslessJobs: [
          { id: 'BB', endpoint: 'status' },
          { id: 'bb', endpoint: 'status' },
          { id: 'bb', endpoint: 'gateway' },
        ],
        vaults: [
          { address: '0xEF', chainId: 1 },
          { address: '0xef', chainId: 1 },
          { address: '0xef', chainId: 10 },
        ],
        routes: [{ name: 'base-to-optimism', service: 'open' }],
      }),
    ).toEqual([
      'wallet:0xab',
      'wallet:TxY',
      'intent:0xcd',
      'by-tx:source:0xaa',
      'by-tx:source:SoL',
      'by-tx:destination:0xaa',
      'quote:aa',
      'gasless:bb',
      'gasless:gateway:bb',
      'vault:1:0xef',
      'vault:10:0xef',
      'route:base-to-optimism',
    ]);
  });
});

describe('a claim', () => {
  test('states its subscription and subject', () => {
    expect(parseClaimKey(claimKey('order-1042', walletId('0xAB')))).toEqual({
      subscription: 'order-1042',
      receivers: null,
      subject: 'wallet:0xab',
    });
    expect(parseClaimKey(claimKey('order-1042', walletId('0xAB'), ['backend', 'desk']))).toEqual({
      subscription: 'order-1042',
      receivers: ['backend', 'desk'],
      subject: 'wallet:0xab',
    });
    expect(parseClaimKey(claimKey('order-1042', walletId('0xAB'), []))).toMatchObject({ receivers: [] });
  });

  test('counts changes before its subscription as history, and nothing without a time', () => {
    const claim = { key: 'a|wallet:0x1', atMs: 0, historyBefore: 100, served: false };
    expect(isHistoryFor(claim, 99)).toBe(true);
    expect(isHistoryFor(claim, 100)).toBe(false);
    expect(isHistoryFor(claim, null)).toBe(false);
    expect(isHistoryFor({ ...claim, historyBefore: null }, 1)).toBe(false);
    expect(isHistoryFor({ ...claim, historyBefore: 0 }, 1)).toBe(false);
  });

  test('names its wallet, each wallet once', () => {
    expect(walletsOf(['a|wallet:0x1', 'b|intent:0x9', 'b|wallet:TxY', 'c|wallet:0x1'])).toEqual([
      '0x1',
      'TxY',
    ]);
  });
});
