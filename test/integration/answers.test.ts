import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { z } from 'zod';
import { Signals } from '../../src/signals.ts';
import { type AnswerCase, answerCases, POLLED, type Polled, QUOTED_CHAINS } from '../support/answers.ts';
import { cannedServer, type SeenRequest } from '../support/canned-server.ts';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { ROUTE_ITEM } from '../support/routes.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const { later, started } = opening();

/** The outcome of each answer, as docs/answers.md states it. `ANSWERS=write` writes it anew. */
const FILE = join(import.meta.dirname, '../support/answers.json');
const fileSchema = z.record(z.string(), z.record(z.string(), z.string()));

const address = (index: number): string => `0x${String(index + 1).padStart(40, 'a')}`;
const jobId = (index: number): string => `job-${String(index + 1).padStart(4, '0')}x`;

/** The nth case of an endpoint: what is subscribed to, and what names the case in a request and in events. */
type ScriptedRequest = {
  subscription: (count: number) => object;
  /** The subject of the correct answer. */
  id: (index: number) => string;
  subject: (index: number) => string;
  /** The part of a request that names its case. */
  named: (request: SeenRequest) => string | null;
};

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
const queryOf = ({ url }: SeenRequest, name: string): string | null =>
  new URL(url, 'http://upstream').searchParams.get(name);
const lastSegment = ({ url }: SeenRequest): string => url.split('?')[0]?.split('/').at(-1) ?? '';

const REQUESTED: Record<Polled, ScriptedRequest> = {
  status: {
    subscription: (count) => ({ intents: numbers(count).map((index) => hashOf(index + 1)) }),
    id: (index) => hashOf(index + 1),
    subject: (index) => `intent:${hashOf(index + 1)}`,
    named: (request) => queryOf(request, 'intentHash'),
  },
  'wallet page': {
    subscription: (count) => ({ wallets: numbers(count).map(address) }),
    id: (index) => hashOf(index + 1),
    subject: (index) => `wallet:${address(index)}`,
    named: (request) => queryOf(request, 'wallet'),
  },
  'gasless job': {
    subscription: (count) => ({
      gaslessJobs: numbers(count).map((index) => ({ id: jobId(index), endpoint: 'gateway' })),
    }),
    id: jobId,
    subject: (index) => `gasless:gateway:${jobId(index)}`,
    named: lastSegment,
  },
  vault: {
    subscription: (count) => ({
      vaults: numbers(count).map((index) => ({ address: address(index), chainId: 8453 })),
    }),
    id: address,
    subject: (index) => `vault:8453:${address(index)}`,
    named: lastSegment,
  },
  'open quotes': {
    subscription: (count) => ({
      routes: numbers(count).map((index) => ({
        ...ROUTE_ITEM,
        name: `route-${index}`,
        amount: String(100_000_000 + index),
        every: '1h',
      })),
    }),
    id: (index) => String(100_000_000 + index),
    subject: (index) => `route:route-${index}`,
    named: ({ body }) => /"sourceAmount":"(\d+)"/.exec(body)?.[1] ?? null,
  },
  'v1 quotes': {
    subscription: (count) => ({
      routes: numbers(count).map((index) => ({
        ...ROUTE_ITEM,
        name: `route-${index}`,
        service: 'v1',
        amount: String(100_000_000 + index),
        every: '1h',
      })),
    }),
    id: (index) => String(100_000_000 + index),
    subject: (index) => `route:v1:route-${index}`,
    named: ({ body }) => /"amount":"(\d+)"/.exec(body)?.[1] ?? null,
  },
};

const nameOf = (one: AnswerCase | undefined): string => `${one?.member}, ${one?.deviation}`;

const EMPTY_PAGE = 'results around it, empty';

