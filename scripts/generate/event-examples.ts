import { expectedBy, type StageEnds } from '../../src/domain/cadence/expected.ts';
import { expectedHazard } from '../../src/domain/cadence/hazard.ts';
import { timedEvents } from '../../src/domain/cadence/timed.ts';
import { WATCH_RULES, type Watch } from '../../src/domain/cadence/watch-rules.ts';
import { decide } from '../../src/domain/changes/decide.ts';
import type { FlaggedEvent, Transition } from '../../src/domain/changes/decision.ts';
import {
  fundedAt,
  nextSnapshot,
  unseenSnapshot,
  waitingSince,
} from '../../src/domain/changes/next-snapshot.ts';
import type { Event, RenderedEvent } from '../../src/domain/events/event.ts';
import { OPERATOR_TYPES, TEST_TYPE } from '../../src/domain/events/event-types.ts';
import {
  makeEvent,
  makeTestEvent,
  type RenderedSubscription,
  renderEvent,
} from '../../src/domain/events/make-event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import {
  type ImportedQuote,
  promisedBy,
  shortEvent,
  signatureInvalid,
} from '../../src/domain/quotes/promised.ts';
import { type RouteQuote, routeRecord } from '../../src/domain/quotes/route.ts';
import type { Snapshot, UpstreamRecord } from '../../src/domain/subjects/record.ts';
import {
  asSubjectId,
  eventKind,
  parseSubjectId,
  quoteId,
  type SubjectId,
  subjectKind,
} from '../../src/domain/subjects/subject.ts';
import { proofEvents } from './proof-examples.ts';

const START_SECONDS = 1_795_174_200;
const CONFIRM_AFTER_MS = 600_000;
const OVERDUE_AFTER_MS = 900_000;
const WARN_BEFORE_MS = 120_000;
const HASH = `0x${'9c1f'.repeat(16)}`;
const WALLET = '0x52908400098527886e0f7030069857d2e4169ee7';
const UUID = '3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41';
const VAULT = '0xde709f2102306220921060314715629080e2fb77';
const USDC_BASE = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
const USDC_ARBITRUM = '0xaf88d065e77c8cc2239327c5edb3a432268e5831';

const sourceTx = { chainId: 8453, txHash: `0x${'51'.repeat(32)}`, token: USDC_BASE, amount: '1250000000' };
const destinationTx = {
  chainId: 42161,
  txHash: `0x${'d7'.repeat(32)}`,
  token: USDC_ARBITRUM,
  amount: '1249375000',
};

const SHORT_DELIVERY = { ...destinationTx, amount: '1200000000' };

const REASON = 'no solver had the liquidity';

const FAILED_STEP = {
  type: 'BRIDGE',
  intentHash: HASH,
  status: 'FAILED',
  reason: REASON,
  from: { token: USDC_BASE, amount: sourceTx.amount, chainId: 8453 },
  to: { token: USDC_ARBITRUM, amount: destinationTx.amount, chainId: 42161 },
  transactions: {},
};

const REFUNDED_STEP = {
  ...FAILED_STEP,
  transactions: { refunded: { chainId: 8453, txHash: `0x${'ef'.repeat(32)}` } },
};

const FAILED_SUB_STATUS = {
  chainId: 8453,
  quoteIds: [`quote:${UUID}`],
  txHash: null,
  intentHashes: [HASH],
  state: 'failed',
};

/** The imported quote of the stories, as far as an event shows it. */
const IMPORTED: ImportedQuote = {
  subject: quoteId(UUID),
  raw: {
    id: `quote:${UUID}`,
    intentHash: HASH,
    expiresAt: START_SECONDS + 300,
    source: { chainId: 8453, token: USDC_BASE, amount: sourceTx.amount, funder: WALLET },
    destination: {
      chainId: 42161,
      token: USDC_ARBITRUM,
      recipient: WALLET,
      amountOut: destinationTx.amount,
      minAmountOut: '1243128125',
    },
    fees: [{ type: 'solver', token: USDC_BASE, amount: '625000' }],
  },
};

const TRANSFER = asSubjectId(`intent:${HASH}`);

const PAID = {
  record: {
    id: TRANSFER,
    type: 'intent',
    status: 'filled',
    updatedAt: START_SECONDS + 24,
    sourceTx,
    destinationTx,
  },
  delivery: destinationTx,
  recipient: WALLET,
  updatedAt: START_SECONDS + 24,
};

