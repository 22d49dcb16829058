import { expect, inject, test } from 'vitest';
import { z } from 'zod';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, type Scripted, ScriptedUpstream } from '../support/scripted-upstream.ts';

const HASH = hashOf(77);
const FUNDING = hashOf(5);
const PAYOUT = hashOf(6);
const OTHER = hashOf(78);

const LINE = z.looseObject({ msg: z.string() });

const { later, started } = opening();

/** The events where the upstream answers polls by a transaction with these, one after another, the last one repeatedly. */
async function watching(answers: readonly Scripted[], named: object) {
  const times: string[] = [];
  const upstream = await started(
    new ScriptedUpstream(({ query }) => {
      if (query.intentHash !== undefined) {
        return { records: [intentRecord(query.intentHash, 'pending', Math.floor(Date.now() / 1_000))] };
      }
      times.push(JSON.stringify(query));
      return answers[Math.min(times.length, answers.length) - 1] ?? { records: [] };
    }),
  );
  const hook = await started(new TestReceiver());
  const lines: z.infer<typeof LINE>[] = [];
  const { daemon } = await startDaemon(
    {
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url, more: { ordering: 'subject' } } },
      subscriptions: [{ name: 's', ...named, receivers: ['hook'], metadata: { order: '1042' } }],
    },
    (line) => lines.push(LINE.parse(JSON.parse(line))),
  );
  later(() => daemon.close());
  return { hook, times, daemon, lines };
}

const pending: Scripted = { records: [intentRecord(HASH, 'pending', Math.floor(Date.now() / 1_000))] };

test.each<[string, Scripted]>([
  ['one unknown result', { records: [{ id: FUNDING, type: 'intent', status: 'unknown', updatedAt: null }] }],
  [
    'an unknown result with an id of no form',
    { records: [{ id: '-', type: '?', status: 'unknown', updatedAt: null }] },
  ],
  ['no result', { records: [] }],
])('a transfer named by its funding transaction is reported once the upstream knows it, after %s', async (_, first) => {
  const { hook, times, daemon } = await watching([first, pending], {
    sourceTxs: [FUNDING.toUpperCase().replace('0X', '0x')],
  });
  const [event] = await hook.until((events) => events.length > 0);
  expect(event).toMatchObject({
    type: 'intent.pending',
    data: {
      subject: { kind: 'intent', id: `intent:${HASH}` },
      sequence: 1,
      subscriptions: ['s'],
      metadata: { order: '1042' },
    },
  });
  expect(times).toEqual(Array(2).fill(JSON.stringify({ sourceTxHash: FUNDING })));
  const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
  expect(metrics).toContain('intentwatch_records_unreadable_total{kind="by-tx"} 0');
});

test('a transfer named by the transaction that delivers it is reported as well', async () => {
  const { hook, times } = await watching([pending], { destinationTxs: [PAYOUT] });
  const [event] = await hook.until((events) => events.length > 0);
  expect(event).toMatchObject({ type: 'intent.pending', data: { subject: { id: `intent:${HASH}` } } });
  expect(times).toEqual([JSON.stringify({ destinationTxHash: PAYOUT })]);
});

test('a transfer of another transaction does not count as the requested one', async () => {
  const answers = [OTHER, HASH].map((hash): Scripted => {
    const sourceTx = { chainId: 1, txHash: hash === HASH ? FUNDING : hashOf(9), token: '0x1', amount: '1' };
    return { records: [{ ...intentRecord(hash, 'pending', Math.floor(Date.now() / 1_000)), sourceTx }] };
  });
  const { hook, lines } = await watching(answers, { sourceTxs: [FUNDING] });
  await hook.until((events) => events.length > 0);
  expect(hook.events.map(({ data }) => data.subject.id)).toEqual([`intent:${HASH}`]);
  expect(lines.filter(({ msg }) => msg === 'poll.failed')).toMatchObject([
    { subject: `by-tx:source:${FUNDING}`, code: 'malformed' },
  ]);
});

test('subjects that only their transaction can identify are reported by that poll, to their end', async () => {
  const updatedAt = Math.floor(Date.now() / 1_000);
  const answers = ['pending', 'filled', 'settled'].map((status, index): Scripted => {
    const record = {
      id: 'deposit-address:0x77',
      type: 'deposit-address',
      status,
      updatedAt: updatedAt + index,
    };
    return { records: [record] };
  });
  const { hook } = await watching(answers, { sourceTxs: [FUNDING] });
  await hook.until((events) => events.some(({ type }) => type === 'deposit-address.settled'));
  expect(hook.events.map(({ type }) => type)).toEqual(
    ['pending', 'filled', 'settled'].map((status) => `deposit-address.${status}`),
  );
});

test('an address that is checksummed in one answer and in lower case in the next is one subject', async () => {
  const updatedAt = Math.floor(Date.now() / 1_000);
  const address = '0x52908400098527886E0F7030069857D2E4169EE7';
  const answers = ['pending', 'filled', 'settled'].flatMap((status, index) =>
    [address, address.toLowerCase()].map((spelled): Scripted => {
      const id = `deposit-address:${spelled}`;
      return { records: [{ id, type: 'deposit-address', status, updatedAt: updatedAt + index }] };
    }),
  );
  // The checksummed one comes first, so that the delivered record has it.
  const { hook } = await watching(answers, { sourceTxs: [FUNDING] });
  await hook.until((events) => events.some(({ type }) => type === 'deposit-address.settled'));
  expect(hook.events.map(({ type, data }) => [type, data.subject.id, data.sequence])).toEqual(
    ['pending', 'filled', 'settled'].map((status, index) => [
      `deposit-address.${status}`,
      `deposit-address:${address.toLowerCase()}`,
      index + 1,
    ]),
  );
  expect(hook.events[0]?.data.record.id).toBe(`deposit-address:${address}`);
});

test('a transfer that moves on after its own tracking has ended is reported as long as its transaction is polled', async () => {
  const nowSeconds = Math.floor(Date.now() / 1_000);
  // A filled transfer is polled by itself for a week.
  let state = intentRecord(HASH, 'filled', nowSeconds - 8 * 86_400);
  let polls = 0;
  const upstream = await started(
    new ScriptedUpstream(({ query }) => {
      if (query.intentHash !== undefined) polls += 1;
      return { records: [state] };
    }),
  );
  const hook = await started(new TestReceiver());
  const { daemon } = await startDaemon({
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url } },
    subscriptions: [{ name: 's', sourceTxs: [FUNDING], receivers: ['hook'] }],
  });
  later(() => daemon.close());
  await hook.until((events) => events.length === 1);
  await eventually('a poll of its own', () => polls > 0);
  state = intentRecord(HASH, 'settled', nowSeconds);
  await hook.until((events) => events.length === 2);
  expect(hook.events.map(({ type, data }) => [type, data.sequence])).toEqual([
    ['intent.filled', 1],
    ['intent.settled', 2],
  ]);
});
