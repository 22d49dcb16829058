import { describe, expect, inject, test } from 'vitest';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { type Scripted, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const JOB = '3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41';
const VAULT = '0x52908400098527886e0f7030069857d2e4169ee7';
const ERROR = 'the permit was refused: allowance 0';

async function watching(answer: (path: string) => Scripted) {
  const upstream = await started(new ScriptedUpstream(({ path }) => answer(path)));
  const hook = await started(new TestReceiver());
  const { daemon } = await startDaemon({
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url, more: { events: ['*', 'upstream.*'] } } },
    subscriptions: [
      {
        name: 's',
        gaslessJobs: [{ id: JOB, endpoint: 'gateway' }],
        vaults: [{ address: VAULT, chainId: 8453 }],
        receivers: ['hook'],
      },
    ],
  });
  later(() => daemon.close());
  return { upstream, hook };
}

const data = (record: JsonObject): Scripted => ({ status: 200, body: JSON.stringify({ data: record }) });
const isJob = (path: string): boolean => path.includes('/jobs/');
const facts = ({ type, data: { status, record } }: RenderedEvent): unknown[] => [
  type,
  status,
  record.error ?? null,
];

describe('a record of the deposit gateway', () => {
  test.each<[string, JsonObject, JsonObject]>([
    ['without id', { status: 'FAILED', error: ERROR }, { state: 'FAILED' }],
    [
      'with null as id',
      { id: null, status: 'FAILED', error: ERROR },
      { vaultAddress: null, state: 'FAILED' },
    ],
    [
      'with its id in another form',
      { id: `gasless:${JOB}`, status: 'FAILED', error: ERROR },
      { vaultAddress: `vault:${VAULT}`, state: 'FAILED' },
    ],
    [
      'with its id in another case',
      { id: JOB.toUpperCase(), status: 'FAILED', error: ERROR },
      { vaultAddress: VAULT.toUpperCase(), state: 'FAILED' },
    ],
    ['with a number as id', { id: 7, status: 'FAILED', error: ERROR }, { vaultAddress: 7, state: 'FAILED' }],
  ])('%s is the one that was requested', async (_, job, vault) => {
    const { hook } = await watching((path) => data(isJob(path) ? job : vault));
    const events = await hook.until((all) => all.length >= 2);
    expect(events.map(facts).sort()).toEqual([
      ['gasless.failed', 'FAILED', ERROR],
      ['vault.failed', 'FAILED', null],
    ]);
    expect(events.map(({ data: { subject } }) => subject.id).sort()).toEqual([
      `gasless:gateway:${JOB}`,
      `vault:8453:${VAULT}`,
    ]);
  });

  test('without status is reported, retains its status, and moves on from there', async () => {
    const vaults: JsonObject[] = [{ amount: '5' }, { state: 'PENDING', amount: '5' }];
    const jobs: JsonObject[] = [
      { id: JOB, amount: '5' },
      { id: JOB, status: 'PENDING' },
      { id: JOB, error: ERROR },
      { status: 'FAILED' },
    ];
    let step = 0;
    const { hook } = await watching((path) => {
      const [job, vault] = [jobs[step], vaults[Math.min(step, 1)]];
      return data((isJob(path) ? job : vault) ?? {});
    });
    for (const count of [2, 4, 5, 6]) {
      await hook.until((all) => all.length >= count);
      step += 1;
    }
    const of = (kind: string) => hook.events.filter(({ type }) => type.startsWith(kind)).map(facts);
    expect(of('gasless.')).toEqual([
      ['gasless.updated', '', null],
      ['gasless.pending', 'PENDING', null],
      ['gasless.error', 'PENDING', ERROR],
      ['gasless.failed', 'FAILED', ERROR],
    ]);
    expect(of('vault.')).toEqual([
      ['vault.updated', '', null],
      ['vault.pending', 'PENDING', null],
    ]);
    expect(of('upstream.')).toEqual([]);
  });

  test('of another job, another vault or nothing at all is no news', async () => {
    const wrong: JsonObject[] = [
      { id: 'another', status: 'FAILED', vaultAddress: `0x${'9'.repeat(40)}`, state: 'FAILED' },
      { message: 'ok' },
      { id: 'another', vaultAddress: VAULT, state: 'FAILED', sourceChainId: 10 },
      { id: 'another', vaultAddress: VAULT, state: 'FAILED', sourceChainId: 10 },
      { id: 'another', vaultAddress: VAULT, state: 'FAILED', sourceChainId: 10 },
      {},
    ];
    const { hook, upstream } = await watching((path) => {
      const record = wrong.shift() ?? { state: 'PENDING', status: 'PENDING' };
      return data(isJob(path) ? record : { ...record, id: '' });
    });
    await upstream.awaitRequest(() => wrong.length === 0);
    const events = await hook.until(
      (all) => all.filter(({ type }) => !type.startsWith('upstream.')).length >= 2,
    );
    const reported = events.map(({ type }) => type).filter((type) => !type.startsWith('upstream.'));
    expect(reported.sort()).toEqual(['gasless.pending', 'vault.pending']);
  });
});