/** An answer at a second of the story; without a status, only time has passed. */
type StoryStep = { at: number; status?: string; members?: JsonObject; outputs?: readonly string[] };

/** The upstream's answers about one subject, in order, and the subscription key of its receiver. */
type Story = { subject: SubjectId; key: string; steps: readonly StoryStep[] };

const STORIES: readonly Story[] = [
  ...['intent', 'deposit-address'].flatMap((kind) => transferStories(asSubjectId(`${kind}:${HASH}`))),
  story(`quote:${UUID}`, [
    { at: 0, status: 'active', members: { steps: [] } },
    { at: 31, status: 'submitted', members: { intentHashes: [HASH], sourceTx } },
    { at: 60, status: 'submitted', members: { intentHashes: [HASH], sourceTx, destinationTx } },
    { at: 90, status: 'unknown' },
  ]),
  story(`quote:${UUID}`, [{ at: 0, status: 'active', members: { steps: [] } }, { at: 181 }, { at: 301 }]),
  story(`quote:${UUID}`, [
    { at: 31, status: 'submitted', members: { intentHashes: [HASH] } },
    { at: 60, status: 'submitted', members: { intentHashes: [HASH], steps: [FAILED_STEP] } },
    { at: 61, status: 'submitted', members: { intentHashes: [HASH], steps: [REFUNDED_STEP] } },
    { at: 62, status: 'submitted', members: { intentHashes: [HASH], error: REASON } },
  ]),
  story(`gasless:${UUID}`, [
    { at: 0, status: 'pending' },
    { at: 10, status: 'pending', members: { subStatuses: [FAILED_SUB_STATUS] } },
    { at: 11, status: 'pending', members: { error: REASON } },
  ]),
  story(`vault:8453:${VAULT}`, [
    { at: 0, status: 'PENDING' },
    { at: 40, status: 'PENDING', members: { error: REASON } },
  ]),
  story(`gasless:${UUID}`, [
    { at: 0, status: 'pending' },
    { at: 10, status: 'submitted' },
    { at: 15, status: 'submitted', members: { txHash: sourceTx.txHash } },
    { at: 20, status: 'published', members: { txHash: sourceTx.txHash, intentHashes: [HASH] } },
    { at: 90, status: 'unknown' },
  ]),
  story(`gasless:${UUID}`, [{ at: 0, status: 'pending' }, { at: 901 }, { at: 930, status: 'failed' }]),
  story(`gasless:gateway:${UUID}`, [
    { at: 0, status: 'PENDING' },
    { at: 10, status: 'PERMIT_SENT', members: { permitTxHash: `0x${'b3'.repeat(32)}` } },
    { at: 20, status: 'COMPLETED', members: { transferTxHash: sourceTx.txHash, intentHash: HASH } },
  ]),
  story(`vault:8453:${VAULT}`, [
    { at: 0, status: 'PENDING' },
    { at: 40, status: 'FUNDING_DETECTED' },
    { at: 50, status: 'FUNDING_DETECTED', members: { intentHash: HASH } },
    { at: 55, status: 'PUBLISHED', members: { intentHash: HASH } },
    { at: 90, status: 'unknown' },
  ]),
  story(`vault:8453:${VAULT}`, [
    { at: 0, status: 'PENDING' },
    { at: 181 },
    { at: 301 },
    { at: 310, status: 'EXPIRED_UNFUNDED' },
    { at: 400, status: 'REFUNDED_BY_USER' },
  ]),
  story(`vault:8453:${VAULT}`, [
    { at: 0, status: 'FUNDING_DETECTED' },
    { at: 901 },
    { at: 910, status: 'FAILED' },
    { at: 1_500, status: 'RECOVERY_PUBLISHED' },
  ]),
  story('route:base-to-arbitrum', [
    { at: 0, status: 'available', outputs: ['1249375000', '1249100000'] },
    { at: 90, status: 'available', outputs: ['1236000000'] },
    { at: 180, status: 'unavailable', outputs: [] },
  ]),
];

