import { Redis } from 'ioredis';
import { describe, expect, inject, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { gatewayJobId } from '../../src/domain/subjects/subject.ts';
import { Keys } from '../../src/store/keys.ts';
import { signalled, startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, type Scripted, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const VAULT = '0x1111111111111111111111111111111111111111';
const WALLET = '0x2222222222222222222222222222222222222222';
const CHAIN = 8453;
const NOW = Math.floor(Date.now() / 1_000) + 60;

/** Number of answers of the lagging replica before the subject moves on. */
const LAGGING_ANSWERS = 4;

/** Statuses of no table are polled every 30 s: so the first state is one, and the second is polled often. */
type Case = {
  name: string;
  watched: object;
  types: string[];
  states: Scripted[];
};

const data = (record: JsonObject): Scripted => ({ status: 200, body: JSON.stringify({ data: record }) });
const job = (status: string): Scripted => data({ id: 'job-1', status, amount: `${status.length}` });
const vault = (state: string): Scripted => data({ vaultAddress: VAULT, state, amount: '5' });
const intent = (status: string, more: JsonObject): Scripted => ({
  records: [intentRecord(hashOf(1), status, NOW, more)],
});

const CASES: Case[] = [
  {
    name: 'a gasless job at the gateway',
    watched: { gaslessJobs: [{ id: 'job-1', endpoint: 'gateway' }] },
    states: [job('QUEUED'), job('PERMIT_SENT'), job('COMPLETED')],
    types: ['gasless.queued', 'gasless.permit_sent', 'gasless.completed'],
  },
  {
    name: 'a vault',
    watched: { vaults: [{ address: VAULT, chainId: CHAIN }] },
    states: [vault('SWEEPING'), vault('FUNDING_DETECTED'), vault('PUBLISHED')],
    types: ['vault.sweeping', 'vault.funding_detected', 'vault.published'],
  },
  {
    name: 'a transfer on the pages of its wallet, in a member',
    watched: { wallets: [WALLET], history: 'emit' },
    states: [
      intent('pending', { note: 'first' }),
      intent('pending', { note: 'second' }),
      intent('filled', { note: 'second' }),
    ],
    types: ['intent.pending', 'intent.updated', 'intent.filled'],
  },
];

describe('one of two replicas that lags', () => {
  test.each(CASES)('makes no webhook: $name', async ({ watched, states, types }) => {
    let current = 0;
    let lagging = 0;
    let requests = 0;
    const enough = Promise.withResolvers<void>();
    const upstream = await started(
      new ScriptedUpstream(() => {
        requests += 1;
        const isLate = current === 1 && requests % 2 === 0;
        if (isLate) lagging += 1;
        if (lagging >= LAGGING_ANSWERS) enough.resolve();
        return states[isLate ? 0 : current] ?? { records: [] };
      }),
    );
    const hook = await started(new TestReceiver());
    const { daemon } = await startDaemon({
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', ...watched, receivers: ['hook'] }],
    });
    later(() => daemon.close());
    for (current = 0; current < states.length; current += 1) {
      await hook.until((events) => events.some(({ type }) => type === types[current]));
      if (current === 1) await enough.promise;
    }
    expect(hook.events.map(({ type, data: { sequence } }) => [type, sequence])).toEqual(
      types.map((type, index) => [type, index + 1]),
    );
  });
});

describe('a snapshot without former values', () => {
  test('is read, and has them from then on', async () => {
    let answer = job('PENDING');
    const upstream = await started(new ScriptedUpstream(() => answer));
    const hook = await started(new TestReceiver());
    const [redisUrl, prefix] = [inject('redisUrl'), testPrefix()];
    const { daemon, signals } = await startDaemon({
      baseUrl: upstream.url,
      redisUrl,
      prefix,
      receivers: { hook: { url: hook.url } },
      subscriptions: [
        { name: 's', gaslessJobs: [{ id: 'job-1', endpoint: 'gateway' }], receivers: ['hook'] },
      ],
    });
    later(() => daemon.close());
    await hook.until((events) => events.length === 1);
    const redis = new Redis(redisUrl);
    later(async () => redis.disconnect());
    expect(await redis.hexists(new Keys(prefix).subject(gatewayJobId('job-1')), 'former')).toBe(0);
    answer = job('BROADCASTING');
    await hook.until((events) => events.length === 2);
    const doubted = signalled(
      (take: (value: { reason: string | null }) => void) => signals.on('record.decided', take),
      ({ reason }) => reason === 'returned',
    );
    answer = job('PENDING');
    await doubted;
    expect(hook.events).toHaveLength(2);
  });
});
