import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { JsonValue } from '../../src/domain/json.ts';
import { asSubjectId } from '../../src/domain/subjects/subject.ts';
import { Signals } from '../../src/signals.ts';
import { connect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { firstEpoch } from '../support/epoch.ts';
import { eventually } from '../support/eventually.ts';
import { SEED } from '../support/fast-check-seed.ts';
import { opening } from '../support/opening.ts';
import { changes, mutated, type RecordedChange } from '../support/recorded-mutations.ts';
import { bestOutput, isOtherContent, openOffer, signedContent, v1Offer } from '../support/recorded-oracle.ts';
import {
  gatewayPlace,
  leaves,
  type RecordedPlace,
  statusPlace,
  statusTruth,
} from '../support/recorded-places.ts';
import {
  chainList,
  hash,
  isObject,
  openAnswer,
  PRICED,
  quoteAnswer,
  uuid,
  vaultAddressOf,
} from '../support/recorded-shape.ts';
import { type ScriptedRequest, ScriptedUpstream } from '../support/scripted-upstream.ts';
import { QUOTE_SIGNER } from '../support/signed-quote.ts';

const { later, started } = opening();

/** Addresses of each kind; a wallet's page has so many records, and each changed answer changes all of them. */
const WALLETS = 12;
const PAGE = 40;
const SINGLES = 12;
const PRICES = 15;

/** Changed answers of each step but the last of a subject that is polled alone: after it, polls are rare. */
const TIMES = 3;

const all = fc.sample(changes, {
  seed: SEED,
  numRuns: WALLETS * PAGE * TIMES * 3 + SINGLES * TIMES * 10 + PRICES * 4,
});
const draw = (): RecordedChange[] => all.pop() ?? [];

/** Each step: changed answers first, which may be the only ones that state it in time, then the healthy one. */
function planOf(records: number, timesAt: (step: number) => number) {
  return [0, 1, 2].flatMap((step) => [
    ...Array.from({ length: timesAt(step) }, () => ({
      step,
      changes: Array.from({ length: records }, draw),
    })),
    { step, changes: [] },
  ]);
}

const ofPages = (): ReturnType<typeof planOf> => planOf(PAGE, (step) => (step === 0 ? 0 : TIMES));
const ofSingles = (): ReturnType<typeof planOf> => planOf(1, (step) => (step === 1 ? TIMES : 0));

/** Prices of a route: each answer is changed but the first, and the outputs that they offer. */
class PricePlace {
  readonly outputs: string[] = [];
  readonly #healthy: Parameters<typeof mutated>[0];
  readonly #offered: (body: JsonValue) => string | null;
  #left = PRICES;

  constructor(healthy: Parameters<typeof mutated>[0], offered: (body: JsonValue) => string | null) {
    this.#healthy = healthy;
    this.#offered = offered;
  }

  get isDone(): boolean {
    return this.#left === 0;
  }

  answer(): JsonValue {
    if (this.#left > 0) this.#left -= 1;
    const isChanged = this.outputs.length > 0 && this.#left > 0;
    const body = isChanged ? mutated(this.#healthy, draw()) : this.#healthy;
    const output = this.#offered(body);
    if (output !== null && output !== this.outputs.at(-1)) this.outputs.push(output);
    return body;
  }
}

const { source, destination, amount, funder, recipient } = PRICED;

async function prices(): Promise<{ v1: PricePlace; open: PricePlace }> {
  const healthy = await quoteAnswer();
  const quotes = Array.isArray(healthy.quotes) ? healthy.quotes : [];
  const signed = new Set(quotes.flatMap((quote) => (isObject(quote) ? (signedContent(quote) ?? []) : [])));
  const requested = {
    source: { ...source, funder, amount },
    destination: { ...destination, recipient },
    signed,
  };
  const v1 = new PricePlace(healthy, (body) => {
    // Without the signed members at the top there is no quote.
    if (!isObject(body) || signedMembers(body) === null) return null;
    return bestOutput([body, ...(Array.isArray(body.quotes) ? body.quotes : [])], (one) =>
      v1Offer(one, requested),
    );
  });
  const open = new PricePlace(openAnswer(), (body) => {
    const data = isObject(body) && Array.isArray(body.data) ? body.data : [];
    return bestOutput(data, (entry) =>
      openOffer(entry, {
        sourceAmount: amount,
        sourceChainID: source.chainId,
        finalDestinationChainID: destination.chainId,
        sourceToken: source.token,
        destinationToken: destination.token,
        funder,
        recipient,
      }),
    );
  });
  return { v1, open };
}

/** Null where a member is missing without which no quote is read; the steps alone may be damaged. */
function signedMembers(body: Parameters<typeof signedContent>[0]): string | null {
  return signedContent({ ...body, steps: [] });
}

const walletOf = (index: number): string => vaultAddressOf(0x70_00 + index);

function addressOf({ path, query }: ScriptedRequest): string {
  if (path.includes('/vaults/')) return query.id ?? path.split('/').at(-1)?.toLowerCase() ?? '';
  return (query.wallet ?? query.intentHash ?? query.quoteId ?? query.jobId ?? '').toLowerCase();
}

test(`changed answers in the recorded shape (seed ${SEED}) lose no event in a daemon, invent none, and are counted`, async () => {
  const fromSeconds = Math.floor(Date.now() / 1_000) + 10;
  const places = new Map<string, RecordedPlace>();
  for (let index = 0; index < WALLETS; index += 1) {
    const truths = Array.from({ length: PAGE }, (_, at) =>
      statusTruth(
        at % 5 === 4 ? 'deposit-address' : 'intent',
        0x10_0000 + (index * PAGE + at) * 16,
        fromSeconds,
      ),
    );
    places.set(walletOf(index), statusPlace('wallet', truths, ofPages()));
  }
  const named = { intents: [] as string[], gaslessJobs: [] as (string | object)[], vaults: [] as object[] };
  for (let index = 0; index < SINGLES; index += 1) {
    const number = 0x40_0000 + index * 64;
    named.intents.push(hash(number));
    places.set(
      hash(number),
      statusPlace('intent', [statusTruth('intent', number, fromSeconds)], ofSingles()),
    );
    named.gaslessJobs.push(uuid(number + 16), { id: uuid(number + 32), endpoint: 'gateway' });
    places.set(
      uuid(number + 16),
      statusPlace('gasless', [statusTruth('gasless', number + 16, fromSeconds)], ofSingles()),
    );
    places.set(uuid(number + 32), gatewayPlace('job', number + 32, ofSingles()));
    named.vaults.push({ address: vaultAddressOf(number + 48), chainId: 8453 });
    places.set(vaultAddressOf(number + 48), gatewayPlace('vault', number + 48, ofSingles()));
  }
  const { v1, open } = await prices();
  const json = (status: number, body: JsonValue) => ({ status, body: JSON.stringify(body) });
  const upstream = await started(
    new ScriptedUpstream(
      (request) => {
        if (request.path === '/v1/chains') return json(200, chainList(QUOTE_SIGNER.address));
        if (request.path === '/v1/tokens') return json(200, { tokens: [] });
        if (request.path === '/v1/quotes') return json(200, v1.answer());
        if (request.path === '/api/v3/quotes/exactIn') return json(201, open.answer());
        // A page of one status is read beside the first page; it is empty, so that only one answer at a time is true.
        if (request.query.status !== undefined) return json(200, { results: [], nextCursor: null });
        const place = places.get(addressOf(request));
        // Transfers that only their wallet shows are never found by themselves.
        return place === undefined ? { status: 503, body: '' } : json(200, place.answer());
      },
      { lists: true },
    ),
  );
  const hook = await started(new TestReceiver());
  const prefix = testPrefix();
  const errors: string[] = [];
  const route = { name: 'r', movedBy: 0.0001, every: '1s', ...PRICED };
  const signals = new Signals();
  const committed = new Set<string>();
  signals.on('event.committed', ({ event }) => committed.add(event.id));
  const { daemon } = await startDaemon(
    {
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix,
      receivers: { hook: { url: hook.url, more: { concurrency: 20 } } },
      subscriptions: [
        {
          name: 'wallets',
          wallets: Array.from({ length: WALLETS }, (_, at) => walletOf(at)),
          receivers: ['hook'],
        },
        { name: 'named', ...named, receivers: ['hook'] },
        { name: 'prices', routes: [route, { ...route, name: 'v', service: 'v1' }], receivers: ['hook'] },
      ],
      upstream: {
        quotesUrl: upstream.url,
        // Every answer is read: the upstream could not see that one came too late.
        timeout: '60s',
        requestsPerSecond: 500,
        gatewayRequestsPerSecond: 200,
        quotesRequestsPerSecond: 50,
        partnerQuotesRequestsPerSecond: 50,
        gateway: { prefix: 'vaults', generation: 'current' },
      },
    },
    (line) => {
      if (/"msg":"(poll\.error|poll\.crashing|record\.not_stored|reconcile\.error)"/.test(line))
        errors.push(line);
    },
    signals,
  );
  later(() => daemon.close());
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(async () => redis.disconnect());
  const keys = new Keys(prefix);
  const subjects = new SubjectStore(redis, keys, { epoch: firstEpoch(redis, keys) });
  const truths = [...places.values()].flatMap((place) => place.truths.map((truth) => ({ truth, place })));
  const statesOf = async () => subjects.readEach(truths.map(({ truth }) => asSubjectId(truth.subject)));
  const isTrue = (
    state: Awaited<ReturnType<typeof statesOf>>[number] | undefined,
    index: number,
  ): boolean => {
    const last = truths[index]?.truth.records.at(-1) ?? {};
    const status = String(last.status ?? last.state).toLowerCase();
    const stated = { status, updatedAt: null, record: last, unreadable: [] };
    const { snapshot = null } = state ?? {};
    return (
      snapshot?.status.toLowerCase() === status && !isOtherContent(snapshot.record, stated, { isNewer: true })
    );
  };
  await eventually(
    'all answers were given, and the state of each subject is the truth',
    async () => {
      const isServed = [...places.values(), v1, open].every(({ isDone }) => isDone);
      return isServed && (await statesOf()).every(isTrue);
    },
    1_500_000,
  );
  await daemon.stopPolling();
  const received = await hook.until((events) => committed.isSubsetOf(new Set(events.map(({ id }) => id))));

  const events = [...new Map(received.map((event) => [event.id, event])).values()];
  const bySubject = Map.groupBy(
    events.filter(({ id }) => committed.has(id)),
    (event) => event.data.subject.id,
  );
  for (const { truth, place } of truths) {
    const sequence = (bySubject.get(truth.subject) ?? []).toSorted(
      (a, b) => a.data.sequence - b.data.sequence,
    );
    expectLife(sequence, truth, place.stated.get(truth.subject) ?? []);
  }
  const reported = (subject: string) =>
    (bySubject.get(subject) ?? [])
      .toSorted((a, b) => a.data.sequence - b.data.sequence)
      .map(({ data }) => data.record.output);
  expect(reported('route:r')).toEqual(open.outputs);
  expect(reported('route:v1:v')).toEqual(v1.outputs);
  expect(bySubject.size).toBe(truths.length + 2);
  expect(errors).toEqual([]);

  const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
  for (const [kind, ofKind] of Map.groupBy(places.values(), (place) => place.kind)) {
    const [, counted] = new RegExp(`records_unreadable_total\\{kind="${kind}"\\} (\\d+)`).exec(metrics) ?? [];
    const due = ofKind.reduce((sum, { counts }) => sum + counts.unreadable, 0);
    expect([kind, Number(counted)]).toEqual([kind, due]);
  }
  const changed = [...places.values()].reduce((sum, { counts }) => sum + counts.records, 0);
  expect(changed).toBeGreaterThanOrEqual(WALLETS * PAGE * TIMES * 2);
}, 1_800_000);

/** Compares the events of a subject with its truths and with all that was stated of it. */
function expectLife(
  sequence: readonly RenderedEvent[],
  { subject, records }: { subject: string; records: readonly Parameters<typeof leaves>[0][] },
  stated: readonly { record: Parameters<typeof isOtherContent>[0] }[],
): void {
  const words = sequence.map(({ data }) => (data.status ?? '').toLowerCase());
  const moves = words.filter((word, at) => word !== words[at - 1]);
  const due = records.flatMap((record) =>
    isObject(record) ? String(record.status ?? record.state).toLowerCase() : [],
  );
  expect([subject, ...moves]).toEqual([subject, ...new Set(due)]);
  const shown = new Set(stated.flatMap(({ record }) => leaves(record)));
  sequence.forEach(({ data }, at) => {
    const before = sequence[at - 1]?.data;
    const invented = leaves(data.record).filter((leaf) => !shown.has(leaf));
    expect([subject, ...invented]).toEqual([subject]);
    if (before === undefined || words[at - 1] !== words[at]) return;
    const answer = { status: '', updatedAt: null, record: data.record, unreadable: [] };
    expect(isOtherContent(before.record, answer, { isNewer: true }), `${subject} ${data.changes}`).toBe(true);
  });
  for (const record of records) {
    if (!isObject(record)) continue;
    const truth = { status: '', updatedAt: null, record, unreadable: [] };
    const shown = sequence.some(({ data }) => !isOtherContent(data.record, truth, { isNewer: true }));
    expect([subject, shown]).toEqual([subject, true]);
  }
}