function transferStories(subject: SubjectId): Story[] {
  const key = `treasury|wallet:${WALLET}`;
  const pending = { status: 'pending', members: { txHash: sourceTx.txHash, sourceTx } };
  const details = { txHash: sourceTx.txHash, sourceTx, destinationTx };
  const stories: StoryStep[][] = [
    [
      { at: 0, ...pending },
      { at: 24, status: 'filled', members: { txHash: sourceTx.txHash, sourceTx } },
      { at: 26, status: 'filled', members: details },
      { at: 240, status: 'settled', members: details },
    ],
    [
      { at: 0, ...pending },
      { at: 24, status: 'filled', members: { ...details, destinationTx: SHORT_DELIVERY } },
    ],
    [
      { at: 0, ...pending },
      { at: 30, ...pending, members: { ...pending.members, steps: [FAILED_STEP] } },
      { at: 31, ...pending, members: { ...pending.members, steps: [REFUNDED_STEP] } },
      { at: 32, ...pending, members: { ...pending.members, steps: [REFUNDED_STEP], error: REASON } },
    ],
    [
      { at: 0, ...pending },
      { at: 901 },
      { at: 1_800, ...pending, status: 'expired' },
      { at: 3_600, ...pending, status: 'refundable' },
      { at: 4_200, ...pending, status: 'refunded' },
    ],
    [
      { at: 0, ...pending },
      { at: 60, ...pending, status: 'failed' },
      { at: 90, status: 'unknown' },
    ],
  ];
  return stories.map((steps) => ({ subject, key, steps }));
}

function story(id: string, steps: readonly StoryStep[]): Story {
  return { subject: asSubjectId(id), key: `order-1042|${id}`, steps };
}

const SUBSCRIPTIONS: ReadonlyMap<string, RenderedSubscription> = new Map([
  ['treasury', { name: 'treasury', order: 0, metadata: { desk: 'treasury' } }],
  ['order-1042', { name: 'order-1042', order: 1, metadata: { order: '1042' } }],
]);

/** One rendered event per type: the first of a story, by the code that makes the real ones. */
export function exampleEvents(): Map<string, RenderedEvent> {
  const examples = new Map<string, RenderedEvent>();
  for (const { subject, key, steps } of STORIES) {
    for (const event of eventsOf(subject, steps)) {
      if (!examples.has(event.type)) examples.set(event.type, renderEvent(event, [key], SUBSCRIPTIONS));
    }
  }
  const invalid = invalidQuote();
  examples.set(invalid.type, renderEvent(invalid, [`order-1042|${IMPORTED.subject}`], SUBSCRIPTIONS));
  for (const event of proofEvents(TRANSFER, PAID)) {
    examples.set(event.type, renderEvent(event, [`treasury|wallet:${WALLET}`], SUBSCRIPTIONS));
  }
  for (const [index, type] of OPERATOR_TYPES.entries()) {
    examples.set(type, renderEvent(operatorEvent(type, index), [], SUBSCRIPTIONS));
  }
  examples.set(TEST_TYPE, makeTestEvent('backend', START_SECONDS * 1_000));
  return examples;
}

/** Events of a series of answers. An unconfirmed answer is repeated until it is accepted. */
function eventsOf(subject: SubjectId, steps: readonly StoryStep[]): Event[] {
  const events: Event[] = [];
  let snapshot: Snapshot | null = null;
  for (const step of steps) {
    let nowMs = (START_SECONDS + step.at) * 1_000 + 900;
    if (step.status === undefined) {
      if (snapshot === null)
        throw new Error(`found no answer about ${subject} before time passes, expected one`);
      const passed = passTime(subject, snapshot, nowMs);
      snapshot = passed.snapshot;
      events.push(...passed.events);
      continue;
    }
    const record = recordOf(subject, { ...step, status: step.status });
    const context = { exact: true, history: false, confirmAfterMs: CONFIRM_AFTER_MS };
    let decision = decide(snapshot, record, { ...context, nowMs });
    if (decision.outcome === 'stale' && snapshot !== null) {
      nowMs += CONFIRM_AFTER_MS;
      decision = decide({ ...snapshot, unconfirmed: decision.unconfirmed }, record, { ...context, nowMs });
    }
    if (decision.outcome !== 'first' && decision.outcome !== 'changed') {
      throw new Error(`found ${decision.outcome} for ${subject} as ${step.status}, expected an event`);
    }
    const before = { record: snapshot?.record ?? null, waitingSince: waitingSince(subject, snapshot) };
    snapshot = {
      ...nextSnapshot(snapshot, decision.accepted, { subject, nowMs, event: true }),
      commit: 0,
      reported: true,
    };
    events.push(eventOf(subject, { snapshot, transition: decision.transition, before, nowMs }));
    const event = shortEvent(subject, snapshot, promisedBy(IMPORTED));
    if (event === null) continue;
    snapshot = { ...snapshot, sequence: snapshot.sequence + 1, flags: [...snapshot.flags, event.flag] };
    events.push(flaggedEvent(subject, { snapshot, event, nowMs }));
  }
  return events;
}

