import { describe, expect, inject, test } from 'vitest';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { type SignalMap, Signals } from '../../src/signals.ts';
import { signalled, startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, type Scripted, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const HASH = hashOf(7);
const T = 1_763_638_259;
const DOWN: Scripted = { status: 503, body: '{}' };
const THROTTLED: Scripted = { status: 429, body: '{}', headers: { 'retry-after': '600' } };

const v1 = (status: string, updatedAt: number | null = T, more: JsonObject = {}): Scripted => ({
  records: [intentRecord(HASH, status, updatedAt, more)],
});

const open = (status: object): Scripted => ({
  status: 200,
  body: JSON.stringify({ data: { status, intentCreated: {}, fulfillment: null, refund: null } }),
});

const WAITING = open({ Pending: 'WaitingToFulfill' });
const FULFILLED = open({ Completed: 'Fulfilled' });
const ABSENT: Scripted = { status: 404, body: '{"statusCode":404}' };

/** Both sources, whose answers the test changes, and a daemon on them. */
async function stage(answers: { v1: Scripted; open: Scripted }, upstream: object = {}) {
  const [keyed, quoting] = [
    await started(new ScriptedUpstream(() => answers.v1)),
    await started(new ScriptedUpstream(() => answers.open)),
  ];
  const hook = await started(new TestReceiver());
  const lines: { msg: string; result?: string }[] = [];
  const signals = new Signals();
  // The first comparisons are made before the start has ended.
  const results: string[] = [];
  signals.on('status.compared', ({ result }) => results.push(result));
  const { daemon } = await startDaemon(
    {
      baseUrl: keyed.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url, more: { ordering: 'subject', events: ['intent.*'] } } },
      subscriptions: [{ name: 'one', intents: [HASH], receivers: ['hook'] }],
      upstream: {
        quotesUrl: quoting.url,
        statusSource: 'both',
        openStatusRequestsPerSecond: 100,
        ...upstream,
      },
      more: {
        polling: { shortestWait: '1s', longestWait: '1s' },
        server: { host: '127.0.0.1', port: 0, tokens: { admin: TOKEN } },
      },
    },
    (line) => lines.push(JSON.parse(line)),
    signals,
  );
  const compared = (result: string) => eventually(`a status that ${result}`, () => results.includes(result));
  later(() => daemon.close());
  const recheck = async (): Promise<void> => {
    // Both are awaited from before the request on: after a fill, v1 is polled only every few minutes.
    const done = keyed
      .awaitRequest(({ path }) => path === '/v1/intents/status')
      .then(() => polled(signals, 'status'));
    const response = await fetch(`${daemon.url}/api/v1/subjects/intent:${HASH}/recheck`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    expect(response.status).toBe(202);
    await done;
  };
  return { daemon, signals, hook, recheck, lines, compared };
}

const TOKEN = 'an-admin-token-of-32-characters-x';

/** Resolves with the next end of a poll of a source. */
function polled(signals: Signals, endpointGroup: string, outcome = 'answered') {
  return signalled<SignalMap['poll.ended'][0]>(
    (take) => signals.on('poll.ended', take),
    (poll) => poll.endpointGroup === endpointGroup && poll.outcome === outcome,
  );
}

const facts = ({ type, data }: RenderedEvent) => [type, data.previousStatus, data.regression ?? false];

