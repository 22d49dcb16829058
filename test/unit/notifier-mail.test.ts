import { describe, expect, test } from 'vitest';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { makeTestEvent } from '../../src/domain/events/make-event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { Proof } from '../../src/domain/proof/proof.ts';
import { COMMON_NAMES } from '../../src/domain/transfers/chains.ts';
import { makeMessage, renderHtml, renderText } from '../../src/notifiers/email/message.ts';
import { makeNotice } from '../../src/notifiers/notice/notice.ts';

const HASH = `0x${'ab'.repeat(32)}`;
const FUNDING = `0x${'cd'.repeat(32)}`;
const PAYOUT = `0x${'ef'.repeat(32)}`;
const USDC_BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const USDC_OPTIMISM = '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85';

const SOURCE_TX = { chainId: 8453, txHash: FUNDING, token: USDC_BASE, amount: '1250000000' };
const DESTINATION_TX = { chainId: 10, txHash: PAYOUT, token: USDC_OPTIMISM, amount: '1249400000' };
const STEP = {
  type: 'BRIDGE',
  intentHash: HASH,
  status: 'FULFILLED',
  from: { token: USDC_BASE, amount: '1250000000', chainId: 8453 },
  to: { token: USDC_OPTIMISM, amount: '1249400000', chainId: 10 },
  transactions: {
    created: { chainId: 8453, txHash: FUNDING },
    refunded: { chainId: 8453, txHash: PAYOUT },
  },
};

type Facts = Partial<RenderedEvent['data']>;

function eventOf(type: string, record: JsonObject, facts: Facts = {}): RenderedEvent {
  return {
    id: 'evt_0123',
    type,
    timestamp: '2026-11-20T11:31:00.123Z',
    data: {
      subject: { kind: type.slice(0, type.indexOf('.')), id: `intent:${HASH}` },
      sequence: 3,
      epoch: 1,
      status: type.slice(type.indexOf('.') + 1),
      previousStatus: 'pending',
      changes: ['status'],
      record,
      upstreamUpdatedAt: 1_795_174_259,
      detectionDelaySeconds: 0.9,
      wallets: [],
      subscriptions: ['treasury'],
      metadata: {},
      ...facts,
    },
  };
}

const proofOf = (payment: Proof['payment']): Proof => ({
  payment,
  chainId: '8453',
  txHash: FUNDING,
  checked: ['chain', 'success', 'final'],
  endpoints: ['other', 'own'],
});

const VAULT = { kind: 'vault', id: 'vault:8453:0x1111111111111111111111111111111111111111' };
const QUOTE = { kind: 'quote', id: 'quote:3f1c2a9e-1' };
const PRICED_ROUTE = { kind: 'route', id: 'route:base-to-optimism' };
const PRICED = {
  type: 'route',
  source: { chainId: 8453, token: USDC_BASE, decimals: 6 },
  destination: { chainId: 10, token: USDC_OPTIMISM, decimals: 6 },
  amount: '1250000000',
  output: '1249400000',
};
const JOB = { kind: 'gasless', id: 'gasless:gateway:job-1' };

