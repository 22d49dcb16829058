import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/domain/json.ts';
import { USUAL_EXECUTIONS } from '../../src/domain/quotes/route.ts';
import { gatewayJobId, routeId, type SubjectId, vaultId } from '../../src/domain/subjects/subject.ts';
import { COMMON_NAMES } from '../../src/domain/transfers/chains.ts';
import { pollPartnerRoute } from '../../src/pollers/partner-route.ts';
import type { PollResponse } from '../../src/pollers/poll-response.ts';
import { pollPrice, pollRecord } from '../../src/pollers/poll-subject.ts';
import { pollRoute } from '../../src/pollers/route.ts';
import { pollWallet } from '../../src/pollers/status.ts';
import { Secret } from '../../src/secret.ts';
import { UpstreamClient } from '../../src/upstream/client/client.ts';
import { UpstreamFailure } from '../../src/upstream/client/failure.ts';
import { OpenQuotesClient } from '../../src/upstream/client/open-quotes-client.ts';
import { QuoteSigners } from '../../src/upstream/client/quote-signers.ts';
import { type CannedAnswer, type CannedServer, cannedServer } from './canned-server.ts';
import { expectOne, expectTruth, FollowedSubject, NOW_MS } from './recorded-followed.ts';
import { CHANGES, changes, mutated, type RecordedChange } from './recorded-mutations.ts';
import {
  bestOutput,
  openOffer,
  signedContent,
  statedGateway,
  statedStatus,
  v1Offer,
} from './recorded-oracle.ts';
import {
  chainList,
  ERROR_BODIES,
  FROM_SECONDS,
  gatewayJob,
  gatewayVault,
  isObject,
  isSeconds,
  NEWS,
  type News,
  openAnswer,
  PAGE_KINDS,
  PRICED,
  quoteAnswer,
  statusRecord,
  tokenList,
  uuid,
  vaultAddressOf,
} from './recorded-shape.ts';
import { QUOTE_SIGNER } from './signed-quote.ts';

const WALLET = '0x52908400098527886e0f7030069857d2e4169ee7';
const { signal } = new AbortController();

/** Paths of the deposit gateway by generation. */
const GATEWAYS = {
  legacy: {
    prefix: 'deposit-gateway',
    vaultPath: '/deposit-gateway/v2/depositAddresses/{vaultAddress}',
    jobPath: '/deposit-gateway/v1/gasless/jobs/{id}',
    chainParam: 'sourceChainId',
  },
  current: {
    prefix: 'own-vaults',
    vaultPath: '/v1/own-vaults/{vaultAddress}',
    jobPath: '/v1/own-vaults/status?id={id}',
    chainParam: 'chain',
  },
};

/** The response of a poll, or its failure; any other error fails the test. */
async function responseOf<T>(poll: Promise<T>): Promise<T | UpstreamFailure> {
  return poll.catch((error: unknown) => {
    if (error instanceof UpstreamFailure) return error;
    throw error;
  });
}

const news = fc.constantFrom<News>(...NEWS);
const context = { exact: fc.boolean(), isFirst: fc.nat(3).map((one) => one === 0) };

/**
 * Declares the tests of answers in the recorded shape that were changed at random: `total` changed answers over all readers.
 * They go over HTTP to the client and the pollers; each result is decided as a poll does.
 */
