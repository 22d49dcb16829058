import { expect, test } from 'vitest';
import { CHAT_FORMATS } from '../../src/config/fields/receiver.ts';
import type { Event, RenderedEvent } from '../../src/domain/events/event.ts';
import { EVENT, RENDERED_EVENT, TRANSFER, type TransferFacts } from '../../src/domain/events/event-schema.ts';
import { asSubjectId } from '../../src/domain/subjects/subject.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { startDaemon } from '../support/daemon.ts';
import { CLAIM_KEY, deliveryStage } from '../support/delivery-stage.ts';
import { firstEpoch } from '../support/epoch.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { Mailbox } from '../support/mailbox.ts';
import { opening } from '../support/opening.ts';
import { wholeOf } from '../support/whole.ts';

const open = opening();

const MADE = wholeOf(EVENT);

const USDC = {
  base: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
  optimism: '0x0b2c639c533813f4aa9d7837caf62653d097ff85',
};

/** A transfer of which every fact of an event is known; nothing remains to be sent. */
const SENT = {
  sourceTx: { chainId: 8453, txHash: `0x${'51'.repeat(32)}`, token: USDC.base, amount: '1250000000' },
  destinationTx: { chainId: 10, txHash: `0x${'d7'.repeat(32)}`, token: USDC.optimism, amount: '1200000000' },
  steps: [
    {
      type: 'BRIDGE',
      intentHash: `0x${'5'.repeat(64)}`,
      status: 'FAILED',
      chainId: 8453,
      reason: 'no route left',
      transactions: { refunded: { chainId: 8453, txHash: `0x${'ef'.repeat(32)}` } },
    },
  ],
  error: 'went wrong',
};
const PROMISED = {
  quote: 'quote:imported',
  source: { chainId: '8453', token: USDC.base, amount: '1250000000', funder: '0xfunder' },
  destination: {
    chainId: '10',
    token: USDC.optimism,
    amount: '1249000000',
    minimum: '1248000000',
    recipient: '0xrecipient',
  },
  fees: [{ kind: 'solver', token: USDC.base, amount: '700000' }],
  estimateSeconds: 25,
  refundRecipient: '0xback',
};
const WHOLE: Event = {
  ...MADE,
  // Its texts are those of its kind.
  data: {
    ...MADE.data,
    record: { ...MADE.data.record, ...SENT },
    changes: ['status', 'changed-member', 'error'],
    // Every commit is in the epoch of the data.
    epoch: 1,
    afterRestore: true,
    before: { 'changed-member': 'what it was' },
    promised: PROMISED,
    fundedAt: 1_763_638_200,
    subject: { kind: 'intent', id: `intent:0x${'5'.repeat(64)}` },
    proof: {
      payment: 'destination',
      chainId: '10',
      txHash: `0x${'d7'.repeat(32)}`,
      checked: ['chain', 'success'],
      reason: 'short',
      endpoints: ['own', 'other'],
    },
    upstreamUpdatedAt: 1_763_638_259,
  },
};

/** Members that only a cut body has. */
const ONLY_CUT = ['recordTruncated', 'recordUrl', 'truncated'];

/** The text for a member `everywhere`, or in `mails` alone; null for a member without a text of its own. */
type Reported = { everywhere: string } | { mails: string } | null;

/** The texts of mails and chat messages for each member. A new member of the event needs a line here. */
const REPORTED: Readonly<Record<keyof RenderedEvent | keyof RenderedEvent['data'], Reported>> = {
  id: { mails: WHOLE.id },
  type: { everywhere: 'Back to refunded' },
  timestamp: { mails: '2026-11-20 10:00:00 UTC' },
  data: null,
  subject: { mails: WHOLE.data.subject.id },
  sequence: { mails: `number ${WHOLE.data.sequence} of its subject` },
  epoch: null,
  status: { everywhere: String(WHOLE.data.status) },
  previousStatus: { everywhere: String(WHOLE.data.previousStatus) },
  changes: { everywhere: String(WHOLE.data.changes[0]) },
  record: { everywhere: String(Object.values(WHOLE.data.record)[0]) },
  transfer: null,
  recordTruncated: null,
  recordUrl: null,
  truncated: null,
  suspended: { everywhere: 'It waited: what leads to it had left the config for a while.' },
  skipped: { everywhere: 'A usual step before it was not seen.' },
  regression: { everywhere: 'The status moved backward.' },
  afterRestore: { everywhere: 'It may have come before: Redis went back.' },
  expectedBy: {
    everywhere: `by 2026-11-20 10:00:00 UTC (${Math.round(100 * (WHOLE.data.expectedBy?.probability ?? 0))} %)`,
  },
  proof: { everywhere: 'less was moved than stated' },
  elapsedSeconds: { everywhere: `${WHOLE.data.elapsedSeconds} s` },
  // The claim leads through no wallet.
  wallets: null,
  subscriptions: { mails: 'Subscriptions' },
  metadata: { mails: 'of the order' },
  upstreamUpdatedAt: { mails: '2025-11-20 11:30:59 UTC' },
  detectionDelaySeconds: { mails: `${WHOLE.data.detectionDelaySeconds} s later` },
};

/** The text everywhere for each member of `data.transfer`; null for a member without a text of its own. */
const REPORTED_OF_TRANSFER: Readonly<Record<keyof TransferFacts, string | null>> = {
  source: 'Base',
  destination: 'Optimism',
  refund: `0x${'ef'.repeat(32)}`,
  toSend: null,
  sent: '1,250.00 USDC',
  promised: '1,249.00 USDC',
  minimum: '1,248.00 USDC',
  delivered: '1,200.00 USDC',
  shortfall: '48.00 USDC, 3.85 %',
  fees: '0.70 USDC solver',
  quote: null,
  funder: '0xfunder',
  recipient: '0xrecipient',
  refundRecipient: '0xback',
  // The time that it took is reported.
  secondsSinceFunding: null,
  failed: 'steps[0] FAILED: no route left',
  error: 'went wrong',
  changed: 'changed-member what it was → none',
};

