import { describe, expect, test } from 'vitest';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { COMMON_NAMES, extendDirectory } from '../../src/domain/transfers/chains.ts';
import {
  makeDigestMessage,
  makeDigestNotice,
  makeMessage,
  renderDigestHtml,
  renderDigestText,
} from '../../src/notifiers/email/message.ts';
import { formatDuration } from '../../src/notifiers/notice/rows.ts';

const FUNDING = `0x${'cd'.repeat(32)}`;
const SOURCE = {
  chainId: 8453,
  txHash: FUNDING,
  token: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  amount: '1250000000',
};
const ENVELOPE = {
  receiverName: 'oncall',
  from: 'transfers@example.com',
  to: ['a@example.com'],
  remaining: [],
  nowMs: 0,
  directory: COMMON_NAMES,
};

type Made = { type: string; id: string; at: string; record?: JsonObject; elapsedSeconds?: number };

function eventOf({ type, id, at, record = {}, elapsedSeconds }: Made): RenderedEvent {
  return {
    id: `evt_${id}${type}`,
    type,
    timestamp: `2026-11-20T${at}:00.000Z`,
    data: {
      subject: { kind: type.slice(0, type.indexOf('.')), id },
      sequence: 1,
      epoch: 1,
      status: type,
      previousStatus: null,
      changes: [],
      record,
      ...(elapsedSeconds === undefined ? {} : { elapsedSeconds }),
      upstreamUpdatedAt: null,
      detectionDelaySeconds: null,
      wallets: [],
      subscriptions: [],
      metadata: {},
    },
  };
}

const PENDING = eventOf({
  type: 'intent.pending',
  id: 'intent:a',
  at: '22:04',
  record: { sourceTx: SOURCE },
});
const FILLED = eventOf({
  type: 'intent.filled',
  id: 'intent:a',
  at: '22:05',
  record: { sourceTx: SOURCE },
  elapsedSeconds: 23,
});
const OVERDUE = eventOf({ type: 'intent.overdue', id: 'intent:b', at: '23:00', elapsedSeconds: 900 });
const DISABLED = eventOf({
  type: 'receiver.disabled',
  id: 'receiver:backend',
  at: '23:30',
  record: { reason: '500 Internal Server Error' },
});

describe('a digest', () => {
  test('states the changes of each subject, those that may need attention first', () => {
    expect(renderDigestText(makeDigestNotice([PENDING, FILLED, OVERDUE, DISABLED], COMMON_NAMES))).toBe(
      [
        'Digest: 1 still pending, 1 receiver disabled, 1 filled',
        '',
        '4 events of 3 subjects, from 2026-11-20 22:04:00 UTC to 2026-11-20 23:30:00 UTC. What may need somebody comes first.',
        '',
        'transfer b',
        '  23:00:00  Still pending, 15 min',
        '  Subject: intent:b',
        '',
        'backend',
        '  23:30:00  Receiver disabled',
        '  Reason:  500 Internal Server Error',
        '  Subject: receiver:backend',
        '',
        '1,250.00 USDC, Base',
        '  22:04:00  Pending',
        '  22:05:00  Filled, 23 s',
        `  Source transaction: https://basescan.org/tx/${FUNDING}`,
        '  Subject:            intent:a',
        '',
      ].join('\n'),
    );
  });

  test('of one subject has its last title, and belongs to its thread', () => {
    const events = [PENDING, FILLED];
    expect(makeDigestNotice(events, COMMON_NAMES).title).toBe(
      'Filled: 1,250.00 USDC, Base, 23 s (2 notices)',
    );
    const thread = makeMessage(FILLED, ENVELOPE).references;
    expect(makeDigestMessage({ id: 'x', events }, ENVELOPE)).toMatchObject({
      references: thread,
      inReplyTo: thread,
    });
    const mixed = makeDigestMessage({ id: 'x', events: [...events, OVERDUE] }, ENVELOPE);
    expect(mixed.references).toBeUndefined();
  });

  test('counts the subjects that do not fit into its title', () => {
    const events = Array.from({ length: 60 }, (_, index) =>
      eventOf({ type: `intent.status_number_${index}`, id: `intent:${index}`, at: '22:00' }),
    );
    const { title } = makeDigestNotice(events, COMMON_NAMES);
    expect(title).toMatch(/^Digest: 1 status number 0, .*, \d+ others$/);
    expect(title.length).toBeLessThanOrEqual(150);
  });

  test('of a hundred transfers stays below the limit at which mail programs cut', () => {
    const events = Array.from({ length: 100 }, (_, index) => ({
      ...FILLED,
      data: { ...FILLED.data, subject: { kind: 'intent', id: `intent:0x${String(index).repeat(32)}` } },
    }));
    expect(renderDigestHtml(makeDigestNotice(events, COMMON_NAMES)).length).toBeLessThan(102_000);
  });
});

test.each([
  [0, '0 s'],
  [23, '23 s'],
  [60, '1 min'],
  [95, '1 min 35 s'],
  [3_600, '1 h'],
  [3_659, '1 h'],
  [7_500, '2 h 5 min'],
  [90_000, '1 d 1 h'],
])('%i seconds are %s', (seconds, text) => {
  expect(formatDuration(seconds)).toBe(text);
});

test('chains and tokens of the config count before the built-in ones', () => {
  const directory = extendDirectory({
    chains: [
      { chainId: '8453', name: null, explorer: 'https://base.example.com/{txHash}?x=1' },
      { chainId: '7', name: 'Seven', explorer: null },
    ],
    tokens: [{ chainId: '7', address: '0xABCD', symbol: 'SVN', decimals: 2 }],
  });
  const destinationTx = { chainId: 7, txHash: FUNDING, token: '0xabcd', amount: '1234567' };
  const event = { ...FILLED, data: { ...FILLED.data, record: { sourceTx: SOURCE, destinationTx } } };
  const { subject, text } = makeMessage(event, { ...ENVELOPE, directory });
  expect(subject).toBe('Filled: 1,250.00 USDC, Base to Seven, 23 s');
  expect(text).toContain(`https://base.example.com/${FUNDING}?x=1`);
  expect(text).toMatch(/^Received: +12,345.67 SVN on Seven$/m);
});
