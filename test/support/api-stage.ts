import { Agent, fetch, type Headers } from 'undici';
import { afterAll, beforeAll, inject } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { type TestConfig, testPrefix } from './daemon.ts';
import { eventually } from './eventually.ts';
import { Hook } from './hook.ts';
import { reloadable } from './reloadable.ts';
import { hashOf, intentRecord, type Scripted, ScriptedUpstream } from './scripted-upstream.ts';

export const READ_TOKEN = 'a-token-that-only-reads';
export const CONSUME_TOKEN = 'a-token-that-consumes';
export const ADMIN_TOKEN = 'a-token-that-does-all';

/** A request to the API; an omitted member is not sent. */
export type Call = {
  method?: string;
  path: string;
  token?: string | null;
  body?: unknown;
  headers?: Record<string, string>;
  /** The loopback address of the client: answers to failed logins of one address get slower. */
  from?: string;
};

/** The answer; `body` is null where it is not JSON. */
export type Answered = { status: number; headers: Headers; body: JsonObject };

/** A daemon with the API, at an upstream whose intents a test controls. */
export type ApiStage = {
  url: string;
  config: TestConfig;
  write: (config: TestConfig) => Promise<void>;
  setStatus: (intent: string, status: string, more?: JsonObject) => void;
  call: (call: Call) => Promise<Answered>;
  /** Ends polling, so that only requests and deliveries change Redis. */
  stopPolling: () => Promise<void>;
};

/** Sets the stage: two receivers get the events of two intents with metadata, a third gets only events for operators. */
export async function apiStage(
  hooks: { backend: Hook; broken: Hook; operator: Hook },
  {
    later,
    more = {},
    redisUrl = inject('redisUrl'),
    metadata = {},
  }: {
    later: (close: () => Promise<unknown>) => void;
    more?: object;
    redisUrl?: string;
    /** Metadata of the second intent. */
    metadata?: Record<string, string>;
  },
): Promise<ApiStage> {
  const statuses = new Map<string, { status: string; updatedAt: number; more: JsonObject }>();
  const upstream = new ScriptedUpstream(({ query }): Scripted => {
    const hash = query.intentHash ?? '';
    const shown = statuses.get(hash) ?? { status: 'unknown', updatedAt: null, more: {} };
    return { records: [intentRecord(hash, shown.status, shown.updatedAt, shown.more)] };
  });
  await upstream.start();
  later(() => upstream.close());
  const config: TestConfig = {
    baseUrl: upstream.url,
    redisUrl,
    prefix: testPrefix(),
    receivers: {
      backend: { url: hooks.backend.url },
      broken: { url: hooks.broken.url, more: { retries: { delays: [] }, concurrency: 1 } },
      operator: { url: hooks.operator.url, more: { events: ['receiver.*'] } },
    },
    subscriptions: [
      {
        name: 'order-1',
        intents: [hashOf(1)],
        metadata: { order: '1042' },
        receivers: ['backend', 'broken'],
      },
      { name: 'order-2', intents: [hashOf(2)], metadata, receivers: ['backend'] },
    ],
    more: {
      server: {
        host: '127.0.0.1',
        port: 0,
        tokens: { read: READ_TOKEN, consume: CONSUME_TOKEN, admin: ADMIN_TOKEN },
        secretsKey: 'k'.repeat(32),
        apiReceivers: { allowNetworks: ['127.0.0.0/8'], allowInsecure: true },
      },
      polling: { shortestWait: '1s', longestWait: '1s' },
      ...more,
    },
  };
  const { daemon, write } = await reloadable(config, { later });
  const { url } = daemon;
  return {
    url,
    config,
    write,
    setStatus: (intent, status, more = {}) =>
      statuses.set(intent, { status, updatedAt: Math.floor(Date.now() / 1_000), more }),
    call: (call) => callApi(url, call),
    stopPolling: () => daemon.stopPolling(),
  };
}

/**
 * The stage of a test file, set before its first test and closed after its last. `onStage` gets it; closers passed to
 * `later` run with it, in reverse order.
 */
export function apiStageOfFile(onStage: (stage: ApiStage) => void) {
  const closers: (() => Promise<unknown>)[] = [];
  const later = (close: () => Promise<unknown>): void => void closers.push(close);
  const hooks = { backend: new Hook(), broken: new Hook(), operator: new Hook() };
  beforeAll(async () => {
    for (const hook of Object.values(hooks)) {
      await hook.start();
      later(() => hook.close());
    }
    onStage(await apiStage(hooks, { later }));
  });
  afterAll(async () => {
    for (const close of closers.reverse()) await close();
  });
  return { hooks, later };
}

/** Calls the API of a daemon. */
export async function callApi(url: string, call: Call): Promise<Answered> {
  const { method = 'GET', path, token, body, headers, from } = call;
  const sent = {
    ...(token === null ? {} : { authorization: `Bearer ${token ?? ADMIN_TOKEN}` }),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...headers,
  };
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const init = { method, headers: sent, ...(body === undefined ? {} : { body: text }) };
  // Uses a connection of its own: on a slow machine a reused one may be closed just as it is used.
  const agent = new Agent({ pipelining: 0, ...(from === undefined ? {} : { localAddress: from }) });
  const answer = await fetch(`${url}/api/v1${path}`, { ...init, dispatcher: agent });
  const isJson = /json/.test(answer.headers.get('content-type') ?? '');
  const answered: unknown = isJson ? await answer.json() : {};
  if (!isJson) await answer.body?.cancel();
  await agent.destroy();
  // The daemon gives up on its Redis after 5 s and reports that; a reader then repeats the request.
  if (method === 'GET' && answer.status === 503 && /no answer in time/.test(JSON.stringify(answered)))
    return callApi(url, call);
  return { status: answer.status, headers: answer.headers, body: objectOf(answered) };
}

function objectOf(value: unknown): JsonObject {
  if (typeof value !== 'object' || value === null) throw new Error('found no object, expected one');
  return JSON.parse(JSON.stringify(value));
}

/** Resolves when an answer satisfies a condition. */
export async function answered(
  stage: Pick<ApiStage, 'call'>,
  call: Call,
  matches: (body: JsonObject) => boolean,
): Promise<JsonObject> {
  return eventually(`${call.path} states the expectation`, async () => {
    const { body } = await stage.call(call);
    return matches(body) ? body : null;
  });
}