test('an event with every member of its schema goes through commit, log and relay to every kind of receiver', async () => {
  const whole = new Hook();
  const chats = CHAT_FORMATS.map((format) => ({ format, hook: new Hook() }));
  for (const hook of [whole, ...chats.map((chat) => chat.hook)]) await open.started(hook);
  const mailbox = await open.started(new Mailbox());
  const stage = await deliveryStage(open, {});
  const { redis, keys } = stage;
  const webhook = (name: string, { url }: Hook, more: object) => ({
    name,
    type: 'webhook',
    url,
    allowPrivateNetwork: true,
    allowInsecure: true,
    ...more,
  });
  const { daemon, signals } = await startDaemon({
    ...stage.config,
    subscriptions: [
      {
        ...stage.config.subscriptions[0],
        receivers: ['whole', ...CHAT_FORMATS, 'mail'],
        metadata: { note: 'of the order' },
      },
    ],
    more: {
      smtp: { url: mailbox.url, from: 'watch@example.com' },
      receivers: [
        webhook('whole', whole, { secrets: [`whsec_${Buffer.alloc(32, 7).toString('base64')}`] }),
        ...chats.map(({ format, hook }) => webhook(format, hook, { format })),
        { name: 'mail', type: 'email', to: ['oncall@example.com'] },
      ],
    },
  });
  open.later(() => daemon.close());
  const attempted: (string | null)[] = [];
  signals.on('delivery.attempted', ({ subject }) => attempted.push(subject));

  // It waits for the return of its subscription to the config.
  await redis.hset(keys.wanted, CLAIM_KEY, '1');
  await redis.zadd(keys.suspensions, Date.now(), 'out:1');
  await redis.hset(keys.suspended, CLAIM_KEY, 'out:1');
  await new SubjectStore(redis, keys, { epoch: firstEpoch(redis, keys) }).commit({
    subject: asSubjectId(WHOLE.data.subject.id),
    asOf: '0',
    token: WHOLE.id,
    claims: [],
    event: { event: WHOLE, updatedAt: null, first: true, claimKeys: [CLAIM_KEY] },
  });

  await redis.zadd(keys.suspensions, '1', 'back:1');
  await redis.hset(keys.suspended, CLAIM_KEY, 'back:1');

  const [came] = await whole.until((all) => all.length > 0);
  const subscribers = { wallets: [], subscriptions: ['s'], metadata: { note: 'of the order' } };
  const { before: _, promised: __, fundedAt: ___, ...stored } = WHOLE.data;
  const transfer = came?.event.data.transfer;
  expect(came?.event).toEqual({ ...WHOLE, data: { ...stored, ...subscribers, suspended: true, transfer } });
  expect(transfer).toMatchObject({
    source: { chainId: '8453', chain: 'Base', txUrl: `https://basescan.org/tx/${SENT.sourceTx.txHash}` },
    sent: { amount: '1250000000', units: '1250', symbol: 'USDC', token: USDC.base, chainId: '8453' },
    shortfall: { amount: '48000000', units: '48', share: 0.038462 },
    secondsSinceFunding: 59,
    changed: [
      { path: 'status', old: WHOLE.data.previousStatus, new: WHOLE.data.status },
      { path: 'changed-member', old: 'what it was', new: null },
      { path: 'error', old: null, new: 'went wrong' },
    ],
  });
  const expected = Object.keys(TRANSFER.shape).filter((key) => key !== 'toSend');
  expect(Object.keys(transfer ?? {}).sort()).toEqual(expected.sort());
  const promised = Object.keys(RENDERED_EVENT.shape.data.shape).filter((key) => !ONLY_CUT.includes(key));
  expect(Object.keys(came?.event.data ?? {}).sort()).toEqual(promised.sort());

  const [mail] = await mailbox.until((mails) => mails.length > 0);
  const members = [...Object.keys(RENDERED_EVENT.shape), ...promised, ...ONLY_CUT];
  expect(Object.keys(REPORTED).sort()).toEqual([...members].sort());
  const reported = Object.values(REPORTED).filter((one) => one !== null);
  const everywhere = [
    ...reported.flatMap((one) => ('everywhere' in one ? [one.everywhere] : [])),
    ...Object.values(REPORTED_OF_TRANSFER).filter((text) => text !== null),
  ];
  const mails = reported.flatMap((one) => ('mails' in one ? [one.mails] : []));
  const messages = await Promise.all(
    chats.map(async ({ format, hook }) => {
      const [message] = await hook.until((all) => all.length > 0);
      // A character of markup may have a backslash before it.
      return { where: format, content: (message?.body ?? '').replaceAll('\\', ''), texts: everywhere };
    }),
  );
  for (const { where, content, texts } of [
    ...messages,
    { where: 'text', content: mail?.text ?? '', texts: [...everywhere, ...mails] },
    { where: 'html', content: mail?.html || '', texts: [...everywhere, ...mails] },
  ]) {
    const words = content.replaceAll(/\s+/g, ' ');
    for (const text of texts) expect(words, `${where} states ${text}`).toContain(text);
  }
  await eventually('all attempts are reported', () => attempted.length === 2 + chats.length);
  expect(new Set(attempted)).toEqual(new Set([WHOLE.data.subject.id]));
});