/** Events that the clock has caused by now. */
function passTime(
  subject: SubjectId,
  before: Snapshot,
  nowMs: number,
): { snapshot: Snapshot; events: Event[] } {
  let snapshot = before;
  const events: Event[] = [];
  const isQuote = subjectKind(subject) === 'quote';
  const imported = isQuote ? { quote: IMPORTED, verdict: 'valid' as const } : null;
  const context = {
    overdue: [{ after: OVERDUE_AFTER_MS, ms: OVERDUE_AFTER_MS }],
    warnBeforeMs: [WARN_BEFORE_MS],
    imported,
  };
  for (const { atMs, event } of timedEvents(subject, before, context)) {
    if (atMs > nowMs || (event.untilMs !== null && nowMs >= event.untilMs)) continue;
    snapshot = { ...snapshot, sequence: snapshot.sequence + 1, flags: [...snapshot.flags, event.flag] };
    events.push(flaggedEvent(subject, { snapshot, event, nowMs }));
  }
  return { snapshot, events };
}

/** An event without an answer, by the code with which the daemon commits it. */
function flaggedEvent(
  subject: SubjectId,
  { snapshot, event, nowMs }: { snapshot: Snapshot; event: FlaggedEvent; nowMs: number },
): Event {
  const record = { ...snapshot.record, ...event.raw };
  const { transition } = event;
  const before = { record: null, waitingSince: waitingSince(subject, snapshot) };
  return eventOf(subject, { snapshot: { ...snapshot, record }, transition, before, nowMs });
}

/** The event of a quote that was altered before its import; the upstream has not been polled for it yet. */
function invalidQuote(): Event {
  const nowMs = START_SECONDS * 1_000 + 900;
  const snapshot = { ...unseenSnapshot(nowMs), sequence: 1 };
  const flaw = {
    part: 'source.chainId',
    reason: 'found 8453, but the quote was signed for chain 10',
    recovered: '0x19e7e376e7c213b7e7e7e46cc70a5dd086daff2a',
  } as const;
  return flaggedEvent(IMPORTED.subject, {
    snapshot,
    event: signatureInvalid(IMPORTED, flaw, snapshot),
    nowMs,
  });
}

/** Expected ends of stages, for an upstream that behaves as expected before any observation. */
const EXPECTED = {
  pending: endsOf('pending'),
  filled: endsOf('filled'),
  gasless: endsOf('gasless'),
  vault: endsOf('vault'),
};

function endsOf(watch: Watch): StageEnds {
  const usual = expectedHazard(WATCH_RULES[watch].expectation);
  return { usual, failed: usual.map(() => 0) };
}

/** The record before an event, and the start of its subject's wait. */
type Before = { record: JsonObject | null; waitingSince: number | null };

function eventOf(
  subject: SubjectId,
  {
    snapshot,
    transition,
    before,
    nowMs,
  }: { snapshot: Snapshot; transition: Transition; before: Before; nowMs: number },
): Event {
  const { sequence, record, updatedAt } = snapshot;
  return makeEvent({
    subject: { kind: eventKind(subject), id: subject },
    sequence,
    epoch: 1,
    transition,
    record,
    updatedAt,
    waitingSince: before.waitingSince,
    before: transition.previousStatus === null ? null : before.record,
    // The quote of the stories is imported: its transfer is reported with the promised values.
    promised: isPromised(subject, transition) ? promisedBy(IMPORTED) : null,
    fundedAt: fundedAt(subject, snapshot),
    expectedBy: expectedBy({ subject, snapshot, nowMs }, (_, watch) => EXPECTED[watch]),
    nowMs,
  });
}

