import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { SEED } from '../support/fast-check-seed.ts';
import {
  MUTATIONS,
  type Mutation,
  mangled,
  ofLookup,
  ofPage,
  type Right,
  type Sent,
} from '../support/mutations.ts';
import { opening } from '../support/opening.ts';
import { hashOf, type ScriptedRequest, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

/** Number of mutated answers to the daemon; `FUZZ_RUNS` sets another. */
const RUNS = Number(process.env.FUZZ_RUNS ?? 400);

const PER_STEP = 2;

const ADDRESS = '0x52908400098527886e0f7030069857d2e4169ee7';
const WALLETS = ['0x1', '0x2', '0x3', '0x4'].map((digits) => `0x${digits.slice(2).padStart(40, 'a')}`);
const PAGE = 10;

/** The truth about a subject: its record after each step; the last step is final. */
type Truth = { subject: string; at: (step: number) => Right; statusAt: (step: number) => string };

/** An address of requests: the truths that its answers show, and the remaining answers. */
type Place = {
  truths: Truth[];
  plan: { step: number; mutation: Mutation | null }[];
  last: number;
};

const list = (records: readonly string[]): string => `{"results":[${records.join(',')}],"nextCursor":null}`;
const envelope = (records: readonly string[]): string => `{"data":${records[0] ?? 'null'}}`;

function intent(number: number, timesFrom: number, steps: number): Truth {
  const hash = hashOf(number);
  const statusAt = (step: number): string => (step === steps ? 'filled' : 'pending');
  return {
    subject: `intent:${hash}`,
    statusAt,
    at: (step) => ({
      core: ['id', 'type', 'status'],
      wrap: list,
      isList: true,
      stranger: {
        id: `intent:${hashOf(number + 1)}`,
        type: 'intent',
        status: 'settled',
        updatedAt: timesFrom + 900,
      },
      record: {
        id: `intent:${hash}`,
        type: 'intent',
        status: statusAt(step),
        updatedAt: timesFrom + step,
        txHash: hashOf(1_000_000 + number),
        sourceTx: {
          chainId: 8453,
          txHash: hashOf(2_000_000 + step),
          token: ADDRESS,
          amount: `${step}000001`,
        },
        steps: [
          {
            type: 'BRIDGE',
            intentHash: hash,
            status: 'CREATED',
            from: { token: ADDRESS, amount: '1', chainId: 8453 },
            to: { token: ADDRESS, amount: '1', chainId: 10 },
            transactions: { created: { chainId: 8453, txHash: hashOf(2_000_000 + step) } },
          },
        ],
      },
    }),
  };
}

function job(number: number, timesFrom: number, steps: number): Truth {
  const id = `gasless:${uuid(number)}`;
  const statusAt = (step: number): string =>
    step === steps ? 'published' : step % 2 === 0 ? 'pending' : 'submitted';
  return {
    subject: id,
    statusAt,
    at: (step) => ({
      core: ['id', 'type', 'status'],
      wrap: list,
      isList: true,
      stranger: {
        id: `gasless:${uuid(number + 1)}`,
        type: 'gasless',
        status: 'failed',
        updatedAt: timesFrom + 900,
      },
      record: {
        id,
        type: 'gasless',
        status: statusAt(step),
        updatedAt: timesFrom + step,
        subStatuses: [
          {
            chainId: 8453,
            quoteIds: [`quote:${uuid(9)}`],
            txHash: hashOf(step),
            intentHashes: [],
            state: statusAt(step),
          },
        ],
      },
    }),
  };
}

function vault(number: number): Truth {
  const vaultAddress = `0x${number.toString(16).padStart(40, '0')}`;
  const statusAt = (step: number): string => ['PENDING', 'FUNDING_DETECTED', 'PUBLISHED'][step] ?? '';
  return {
    subject: `vault:8453:${vaultAddress}`,
    statusAt,
    at: (step) => ({
      core: ['vaultAddress', 'state'],
      wrap: envelope,
      isList: false,
      stranger: {
        vaultAddress: ADDRESS,
        state: 'FAILED',
        amount: '1',
        deadline: 9_000_000_000,
        sourceChainId: 8453,
      },
      record: {
        vaultAddress,
        state: statusAt(step),
        amount: '1000000',
        deadline: 9_000_000_000,
        sourceChainId: 8453,
      },
    }),
  };
}

function uuid(number: number): string {
  return `00000000-0000-4000-8000-${number.toString(16).padStart(12, '0')}`;
}

/** Each step is answered correctly once, then some mutated answers follow; the last step repeats for ever. */
function plan(truths: Truth[], steps: number, mutations: Mutation[]): Place {
  const answers = Array.from({ length: steps + 1 }, (_, step) => [
    { step, mutation: null },
    ...mutations.splice(0, step === steps ? 0 : PER_STEP).map((mutation) => ({ step, mutation })),
  ]);
  return { truths, plan: answers.flat(), last: steps };
}

function placeOf({ path, query }: ScriptedRequest): string {
  if (path.startsWith('/deposit-gateway')) return path.split('/').at(-1)?.toLowerCase() ?? '';
  return (query.wallet ?? query.intentHash ?? query.jobId ?? '').toLowerCase();
}

test(`${RUNS} mutated answers (seed ${SEED}) crash nothing, lose no change and make no event of noise`, async () => {
  // Two steps are the minimum of a vault; more places allow more answers at the same time.
  const places = Math.max(60, Math.ceil(RUNS / 25));
  const longWays = (places * 5) / 6 + WALLETS.length;
  const steps = Math.max(2, Math.ceil(RUNS / longWays / PER_STEP));
  const count = (places + 10) * steps * PER_STEP;
  const lookups = fc.sample(ofLookup, { seed: SEED, numRuns: count });
  const pages = fc.sample(ofPage, { seed: SEED, numRuns: count });
  const timesFrom = Math.floor(Date.now() / 1_000) + 10;
  const byPlace = new Map<string, Place>();
  const inWallets = new Set<string>();
  for (const [index, wallet] of WALLETS.entries()) {
    const truths = Array.from({ length: PAGE }, (_, at) =>
      intent(500_000 + index * 100 + at * 2, timesFrom, steps),
    );
    for (const { subject } of truths) inWallets.add(subject.slice('intent:'.length));
    byPlace.set(wallet, plan(truths, steps, pages));
  }
  const named = { intents: [] as string[], gaslessJobs: [] as string[], vaults: [] as object[] };
  for (let index = 0; index < places; index++) {
    if (index % 6 === 5) {
      const one = vault(index + 1);
      const address = one.subject.split(':')[2] ?? '';
      named.vaults.push({ address, chainId: 8453 });
      byPlace.set(address, plan([one], 2, lookups));
    } else if (index % 3 === 2) {
      named.gaslessJobs.push(uuid(index * 2 + 100));
      byPlace.set(uuid(index * 2 + 100), plan([job(index * 2 + 100, timesFrom, steps)], steps, lookups));
    } else {
      named.intents.push(hashOf(index * 2 + 1));
      byPlace.set(hashOf(index * 2 + 1), plan([intent(index * 2 + 1, timesFrom, steps)], steps, lookups));
    }
  }

  const given = new Map<string, number>();
  const upstream = await started(
    new ScriptedUpstream((request): Sent => {
      // A page of one status is read beside the first page; it is empty, so that only one answer at a time is true.
      if (request.query.status !== undefined) return { status: 200, body: list([]) };
      const place = byPlace.get(placeOf(request));
      // Transfers that only their wallet shows are never found by themselves.
      if (place === undefined) return { status: 503, body: '' };
      const next = place.plan.shift() ?? { step: place.last, mutation: null };
      const rights = place.truths.map((truth) => truth.at(next.step));
      if (next.mutation === null) {
        const [first] = rights;
        const body = first?.wrap(rights.map(({ record }) => JSON.stringify(record))) ?? '';
        return { status: 200, body };
      }
      given.set(next.mutation.name, (given.get(next.mutation.name) ?? 0) + 1);
      return mangled(rights, next.mutation);
    }),
  );
  const hook = await started(new TestReceiver());
  const errors: string[] = [];
  const { daemon, signals } = await startDaemon(
    {
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url, more: { concurrency: 20 } } },
      subscriptions: [
        { name: 'wallets', wallets: WALLETS, receivers: ['hook'] },
        { name: 'named', ...named, receivers: ['hook'] },
      ],
      more: {
        upstream: {
          baseUrl: upstream.url,
          apiKey: 'sandbox-key',
          requestsPerSecond: 500,
          gatewayRequestsPerSecond: 200,
          timeout: '30s',
        },
      },
    },
    (line) => {
      if (/"msg":"(poll\.error|poll\.crashing|record\.not_stored|reconcile\.error)"/.test(line))
        errors.push(line);
    },
  );
  later(() => daemon.close());
  let committed = 0;
  signals.on('event.committed', () => {
    committed += 1;
  });
  const truths = [...byPlace.values()].flatMap((place) =>
    place.truths.map((truth) => ({ truth, last: place.last })),
  );
  const due = truths.reduce((sum, { last }) => sum + last + 1, 0);
  await hook.until(
    (events) => events.length >= due && [...byPlace.values()].every((place) => place.plan.length === 0),
  );
  await daemon.stopPolling();
  const events = await hook.until((all) => all.length >= committed);

  const reported = Map.groupBy(events, (event) => event.data.subject.id);
  for (const { truth, last } of truths) {
    const steps = Array.from({ length: last + 1 }, (_, step) => step);
    const sequence = (reported.get(truth.subject) ?? []).toSorted(
      (a, b) => a.data.sequence - b.data.sequence,
    );
    expect(sequence.map(({ data }) => data.status)).toEqual(steps.map(truth.statusAt));
    expect(sequence.map(({ data }): JsonObject => data.record)).toEqual(
      steps.map((step) => truth.at(step).record),
    );
  }
  expect(events.length).toBe(due);
  expect(errors).toEqual([]);
  const mutated = [...given.values()].reduce((sum, times) => sum + times, 0);
  expect(mutated).toBeGreaterThanOrEqual(RUNS);
  if (RUNS >= 400) expect([...given.keys()].toSorted()).toEqual(MUTATIONS.toSorted());
}, 1_800_000);