/** The outcome of every case, by its name. */
async function becomes(endpoint: Polled): Promise<{ outcomes: Record<string, string>; operator: string[] }> {
  const cases = answerCases(endpoint);
  const { subscription, id, subject, named } = REQUESTED[endpoint];
  const namedBy = endpoint === 'wallet page' ? address : id;
  const byName = new Map(cases.map((one, index) => [namedBy(index), one.body(id(index))]));
  const server = await cannedServer((request) => {
    const body = byName.get(named(request) ?? '');
    if (body !== undefined) return { status: endpoint === 'open quotes' ? 201 : 200, body };
    if (request.url.startsWith('/v1/chains') && endpoint === 'v1 quotes') {
      return { status: 200, body: QUOTED_CHAINS };
    }
    const hash = queryOf(request, 'intentHash');
    const unknown = { id: `intent:${hash}`, type: 'intent', status: 'unknown', updatedAt: null };
    return { status: 200, body: { results: hash === null ? [] : [unknown], nextCursor: null } };
  });
  later(() => server.close());
  const requests = (name: string): number => server.seen.filter((request) => named(request) === name).length;
  const hook = await started(new TestReceiver());
  const failed = new Map<string, string>();
  const skipped = new Map<string, Set<string>>();
  const signals = new Signals();
  signals.on('record.unreadable', ({ where, reason }) => {
    const parts = skipped.get(where) ?? new Set();
    // The owner of the member differs from case to case.
    skipped.set(where, parts.add(/^(\w+) of /.exec(reason)?.[1] ?? 'the record'));
  });
  const { daemon } = await startDaemon(
    {
      baseUrl: server.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url, more: { events: ['*', 'upstream.*'] } } },
      subscriptions: [{ name: 's', ...subscription(cases.length), receivers: ['hook'] }],
      more: {
        upstream: {
          baseUrl: server.url,
          quotesUrl: server.url,
          apiKey: 'sandbox-key',
          requestsPerSecond: 100,
          gatewayRequestsPerSecond: 50,
          quotesRequestsPerSecond: 50,
          partnerQuotesRequestsPerSecond: 50,
        },
      },
    },
    (line) => {
      const { msg, subject: of = '', code = '' } = LINE.parse(JSON.parse(line));
      if (msg === 'poll.failed') failed.set(of, code);
    },
    signals,
  );
  later(() => daemon.close());
  const outcomeOf = (index: number): string | null => {
    const polled = subject(index);
    const event = hook.events.find(({ data }) =>
      endpoint === 'wallet page' ? data.wallets.includes(address(index)) : data.subject.id === polled,
    );
    const parts = [...(skipped.get(polled) ?? [])].sort().join(', ');
    if (event !== undefined) return parts === '' ? event.type : `${event.type}, without ${parts}`;
    // A page without transfers is the whole answer for a wallet without transfers; it was read by the time of the next
    // request.
    const isEmptyPage = endpoint === 'wallet page' && EMPTY_PAGE === nameOf(cases[index]);
    if (isEmptyPage) return requests(address(index)) > 1 ? 'no transfers' : null;
    if (endpoint === 'wallet page' && parts === 'the record') return 'the record is skipped';
    const code = failed.get(polled);
    return code === undefined ? null : `${code} answer`;
  };
  const outcomes = await eventually('the result of every answer', () => {
    const found = cases.map((one, index) => [nameOf(one), outcomeOf(index)] as const);
    return found.every(([, outcome]) => outcome !== null) && found;
  });
  const operator = hook.events.map(({ type }) => type).filter((type) => type.startsWith('upstream.'));
  return { outcomes: Object.fromEntries(outcomes.map(([name, outcome]) => [name, outcome ?? ''])), operator };
}

const LINE = z.looseObject({ msg: z.string(), subject: z.string().optional(), code: z.string().optional() });

async function written(): Promise<z.infer<typeof fileSchema>> {
  return fileSchema.parse(JSON.parse(await readFile(FILE, 'utf8').catch(() => '{}')));
}

test.each(
  POLLED,
)('an answer of the %s endpoint that differs in one member has the documented result', async (endpoint) => {
  expect(answerCases(endpoint).length).toBeGreaterThanOrEqual(40);
  const { outcomes, operator } = await becomes(endpoint);
  expect(operator).not.toContain('upstream.unauthorized');
  if (process.env.ANSWERS === 'write') {
    await writeFile(FILE, `${JSON.stringify({ ...(await written()), [endpoint]: outcomes }, null, 2)}\n`);
  }
  expect(outcomes).toEqual((await written())[endpoint]);
});