describe('a transfer with two sources', () => {
  test('has the events of v1 alone where both agree', async () => {
    const answers = { v1: v1('pending'), open: WAITING };
    const { hook, compared, recheck, lines } = await stage(answers);
    await hook.until((events) => events.length === 1);
    await compared('agrees');
    Object.assign(answers, { v1: v1('filled', T + 1), open: FULFILLED });
    await hook.until((events) => events.length >= 2);
    Object.assign(answers, { v1: v1('settled', T + 2) });
    await recheck();
    await hook.until((events) => events.length >= 3);
    const types = hook.events.map(({ type }) => type);
    expect(types.filter((type) => type !== 'intent.updated')).toEqual([
      'intent.pending',
      'intent.filled',
      'intent.settled',
    ]);
    expect(hook.events.every(({ data }) => !data.regression)).toBe(true);
    expect(lines.filter(({ msg, result }) => msg === 'status.differs' && result === 'differs')).toEqual([]);
  });

  test('takes a step of the open source before v1, and lets v1 be late without a step back', async () => {
    const answers = { v1: v1('pending'), open: WAITING };
    const { hook, recheck, lines, daemon } = await stage(answers);
    await hook.until((events) => events.length === 1);
    answers.open = FULFILLED;
    await hook.until((events) => events.length === 2);
    const [, filled] = hook.events;
    expect(filled?.data).toMatchObject({
      status: 'filled',
      record: { status: 'filled', updatedAt: T, open: { status: { Completed: 'Fulfilled' } } },
      // The open source states no time: T is that of the state before.
      upstreamUpdatedAt: null,
      detectionDelaySeconds: null,
    });
    expect(filled?.data.elapsedSeconds).toBeUndefined();
    await recheck();
    await recheck();
    // v1 gives a detail at a newer time, in its own late status.
    answers.v1 = v1('pending', T + 5, {
      sourceTx: { chainId: 10, txHash: '0x01', token: '0x02', amount: '5' },
    });
    await recheck();
    answers.v1 = v1('pending', T + 3);
    await recheck();
    await hook.until((events) => events.length === 3);
    answers.v1 = v1('filled', T + 9, {
      destinationTx: { chainId: 1, txHash: '0x03', token: '0x04', amount: '5' },
    });
    await recheck();
    await hook.until((events) => events.length === 4);
    answers.v1 = v1('settled', T + 20);
    await recheck();
    await hook.until((events) => events.length === 5);
    expect(hook.events.map(facts)).toEqual([
      ['intent.pending', null, false],
      ['intent.filled', 'pending', false],
      ['intent.updated', 'filled', false],
      ['intent.updated', 'filled', false],
      ['intent.settled', 'filled', false],
    ]);
    expect(lines.filter(({ msg }) => msg === 'status.differs')).toMatchObject([{ result: 'ahead' }]);
    const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
    expect(metrics).toMatch(/^intentwatch_status_comparisons_total\{result="ahead"\} [1-9]/m);
  });

  test('ignores a status on another way than that of v1, logs it once and counts it', async () => {
    const answers = { v1: v1('refundable'), open: FULFILLED };
    const { hook, compared, recheck, lines } = await stage(answers);
    await Promise.all([compared('differs'), hook.until((events) => events.length === 1)]);
    await recheck();
    expect(hook.events.map(facts)).toEqual([['intent.refundable', null, false]]);
    expect(lines.filter(({ msg }) => msg === 'status.differs')).toMatchObject([
      { result: 'differs', v1: 'refundable', open: 'filled' },
    ]);
  });

  test('is not reported by the open source before v1 has shown it', async () => {
    const answers = { v1: v1('unknown', null), open: FULFILLED };
    const { hook, signals, recheck } = await stage(answers);
    await polled(signals, 'status');
    await recheck();
    expect(hook.events).toEqual([]);
    answers.v1 = v1('pending');
    await recheck();
    await hook.until((events) => events.length === 2);
    expect(hook.events.map(facts)).toEqual([
      ['intent.pending', null, false],
      ['intent.filled', 'pending', false],
    ]);
  });

  test('that the open source does not know is no difference', async () => {
    const { hook, signals, compared } = await stage({ v1: v1('pending'), open: ABSENT });
    await compared('unknown');
    await polled(signals, 'open-status');
    expect(hook.events.map(({ type }) => type)).toEqual(['intent.pending']);
  });
});

describe('a source that fails', () => {
  test('stops nothing of v1 where it is the open one', async () => {
    const answers = { v1: v1('pending'), open: DOWN };
    const { hook, signals } = await stage(answers);
    await Promise.all([
      polled(signals, 'open-status', 'failed'),
      hook.until((events) => events.length === 1),
    ]);
    answers.v1 = v1('filled', T + 1);
    await hook.until((events) => events.length === 2);
    expect(hook.events.map(({ type }) => type)).toEqual(['intent.pending', 'intent.filled']);
  });

  test('lets the open one go on where it is v1', async () => {
    const answers = { v1: v1('pending'), open: WAITING };
    const { hook, signals } = await stage(answers);
    await hook.until((events) => events.length === 1);
    answers.v1 = DOWN;
    await polled(signals, 'status', 'failed');
    answers.open = FULFILLED;
    await hook.until((events) => events.length === 2);
    expect(hook.events.map(facts)).toEqual([
      ['intent.pending', null, false],
      ['intent.filled', 'pending', false],
    ]);
  });

  test.each(['open-status', 'status'])('pauses alone after a 429 of %s', async (paused) => {
    const isOpen = paused === 'open-status';
    const answers = { v1: v1('pending'), open: WAITING };
    const { hook, signals, compared } = await stage(answers);
    await hook.until((events) => events.length === 1);
    await compared('agrees');
    const pauses: string[] = [];
    signals.on('upstream.paused', ({ endpointGroup }) => pauses.push(endpointGroup));
    const pause = signalled<unknown>((take) => signals.on('upstream.paused', take));
    if (isOpen) answers.open = THROTTLED;
    else answers.v1 = THROTTLED;
    await pause;
    if (isOpen) answers.v1 = v1('filled', T + 1);
    else answers.open = FULFILLED;
    await hook.until((events) => events.length === 2);
    expect(pauses).toEqual([paused]);
    expect(hook.events.map(({ type }) => type)).toEqual(['intent.pending', 'intent.filled']);
  });
});