describe('the title', () => {
  test.each<[string, RenderedEvent]>([
    [
      'Filled: 1,250.00 USDC, Base to Optimism',
      eventOf('intent.filled', { sourceTx: SOURCE_TX, destinationTx: DESTINATION_TX }),
    ],
    ['Pending: 1,250.00 USDC, Base', eventOf('intent.pending', { sourceTx: SOURCE_TX })],
    ['Refunded: 1,250.00 USDC, Base to Optimism', eventOf('intent.refunded', { steps: [STEP] })],
    [
      'Funding verified: 1,250.00 USDC, Base',
      eventOf('intent.verified', { sourceTx: SOURCE_TX }, { proof: proofOf('source') }),
    ],
    [
      'Delivery disputed: 1,250.00 USDC, Base to Optimism',
      eventOf(
        'intent.disputed',
        { sourceTx: SOURCE_TX, destinationTx: DESTINATION_TX },
        { proof: { ...proofOf('destination'), reason: 'short' } },
      ),
    ],
    ['Still pending: 1,250.00 USDC, Base', eventOf('intent.overdue', { sourceTx: SOURCE_TX })],
    ['Updated: 1,250.00 USDC, Base', eventOf('intent.updated', { sourceTx: SOURCE_TX })],
    [
      'Back to pending: 1,250.00 USDC, Base',
      eventOf('intent.pending', { sourceTx: SOURCE_TX }, { regression: true }),
    ],
    ['Filled: transfer 0xabababab…ababab', eventOf('intent.filled', {})],
    ['No longer known: transfer 0xabababab…ababab', eventOf('intent.unknown', {})],
    ['On hold for review: transfer 0xabababab…ababab', eventOf('intent.on_hold-for review', {})],
    [
      'Filled: 7 base units, chain 999999 to Optimism',
      eventOf('intent.filled', {
        sourceTx: { ...SOURCE_TX, chainId: 999_999, amount: '7' },
        destinationTx: DESTINATION_TX,
      }),
    ],
    ['Quote signature invalid: 3f1c2a9e-1', eventOf('quote.signature_invalid', {}, { subject: QUOTE })],
    ['Quote expired: 3f1c2a9e-1', eventOf('quote.expired', { expiresAt: 1 }, { subject: QUOTE })],
    ['Quote submitted: 1,250.00 USDC, Base to Optimism', eventOf('quote.submitted', { steps: [STEP] })],
    [
      'Vault funding detected: 5000000 base units, Base',
      eventOf('vault.funding_detected', { amount: '5000000', sourceChainId: 8453 }, { subject: VAULT }),
    ],
    [
      'Route moved: base-to-optimism, 1,250.00 USDC gives 1,249.40 USDC',
      eventOf('route.moved', PRICED, { subject: PRICED_ROUTE }),
    ],
    [
      'Route unavailable: base-to-optimism',
      eventOf('route.unavailable', { ...PRICED, output: null }, { subject: PRICED_ROUTE }),
    ],
    ['Vault published: 8453:0x111…111111', eventOf('vault.published', {}, { subject: VAULT })],
    [
      'Gasless job completed: 5000000 base units',
      eventOf('gasless.completed', { amount: '5000000', transferTxHash: FUNDING }, { subject: JOB }),
    ],
    ['Gasless job failed: gateway:job-1', eventOf('gasless.failed', {}, { subject: JOB })],
    [
      'Transfer service unreachable',
      eventOf('upstream.unreachable', {}, { subject: { kind: 'upstream', id: 'upstream' } }),
    ],
    [
      'Receiver disabled: backend',
      eventOf('receiver.disabled', {}, { subject: { kind: 'receiver', id: 'receiver:backend' } }),
    ],
    [
      'Receiver events dropped: backend',
      eventOf('receiver.events_dropped', {}, { subject: { kind: 'receiver', id: 'receiver:backend' } }),
    ],
    ['Intentwatch test', makeTestEvent('backend', 0)],
    [
      'Receiver disabled: backend',
      eventOf('receiver.disabled', {}, { subject: { kind: 'receiver', id: 'receiver:backend' } }),
    ],
    ['Starship landed: x:1', eventOf('starship.landed', {}, { subject: { kind: 'starship', id: 's:x:1' } })],
  ])('%s', (title, event) => {
    expect(makeNotice(event).title).toBe(title);
  });

  test('has no line break and a bounded length with an endless status of the upstream', () => {
    const { title } = makeNotice(eventOf(`intent.a\r\nBcc: eve@example.com\u2028${'x'.repeat(500)}`, {}));
    expect(title).toMatch(/^A bcc: eve@example.com x+…$/);
    expect(title.length).toBe(150);
  });
});