function isPromised(subject: SubjectId, { type }: Transition): boolean {
  if (type === 'quote.signature_invalid') return false;
  return subject === IMPORTED.subject || subject === asSubjectId(`intent:${HASH}`);
}

/** An answer in the shape of the endpoint that knows the subject. */
function recordOf(
  subject: SubjectId,
  { at, status, members = {}, outputs }: StoryStep & { status: string },
): UpstreamRecord {
  const key = parseSubjectId(subject);
  if (outputs !== undefined) return routeRecord(ROUTE, outputs.map(openQuote));
  const isGateway = key?.kind === 'vault' || (key?.kind === 'gasless' && key.endpoint === 'gateway');
  const updatedAt = isGateway || status === 'unknown' ? null : START_SECONDS + at;
  const amount = sourceTx.amount;
  let raw: JsonObject = { id: subject, type: eventKind(subject), status, updatedAt, ...members };
  if (isGateway && status === 'unknown') raw = { status };
  else if (key?.kind === 'vault') {
    const { address: vaultAddress, chainId: sourceChainId } = key;
    raw = { vaultAddress, amount, deadline: START_SECONDS + 300, state: status, sourceChainId, ...members };
  } else if (key?.kind === 'gasless' && isGateway) raw = { id: key.id, status, amount, ...members };
  return { subject, status, updatedAt, names: [], raw, unreadable: [] };
}

const ROUTE = {
  name: 'base-to-arbitrum',
  source: { chainId: 8453, token: USDC_BASE },
  destination: { chainId: 42161, token: USDC_ARBITRUM },
  amount: sourceTx.amount,
  funder: WALLET,
  recipient: WALLET,
  movedBy: 0.01,
  service: 'open' as const,
  executions: ['SELF_PUBLISH'],
  everyMs: 30_000,
};

function openQuote(output: string, index: number): RouteQuote {
  const amount = String(BigInt(sourceTx.amount) - BigInt(output));
  const token = { address: USDC_BASE, decimals: 6, symbol: 'USDC' };
  const solver = `0x${`${index + 1}a`.repeat(20)}`;
  const minimumOutput = String((BigInt(output) * 995n) / 1_000n);
  const raw = {
    quoteID: `quote:${UUID}`,
    quoteResponseID: `quoteResponse:${UUID}`,
    solverID: solver,
    quoteData: {
      quoteResponse: {
        intentExecutionType: 'SELF_PUBLISH',
        sourceChainID: ROUTE.source.chainId,
        destinationChainID: ROUTE.destination.chainId,
        sourceAmount: ROUTE.amount,
        destinationAmount: output,
        minimumDestinationAmount: minimumOutput,
        fees: [{ name: 'Solver fee', token, amount }],
        quoteExpiry: START_SECONDS + 300,
        estimatedFulfillTimeSec: 25,
      },
    },
  };
  const fee = { amount, token: token.address, decimals: token.decimals, symbol: token.symbol };
  return { solver, output, minimumOutput, fees: [fee], fillEstimateSeconds: 25, raw };
}

const RECORDS_OF_RECEIVERS: { readonly [word: string]: JsonObject } = {
  failing: { reason: '500 Internal Server Error', by: 'failures', failingSince: START_SECONDS },
  disabled: { reason: '410 Gone', by: 'gone', failingSince: START_SECONDS },
  recovered: { reason: '204 No Content', by: 'success', failingSince: START_SECONDS },
  events_dropped: {
    reason: 'the retention of events has ended before they were delivered',
    count: 3,
    deliveries: ['2d', '2e', '2f'].map((byte) => `evt_${byte.repeat(20)}`),
  },
};

const CURSOR_EXPIRED: JsonObject = {
  endpointGroup: 'status',
  reason: 'a cursor has expired before the next page was read, at the rate that the budget leaves',
  wallet: `wallet:${WALLET}`,
  pages: 4,
  lifetimeSeconds: 10,
  requestsPerSecond: 1,
  neededRequestsPerSecond: 2,
};

const TOO_LARGE: JsonObject = {
  endpointGroup: 'status',
  reason: 'a page of one record: found more than 1048576 bytes',
  wallet: `wallet:${WALLET}`,
  id: `intent:${HASH}`,
};

