import { Redis } from 'ioredis';
import { describe, expect, inject, test } from 'vitest';
import { intentId } from '../../src/domain/subjects/subject.ts';
import { pollOpenStatus } from '../../src/pollers/poll-subject.ts';
import type { SignalMap } from '../../src/signals.ts';
import { Keys } from '../../src/store/keys.ts';
import { openStatusMember } from '../../src/store/plan-members.ts';
import { UpstreamFailure } from '../../src/upstream/client/failure.ts';
import { OpenQuotesClient } from '../../src/upstream/client/open-quotes-client.ts';
import { signalled, startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { newSandbox } from '../support/deployment.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { orderAt } from '../support/sandbox-order.ts';
import { hashOf, type Scripted, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const TOKEN = 'an-admin-token-of-32-characters-x';

type Setup = {
  baseUrl: string;
  quotesUrl: string;
  statusSource?: string;
  intents?: string[];
  hook: TestReceiver;
  prefix?: string;
};

async function startOn({ baseUrl, quotesUrl, hook, prefix, intents, statusSource = 'open' }: Setup) {
  const { daemon, signals } = await startDaemon({
    baseUrl,
    redisUrl: inject('redisUrl'),
    prefix: prefix ?? testPrefix(),
    receivers: { hook: { url: hook.url, more: { ordering: 'subject', events: ['intent.*'] } } },
    subscriptions: [{ name: 'one', intents: intents ?? [hashOf(1)], receivers: ['hook'] }],
    more: {
      // Without a key.
      upstream: { baseUrl, quotesUrl, statusSource, openStatusRequestsPerSecond: 100, timeout: '2m' },
      polling: { shortestWait: '1s', longestWait: '1s' },
      server: { host: '127.0.0.1', port: 0, tokens: { admin: TOKEN } },
    },
  });
  later(() => daemon.close());
  return { daemon, signals };
}

function polled(
  signals: Awaited<ReturnType<typeof startOn>>['signals'],
  endpointGroup: string,
  outcome: string,
) {
  return signalled<SignalMap['poll.ended'][0]>(
    (take) => signals.on('poll.ended', take),
    (poll) => poll.endpointGroup === endpointGroup && poll.outcome === outcome,
  );
}

describe('the open source alone', () => {
  test('leads a transfer from its funding to a webhook of its fill, without a key and without v1', async () => {
    const sandbox = await started(newSandbox({ transfersPerSecond: 0, timeScale: 10 }));
    const hook = await started(new TestReceiver());
    const { intentHash } = await orderAt(sandbox, { fate: 'settled' });
    await startOn({ baseUrl: sandbox.url, quotesUrl: sandbox.quotesUrl, intents: [intentHash], hook });
    await hook.until((events) => events.some(({ type }) => type === 'intent.filled'));

    const statuses = hook.events.filter(({ type }) => type !== 'intent.updated');
    expect(['intent.pending', 'intent.filled']).toEqual(
      expect.arrayContaining(statuses.map(({ type }) => type)),
    );
    expect(statuses.at(-1)?.data).toMatchObject({
      subject: { id: `intent:${intentHash}` },
      record: {
        status: 'filled',
        open: { status: { Completed: 'Fulfilled' }, fulfillment: { chainId: 10 } },
      },
    });
    const paths = new Set(sandbox.requests().map(({ path }) => path));
    expect(paths).toContain('/api/v3/intents/intentStatus');
    expect(paths).not.toContain('/v1/intents/status');
  });

  test('follows a transfer to its refund', async () => {
    const sandbox = await started(newSandbox({ transfersPerSecond: 0, timeScale: 2_000 }));
    const hook = await started(new TestReceiver());
    const { intentHash } = await orderAt(sandbox, { fate: 'refunded' });
    await startOn({ baseUrl: sandbox.url, quotesUrl: sandbox.quotesUrl, intents: [intentHash], hook });
    const events = await hook.until((all) => all.some(({ type }) => type === 'intent.refunded'));
    expect(events.at(-1)?.data.record.open).toMatchObject({ status: { Completed: 'Refunded' } });
  });

  test('refuses to track what v1 alone knows, by the API, and tracks an intent', async () => {
    const quoting = await started(new ScriptedUpstream(() => ({ status: 404, body: '{}' })));
    const hook = await started(new TestReceiver());
    const { daemon } = await startOn({ baseUrl: quoting.url, quotesUrl: quoting.url, hook });
    const track = async (body: object) => {
      const response = await fetch(`${daemon.url}/api/v1/subjects`, {
        method: 'POST',
        headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
        body: JSON.stringify({ receivers: [], ...body }),
      });
      return [response.status, ((await response.json()) as { detail?: string }).detail ?? null];
    };
    const uuid = '3f0a5c1e-6b1d-4c7e-9a43-0d3f6f3e2b11';
    const address = '0x52908400098527886e0f7030069857d2e4169ee7';
    for (const [kind, id] of [
      ['wallet', address],
      ['source-tx', hashOf(3)],
      ['destination-tx', hashOf(3)],
      ['quote', uuid],
      ['gasless', uuid],
    ]) {
      const found = `body.kind: found ${kind} beside upstream.statusSource: open, expected an intent, `;
      expect(await track({ kind, id })).toEqual([400, expect.stringContaining(found)]);
    }
    expect(await track({ quote: { id: `quote:${uuid}` } })).toEqual([
      400,
      expect.stringContaining('body.quote: found a quote beside upstream.statusSource: open'),
    ]);
    expect(await track({ kind: 'gasless', id: 'job-1', endpoint: 'gateway' })).toEqual([201, null]);
    expect(await track({ kind: 'vault', id: address, chainId: 8453 })).toEqual([201, null]);
    expect(await track({ kind: 'intent', id: hashOf(3) })).toEqual([201, null]);
  });
});

describe('a poll of the open source', () => {
  const intent = intentId(hashOf(1));

  async function poll(answer: Scripted) {
    const quoting = await started(new ScriptedUpstream(() => answer));
    const client = new OpenQuotesClient({ quotesUrl: quoting.url, timeoutMs: 60_000 });
    later(() => client.close());
    return pollOpenStatus(client, intent, new AbortController().signal);
  }

  const ok = (data: object): Scripted => ({ status: 200, body: JSON.stringify({ data }) });

  test('has the word of v1 as the status, the answer as it came, and no time', async () => {
    const data = { status: { Completed: 'Fulfilled' }, intentHash: hashOf(1), fulfillment: { id: '7' } };
    const { records } = await poll(ok(data));
    expect(records).toMatchObject([
      { subject: intent, status: 'filled', updatedAt: null, raw: { status: 'filled', open: data } },
    ]);
    expect((await poll({ ...ok(data), status: 201 })).records).toEqual(records);
    const queued = await poll(ok({ status: { Pending: 'Queued' } }));
    expect(queued.records[0]?.status).toBe('Queued');
  });

  test.each([
    '{"statusCode":404}',
    '',
    '{"message":"intent not found"}',
  ])('takes 404 with %j for an intent that is not indexed yet', async (body) => {
    expect((await poll({ status: 404, body })).records).toMatchObject([{ status: 'unknown' }]);
  });

  test.each([
    [404, '{"statusCode":404,"message":"Cannot POST /api/v3/intents/intentStatus"}'],
    [404, '<html>not found</html>'],
    [404, '{"validationErrors":[{"field":"path","message":"does not exist"}]}'],
    [200, JSON.stringify({ data: { status: { Completed: 'Fulfilled' }, intentHash: hashOf(2) } })],
    [200, '{"data":null}'],
    [200, '{"data":{"status":null}}'],
    [401, '{}'],
    [503, '{}'],
  ])('fails by %i with %s, and reports no status', async (status, body) => {
    await expect(poll({ status, body })).rejects.toBeInstanceOf(UpstreamFailure);
  });
});

describe('another source after a restart', () => {
  test('continues with the transfers in the plan of that source, and loses none', async () => {
    const prefix = testPrefix();
    const intent = intentId(hashOf(1));
    const record = { id: intent, type: 'intent', status: 'pending', updatedAt: 1_763_638_259 };
    const open = { status: { Pending: 'WaitingToFulfill' } };
    const upstream = await started(
      new ScriptedUpstream(({ path }) =>
        path.startsWith('/api/')
          ? { status: 200, body: JSON.stringify({ data: open }) }
          : { records: [record] },
      ),
    );
    const redis = new Redis(inject('redisUrl'));
    later(() => redis.quit());
    const keys = new Keys(prefix);
    const planned = async () => {
      const [v1, alone, second] = await Promise.all([
        redis.hexists(`${keys.plan('status')}:items`, intent),
        redis.hexists(`${keys.plan('open-status')}:items`, intent),
        redis.hexists(`${keys.plan('open-status')}:items`, openStatusMember(intent)),
      ]);
      return { v1, alone, second };
    };
    const hook = await started(new TestReceiver());
    for (const [statusSource, expected] of [
      ['v1', { v1: 1, alone: 0, second: 0 }],
      ['both', { v1: 1, alone: 0, second: 1 }],
      ['open', { v1: 0, alone: 1, second: 0 }],
      ['both', { v1: 1, alone: 0, second: 1 }],
      ['v1', { v1: 1, alone: 0, second: 0 }],
    ] as const) {
      const { daemon, signals } = await startOn({
        baseUrl: upstream.url,
        quotesUrl: upstream.url,
        hook,
        prefix,
        statusSource,
      });
      await polled(signals, statusSource === 'open' ? 'open-status' : 'status', 'answered');
      await hook.until((events) => events.some(({ type }) => type === 'intent.pending'));
      await eventually(`the plans of ${statusSource}`, async () => {
        return JSON.stringify(await planned()) === JSON.stringify(expected);
      });
      await daemon.close();
    }
    expect(hook.events.filter(({ type }) => type === 'intent.pending')).toHaveLength(1);
    expect(hook.events.every(({ data }) => data.regression === undefined)).toBe(true);
  });
});