describe('the body', () => {
  const filled = eventOf(
    'intent.filled',
    {
      id: `intent:${HASH}`,
      type: 'intent',
      status: 'filled',
      updatedAt: 1,
      intentHashes: [HASH],
      sourceTx: SOURCE_TX,
      destinationTx: DESTINATION_TX,
      steps: [STEP],
    },
    { wallets: ['0xwallet'], metadata: { order: '1042' }, skipped: true },
  );

  test('states the change, the amount, the chains, the time and the subscribers', () => {
    expect(renderText(makeNotice(filled))).toBe(
      [
        'Filled: 1,250.00 USDC, Base to Optimism',
        '',
        'The transfer has been paid out on the destination chain. A usual step before it was not seen.',
        '',
        'Status:                  pending → filled',
        'Changed:                 status',
        'Sent:                    1,250.00 USDC on Base',
        `Source transaction:      ${FUNDING}`,
        `                         https://basescan.org/tx/${FUNDING}`,
        'Received:                1,249.40 USDC on Optimism',
        `Destination transaction: ${PAYOUT}`,
        `                         https://optimistic.etherscan.io/tx/${PAYOUT}`,
        'Refunded:                Base',
        `Refund transaction:      ${PAYOUT}`,
        `                         https://basescan.org/tx/${PAYOUT}`,
        `Intents:                 ${HASH}`,
        '',
        'Subscriptions:           treasury',
        'Wallets:                 0xwallet',
        'order:                   1042',
        '',
        `Subject:                 intent:${HASH}`,
        'Last update:             2026-11-20 11:30:59 UTC',
        'Noticed:                 2026-11-20 11:31:00 UTC, 0.9 s later',
        'Event:                   evt_0123, number 3 of its subject',
        '',
      ].join('\n'),
    );
  });

  test('has the same facts and links as HTML', () => {
    const html = renderHtml(makeNotice(filled));
    expect(html).toContain(`<a href="https://basescan.org/tx/${FUNDING}"`);
    for (const fact of ['pending → filled', '1,249.40 USDC on Optimism', 'order', '1042', 'evt_0123']) {
      expect(html).toContain(fact);
    }
  });

  test('states agreed parts that are not done yet as such', () => {
    const { transactions, ...agreed } = STEP;
    const text = renderText(makeNotice(eventOf('quote.active', { steps: [agreed] })));
    expect(text).toMatch(/To send: +1,250.00 USDC on Base\nTo receive: +1,249.40 USDC on Optimism/);
    expect(transactions).toBeDefined();
  });

  test('states the members of vaults and gateway jobs by name', () => {
    const vault = {
      vaultAddress: '0xvault',
      amount: '5',
      deadline: 1_795_174_259,
      state: 'PENDING',
      sourceChainId: 8453,
    };
    const text = renderText(makeNotice(eventOf('vault.pending', vault, { subject: VAULT })));
    expect(text).toMatch(
      /Amount: +5 base units on Base\nVault: +0xvault\nDeadline: +2026-11-20 11:30:59 UTC/,
    );
    const job = { id: 'job-1', status: 'FAILED', permitTxHash: FUNDING, error: 'nonce used' };
    const failed = renderText(makeNotice(eventOf('gasless.failed', job, { subject: JOB })));
    expect(failed).toMatch(new RegExp(`Permit transaction: +${FUNDING}\nError: +nonce used`));
  });

  test('states the fault in the signature of a quote, and the time when a quote expired', () => {
    const signature = { valid: false, part: 'source.chainId', reason: 'found 8453', recovered: null };
    const invalid = makeNotice(eventOf('quote.signature_invalid', { signature }, { subject: QUOTE }));
    expect(invalid.summary).toBe(
      'The imported quote is not as the transfer service signed it. Wrong is source.chainId: found 8453.',
    );
    const expired = makeNotice(eventOf('quote.expired', { expiresAt: 1_795_174_259 }, { subject: QUOTE }));
    expect(expired.summary).toBe('The quote has expired, and it was not funded.');
    expect(renderText(expired)).toMatch(/Expires: +2026-11-20 11:30:59 UTC/);
  });

  test('states unknown or unreadable members, as they came', () => {
    const record = {
      sourceTx: 'lost',
      steps: { not: ['a', 'list'] },
      etaSeconds: 12,
      bigId: '9007199254740993',
      empty: null,
      subStatuses: [{ chainId: 8453, state: 'submitted', quoteIds: ['quote:1', 'quote:2'] }],
    };
    const text = renderText(makeNotice(eventOf('intent.filled', record)));
    for (const line of [
      /^sourceTx: +lost$/m,
      /^steps: +not a, list$/m,
      /^etaSeconds: +12$/m,
      /^bigId: +9007199254740993$/m,
      /^subStatuses: +chainId 8453, state submitted, quoteIds quote:1, quote:2$/m,
    ]) {
      expect(text).toMatch(line);
    }
    expect(text).not.toContain('empty');
  });

  test('survives a record that is nested without end', () => {
    let deep: JsonObject = {};
    for (let depth = 0; depth < 20_000; depth += 1) deep = { deep };
    expect(renderText(makeNotice(eventOf('intent.filled', { deep })))).toContain('deep deep deep deep …');
  });

  test('states the meaning of a notice for the operator', () => {
    const event = eventOf(
      'upstream.unreachable',
      { lastError: 'connection refused' },
      {
        subject: { kind: 'upstream', id: 'upstream' },
        status: 'unreachable',
        previousStatus: null,
        upstreamUpdatedAt: null,
        detectionDelaySeconds: null,
      },
    );
    const text = renderText(makeNotice(event));
    expect(text).toContain(
      'Transfer service unreachable\n\nThe transfer service gives no usable answers; polling goes on.\n',
    );
    expect(text).toMatch(/^lastError: +connection refused$/m);
    expect(text).toMatch(/^Noticed: +2026-11-20 11:31:00 UTC$/m);
  });
});

describe('the identity of a mail', () => {
  const envelope = {
    receiverName: 'oncall',
    from: 'Intentwatch <transfers@example.com>',
    to: ['a@example.com'],
    remaining: [],
    nowMs: 0,
    directory: COMMON_NAMES,
  };

  test('is the same whenever the same event is sent to the same receiver', () => {
    const first = makeMessage(eventOf('intent.filled', {}), envelope);
    const second = makeMessage(eventOf('intent.filled', {}), { ...envelope, nowMs: 5 });
    expect(first.messageId).toBe('<evt_0123.oncall@intentwatch.example.com>');
    expect(second.messageId).toBe(first.messageId);
    const other = makeMessage(eventOf('intent.filled', {}), { ...envelope, receiverName: 'finance' });
    expect(other.messageId).not.toBe(first.messageId);
  });

  test('belongs to one thread per subject', () => {
    const pending = makeMessage(eventOf('intent.pending', {}), envelope);
    const filled = makeMessage({ ...eventOf('intent.filled', {}), id: 'evt_4567' }, envelope);
    const vault = makeMessage(eventOf('vault.pending', {}, { subject: VAULT }), envelope);
    expect(filled.references).toBe(pending.references);
    expect(filled.inReplyTo).toBe(pending.references);
    expect(filled.messageId).not.toBe(pending.messageId);
    expect(vault.references).not.toBe(pending.references);
  });

  test('uses the ASCII form of an international domain', () => {
    const message = makeMessage(eventOf('intent.filled', {}), { ...envelope, from: 'x@bücher.example' });
    expect(message.messageId).toBe('<evt_0123.oncall@intentwatch.xn--bcher-kva.example>');
  });
});