/** Subject and record of an event about the daemon itself. */
const REPORTS: { readonly [word: string]: { subject: string; record: JsonObject } } = {
  large_removal: {
    subject: 'intentwatch:config',
    record: {
      at: '2026-11-20T11:30:00.000Z',
      held: true,
      digest: '5f2b0c6e9a7d41388c1f0e2d3b4a5968',
      confirmAfter: 0.2,
      wallets: { removed: 3, of: 4, ids: ['3a', '3b', '3c'].map((byte) => `wallet:0x${byte.repeat(20)}`) },
      subjects: { removed: 0, of: 2, ids: [] },
      receivers: { removed: 0, of: 2, ids: [] },
    },
  },
  suspension_ended: {
    subject: 'intentwatch:removal',
    record: {
      reason: 'span-over',
      subjects: 2,
      subscriptions: ['treasury'],
      events: 1,
      eventIds: ['evt_5b0c7e0f2a9d4c1e8b7a6f5d4c3b2a1908f7e6d5'],
    },
  },
  quote_domain_unproven: {
    subject: 'intentwatch:quote-domain',
    record: {
      setting: 'upstream.quoteDomain',
      quoteDomain: { name: 'ServiceQuoteV1', version: '1' },
      reason:
        'set upstream.quoteDomain: no quote has verified under "ServiceQuoteV1", version "1" yet, and this deployment may have ' +
        `another name; found 0x${'4d'.repeat(20)} as the signer, expected 0x${'51'.repeat(20)} (chain 8453)`,
    },
  },
  storage_truncated: {
    subject: 'intentwatch:storage',
    record: {
      file: 'appendonly.aof.7.incr.aof',
      lostBytes: 48_213,
      lostFrom: '2026-11-20T11:29:58.000Z',
      lostUntil: '2026-11-20T11:30:02.417Z',
      reason: 'the append-only file of the embedded Redis was damaged: some of its writes are lost',
    },
  },
  storage_restored: {
    subject: 'intentwatch:storage',
    record: {
      epoch: 2,
      lostFrom: '2026-11-20T11:29:58.000Z',
      lostUntil: '2026-11-20T11:30:38.417Z',
      resumedAt: '2026-11-20T11:30:42.108Z',
      reason:
        'Redis went back: an older copy of its data was put in place, or a replica that was behind was promoted',
    },
  },
  clock_jumped: {
    subject: 'intentwatch:clock',
    record: {
      clock: 'redis',
      aheadSeconds: 3_600,
      reason: 'Redis time went on otherwise than the monotonic clock',
      confirmedTime: '2026-11-20T11:29:58.000Z',
    },
  },
  clock_differs: {
    subject: 'intentwatch:clock',
    record: {
      clock: 'upstream',
      aheadSeconds: -7_200,
      reason: 'the clocks have differed by more than 2 min for an hour; Redis time counts from now on',
      confirmedTime: '2026-11-20T11:29:58.000Z',
    },
  },
};

function operatorEvent(type: string, index: number): Event {
  const [kind = '', word = ''] = type.split('.');
  const report = kind === 'intentwatch' ? REPORTS[word] : undefined;
  const isReceiver = kind === 'receiver';
  const isMove = word !== 'record_too_large' && word !== 'cursor_expired';
  const isFailure = word.startsWith('un') || word === 'failing' || !isMove;
  const before = isFailure ? 'ok' : isReceiver ? 'failing' : `un${word}`;
  const reason = before === 'ok' ? 'upstream status: found no answer within 10000 ms; expected HTTP 200' : '';
  const ofEndpointGroup = word === 'cursor_expired' ? CURSOR_EXPIRED : TOO_LARGE;
  const ofUpstream = isMove ? { endpointGroup: 'status', reason } : ofEndpointGroup;
  const ofReceiver = { receiver: 'backend', ...RECORDS_OF_RECEIVERS[word] };
  return makeEvent({
    subject: { kind, id: report?.subject ?? (isReceiver ? 'receiver:backend' : 'upstream:status') },
    sequence: index + 1,
    epoch: 1,
    transition: {
      type,
      status: word,
      previousStatus: report === undefined ? before : 'ok',
      changes: ['status'],
      skipped: false,
      regression: false,
    },
    record: report?.record ?? (isReceiver ? ofReceiver : ofUpstream),
    updatedAt: null,
    nowMs: (START_SECONDS + index * 60) * 1_000,
  });
}