export function describeRecorded(total: number): void {
  let server: CannedServer;
  let canned: CannedAnswer = { status: 200, body: {} };
  const clients: { close(): Promise<void> }[] = [];
  const upstreams = new Map<string, UpstreamClient>();
  let open: OpenQuotesClient;

  beforeAll(async () => {
    server = await cannedServer(({ url }) =>
      url.startsWith('/signers/') ? { status: 200, body: chainList(QUOTE_SIGNER.address) } : canned,
    );
    for (const [generation, gateway] of Object.entries(GATEWAYS)) {
      upstreams.set(generation, clientAt(server.url, gateway));
    }
    open = new OpenQuotesClient({ quotesUrl: server.url, timeoutMs: 60_000 });
    clients.push(open);
  });

  afterAll(async () => {
    for (const client of clients) await client.close();
    await server.close();
  });

  function clientAt(baseUrl: string, gateway = GATEWAYS.legacy): UpstreamClient {
    const client = new UpstreamClient({ baseUrl, apiKey: new Secret('a-key'), timeoutMs: 60_000, gateway });
    clients.push(client);
    return client;
  }

  const clientOf = (generation: string): UpstreamClient => {
    const client = upstreams.get(generation);
    if (client === undefined) throw new Error(`no client of ${generation}`);
    return client;
  };

  const counted = new Map<string, number>();
  const count = (...names: string[]): void => {
    for (const name of names) counted.set(name, (counted.get(name) ?? 0) + 1);
  };

  /** Changes an answer and serves it. */
  function serve(answer: JsonObject, how: readonly RecordedChange[], status = 200): JsonValue {
    const body = mutated(answer, how);
    canned = { status, body: JSON.stringify(body) };
    count('answers', ...how.map((one) => one.how));
    return body;
  }

  const runs = (share: number): { numRuns: number } => ({ numRuns: Math.ceil(total * share) });

  describe(`${total} changed answers in the recorded shape`, () => {
    test('of the status endpoint lose no event, and none is invented', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.record({ changes, news, ...context }),
          async ({ changes: how, news: one, exact, isFirst }) => {
            const truths = PAGE_KINDS.map((kind, index) => ({
              kind,
              number: 100 + index * 10,
              first: isFirst ? null : statusRecord(kind, 100 + index * 10, null),
              next: statusRecord(kind, 100 + index * 10, one),
            }));
            const body = serve({ results: truths.map(({ next }) => next), nextCursor: null }, how);
            const page = { address: WALLET, status: null, cursor: null, limit: 50, earlier: null };
            const response = await responseOf(pollWallet(clientOf('legacy'), page, signal));
            const results = isObject(body) ? body.results : undefined;
            if (!isObject(body) || !Array.isArray(results)) {
              expect(response).toMatchObject({ code: 'malformed', httpStatus: 200 });
              count('refused');
              return;
            }
            if (response instanceof UpstreamFailure) throw response;
            const all = results.map(statedStatus);
            const { nextCursor } = body;
            const isCursor = nextCursor === null || (typeof nextCursor === 'string' && nextCursor !== '');
            const lost = all.filter((stated) => stated === null).length + (isCursor ? 0 : 1);
            expect(response.unreadable.length).toBe(lost);
            if (lost > 0) count('unreadable records');
            const stated = all.flatMap((found) => found ?? []);
            expect(response.records.length).toBe(stated.length);
            for (const { kind, number, first, next } of truths) {
              const subject = String(next.id) as SubjectId;
              const followed = new FollowedSubject(subject, first);
              const index = response.records.findIndex((record) => record.subject === subject);
              const record = response.records[index];
              const found = stated[index];
              if (record !== undefined && found !== undefined) {
                expect(String(found.record.id).toLowerCase()).toBe(subject);
                followed.answer(record, { exact });
                expectOne(followed, { before: first, stated: found, record });
                if (found.unreadable.length > 0) count('unreadable members');
                if (followed.events.length > 0) count('events');
              } else count('unread answers');
              const healthy = { ...statusRecord(kind, number, one), updatedAt: FROM_SECONDS + 20 };
              canned = { status: 200, body: { results: [healthy], nextCursor: null } };
              const later = await pollWallet(clientOf('legacy'), page, signal);
              const [truth] = later.records;
              if (truth === undefined) throw new Error('a healthy answer was not read');
              expectTruth(followed, truth, { exact, moves: isFirst || one === 'status' ? 1 : 0 });
            }
          },
        ),
        runs(0.4),
      );
    });

    test.each(
      Object.keys(GATEWAYS),
    )('of the %s gateway lose no event, and none is invented', async (generation) => {
      const client = clientOf(generation);
      await fc.assert(
        fc.asyncProperty(
          fc.record({ changes, news, kind: fc.constantFrom('job' as const, 'vault' as const), ...context }),
          async ({ changes: how, news: one, kind, isFirst }) => {
            const record = kind === 'job' ? gatewayJob : gatewayVault;
            const subject =
              kind === 'job'
                ? gatewayJobId(uuid(300))
                : vaultId({ chainId: 8453, address: vaultAddressOf(300) });
            const before = isFirst ? null : record(300, null);
            const followed = new FollowedSubject(subject, before);
            const body = serve({ data: record(300, one) }, how);
            const response = await responseOf(pollRecord(client, subject, signal));
            const stated = statedGateway(body, kind);
            if (stated === null) {
              expect(response).toMatchObject({ code: 'malformed', httpStatus: 200 });
              count('refused');
            } else {
              if (response instanceof UpstreamFailure) throw response;
              const [answered] = response.records;
              if (answered === undefined) throw new Error('nothing was read');
              followed.answer(answered, { exact: true });
              expectOne(followed, { before, stated, record: answered });
            }
            canned = { status: 200, body: { data: record(300, one) } };
            const [truth] = (await pollRecord(client, subject, signal)).records;
            if (truth === undefined) throw new Error('a healthy answer was not read');
            const first = isFirst ? 1 : 0;
            // A first record without a status is followed by one with it.
            const late = isFirst && stated !== null && stated.status === '' ? 0 : first;
            expectTruth(followed, truth, {
              exact: true,
              moves: isFirst ? late + (late === 0 ? 1 : 0) : one === 'status' ? 1 : 0,
            });
          },
        ),
        runs(0.1),
      );
    });

    const route = { name: 'r', executions: [], movedBy: 0.001, everyMs: 1_000, ...PRICED };
    const { source, destination, amount, funder, recipient } = PRICED;

    /** The output that a response reports; null for none, which is a failure that is reported. */
    function outputOf(response: PollResponse | UpstreamFailure): JsonValue {
      if (response instanceof UpstreamFailure) return null;
      if (response.useless) {
        expect(response.records).toEqual([]);
        expect(response.unreadable.length).toBeGreaterThan(0);
        return null;
      }
      return response.records[0]?.raw.output ?? 'unavailable';
    }

    test('of the v1 prices give the best quote that is still signed and as requested', async () => {
      const healthy = await quoteAnswer();
      const quotes = Array.isArray(healthy.quotes) ? healthy.quotes : [];
      const signed = new Set(
        quotes.flatMap((quote) => (isObject(quote) ? (signedContent(quote) ?? []) : [])),
      );
      const requested = {
        source: { ...source, funder, amount },
        destination: { ...destination, recipient },
        signed,
      };
      const client = clientOf('legacy');
      const signers = new QuoteSigners({ client: clientAt(`${server.url}/signers`) });
      const pricing = {
        client,
        signers,
        slot: async () => undefined,
        dAppId: 'test',
        directory: COMMON_NAMES,
      };
      const subject = routeId({ name: 'r', service: 'v1' });
      const target = { subject, route: { ...route, service: 'v1' as const }, nowMs: NOW_MS };
      await fc.assert(
        fc.asyncProperty(changes, async (how) => {
          const body = serve(healthy, how);
          const poll = pollPrice(
            { v1: (request, abort) => pollPartnerRoute(pricing, request, abort) },
            target,
            signal,
          );
          const output = outputOf(await responseOf(poll));
          const isAnswer = isObject(body) && hasCore(body);
          const offered = isAnswer ? [body, ...(Array.isArray(body.quotes) ? body.quotes : [])] : [];
          expect(output).toBe(bestOutput(offered, (quote) => v1Offer(quote, requested)));
          count(output === null ? 'no price' : 'prices');
        }),
        runs(0.15),
      );
    });

    test('of the open quoting service give the best quote that is still as requested', async () => {
      const requested = {
        sourceAmount: amount,
        sourceChainID: source.chainId,
        finalDestinationChainID: destination.chainId,
        sourceToken: source.token,
        destinationToken: destination.token,
        funder,
        recipient,
      };
      const service = { client: open, dAppId: 'test', directory: COMMON_NAMES };
      const subject = routeId({ name: 'r', service: 'open' });
      const definition = { ...route, service: 'open' as const, executions: USUAL_EXECUTIONS };
      await fc.assert(
        fc.asyncProperty(changes, async (how) => {
          const body = serve(openAnswer(), how, 201);
          const target = { subject, route: definition, nowMs: NOW_MS };
          const poll = pollPrice(
            { open: (request, abort) => pollRoute(service, request, abort) },
            target,
            signal,
          );
          const output = outputOf(await responseOf(poll));
          const data = isObject(body) ? body.data : undefined;
          const offered = Array.isArray(data) ? data : [];
          const isNone = Array.isArray(data) && data.length === 0;
          expect(output).toBe(
            isNone ? 'unavailable' : bestOutput(offered, (entry) => openOffer(entry, requested)),
          );
          count(output === null ? 'no price' : 'prices');
        }),
        runs(0.1),
      );
    });

    test('of the lists of chains and tokens retain every entry with its core', async () => {
      const client = clientOf('legacy');
      await fc.assert(
        fc.asyncProperty(
          fc.record({ changes, isChains: fc.boolean() }),
          async ({ changes: how, isChains }) => {
            const body = serve(isChains ? chainList(QUOTE_SIGNER.address) : tokenList(), how);
            const answer = await responseOf<{ value: { entries: object[]; unreadable: object[] } }>(
              isChains ? client.chains({ signal }) : client.tokens({ signal }),
            );
            const name = isChains ? 'chains' : 'tokens';
            const list = isObject(body) ? (body[name] ?? body.data) : body;
            if (!Array.isArray(list)) {
              expect(answer).toMatchObject({ code: 'malformed' });
              return;
            }
            if (answer instanceof UpstreamFailure) throw answer;
            const isText = (value: JsonValue | undefined): boolean =>
              typeof value === 'string' && value !== '';
            const cores = list.flatMap((entry): object[] => {
              if (!isObject(entry) || !isSeconds(entry.chainId ?? null)) return [];
              const chainId = Number(entry.chainId);
              if (!isChains) return isText(entry.address) ? [{ chainId, address: entry.address }] : [];
              return [{ chainId, quoteSigner: isText(entry.quoteSigner) ? entry.quoteSigner : null }];
            });
            expect(answer.value.entries).toMatchObject(cores);
            expect(answer.value.entries.length + answer.value.unreadable.length).toBe(list.length);
          },
        ),
        runs(0.1),
      );
    });

    test('with an error status are failures of the family, by the status alone', async () => {
      const client = clientOf('legacy');
      const statuses = {
        400: 'invalid-request',
        401: 'unauthorized',
        403: 'forbidden',
        429: 'rate-limited',
        502: 'unavailable',
        503: 'unavailable',
      };
      const status = fc.constantFrom(...Object.keys(statuses).map(Number));
      await fc.assert(
        fc.asyncProperty(
          fc.record({
            changes,
            status,
            body: fc.constantFrom(...ERROR_BODIES),
            at: fc.constantFrom('v1', 'gateway'),
          }),
          async ({ changes: how, status: httpStatus, body: healthy, at }) => {
            const body = serve(healthy, how, httpStatus);
            const subject = at === 'v1' ? `intent:0x${'ab'.repeat(32)}` : gatewayJobId(uuid(1));
            const failure = await responseOf(pollRecord(client, subject as SubjectId, signal));
            if (!(failure instanceof UpstreamFailure)) throw new Error('an error was read as an answer');
            expect(failure).toMatchObject({
              httpStatus,
              code: Object.entries(statuses).find(([one]) => Number(one) === httpStatus)?.[1],
            });
            const codes = isObject(body) ? [body.code, body.errorCode] : [];
            const isCode = (one: JsonValue | undefined): boolean =>
              typeof one === 'string' && /^[\w.-]{1,64}$/.test(one);
            expect(failure.problemCode).toBe(codes.find(isCode) ?? null);
            expect(failure.message.length).toBeLessThan(3_000);
          },
        ),
        runs(0.05),
      );
    });

    test('were enough of every kind, and reached every result', () => {
      for (const name of [
        ...CHANGES,
        'refused',
        'unreadable records',
        'unreadable members',
        'unread answers',
        'events',
        'prices',
        'no price',
      ])
        expect(counted.get(name) ?? 0, name).toBeGreaterThan(total / 500);
      expect(counted.get('answers')).toBeGreaterThanOrEqual(total);
    });
  });
}

/** The members without which no quote is read (QUOTE_EXPECTED). */
function hasCore(quote: JsonObject): boolean {
  const texts = [quote.id, quote.signature, quote.intentHash];
  const chainId = isObject(quote.source) ? quote.source.chainId : undefined;
  return (
    texts.every((text) => typeof text === 'string' && text !== '') &&
    isSeconds(quote.expiresAt ?? null) &&
    isSeconds(chainId ?? null)
  );
}
