import { createHmac, sign } from 'node:crypto';
import type { LookupFunction } from 'node:net';
import { type buildConnector, type Dispatcher, Pool } from 'undici';
import type { WebhookReceiver } from '../../config/config.ts';
import { ExpiringSecret, parseSigningSecret, type SigningKey } from '../../config/fields/signing-secret.ts';
import type { RenderedEvent } from '../../domain/events/event.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Directory } from '../../domain/transfers/chains.ts';
import { proxiedConnector } from '../../network/proxy.ts';
import { NameResolver } from '../../network/resolver.ts';
import { secretsOfHeader, secretsOfUrl } from '../../redact.ts';
import type { Secret } from '../../secret.ts';
import { apiRules, ownRules } from '../address-rules.ts';
import { type AttemptClock, beginAttempt } from '../attempt.ts';
import type { AttemptOptions, AttemptResult, EventUrl, Notifier } from '../notifier.ts';
import { limiterWithout } from '../printable.ts';
import { classifyAnswer, describeConnectionError, readAnswerStart } from './classify.ts';
import { boundedConnector, guardedConnector, withoutLiterals } from './connector.ts';
import { renderBody } from './render.ts';

/** Signed content; `timestampSeconds` is the Unix time of the attempt. */
type SignedContent = { id: string; timestampSeconds: number; body: Buffer };

/** The `webhook-signature` header of Standard Webhooks: one signature per secret that has not expired, separated by spaces. */
export function signatureHeader(content: SignedContent, secrets: readonly Secret[]): string {
  const nowMs = content.timestampSeconds * 1_000;
  const valid = secrets.filter((secret) => !(secret instanceof ExpiringSecret) || nowMs < secret.untilMs);
  return valid.map((secret) => signature(content, readKey(secret))).join(' ');
}

/** `v1,` and HMAC-SHA256, or `v1a,` and ed25519, in base64, over `id.timestamp.body`. */
function signature({ id, timestampSeconds, body }: SignedContent, signing: SigningKey): string {
  const signed = Buffer.concat([Buffer.from(`${id}.${timestampSeconds}.`), body]);
  switch (signing.type) {
    case 'hmac':
      return `v1,${createHmac('sha256', signing.key).update(signed).digest('base64')}`;
    case 'ed25519':
      return `v1a,${sign(null, signed, signing.key).toString('base64')}`;
    default:
      return signing satisfies never;
  }
}

/** Cache of parsed keys: an ed25519 key is costly to make. */
const KEYS = new WeakMap<Secret, SigningKey>();

function readKey(secret: Secret): SigningKey {
  const known = KEYS.get(secret);
  if (known !== undefined) return known;
  const key = parseSigningSecret(secret.reveal());
  if (key === null) throw new Error('a webhook secret is neither whsec_ nor whsk_ with a key behind it');
  KEYS.set(secret, key);
  return key;
}

/** Delivers events by POST over its own connection pool, signed (Standard Webhooks 1.0.0) or as a message for a chat. */
export function createWebhookNotifier(
  receiver: WebhookReceiver,
  { version, eventUrl, directory }: { version: string; eventUrl: EventUrl | null; directory: Directory },
): Notifier {
  const url = new URL(receiver.url.reveal());
  const names = new NameResolver({ timeoutMs: receiver.timeoutMs });
  const pool = openPool(receiver, { url, names });
  const limiter = limiterWithout(secretsOf(receiver, url));
  const ownHeaders = Object.fromEntries(
    Object.entries(receiver.headers).map(([name, value]) => [name, value.reveal()]),
  );

  async function deliver(event: RenderedEvent, options: AttemptOptions): Promise<AttemptResult> {
    const attempt = beginAttempt(options, receiver.timeoutMs);
    const recordUrl = eventUrl?.({ id: event.id, receiver: receiver.name }, options.nowMs) ?? null;
    const body = renderBody(event, { format: receiver.format, recordUrl, directory });
    const timestampSeconds = Math.floor(options.nowMs / 1_000);
    const headers = {
      ...ownHeaders,
      'content-type': 'application/json',
      'user-agent': `Intentwatch/${version}`,
      'webhook-id': event.id,
      'webhook-timestamp': String(timestampSeconds),
      ...signatureOf({ id: event.id, timestampSeconds, body }),
      ...(options.replay ? { 'intentwatch-replay': 'true' } : {}),
    };
    const path = `${url.pathname}${url.search}`;
    const request = { path, method: 'POST', headers, body } as const;
    return send(request, { attempt, nowMs: options.nowMs }).finally(() => attempt.end());
  }

  /** A chat's webhook has a secret URL and no other secret. */
  function signatureOf(content: SignedContent): { 'webhook-signature'?: string } {
    return receiver.secrets.length === 0
      ? {}
      : { 'webhook-signature': signatureHeader(content, receiver.secrets) };
  }

  async function send(
    request: Dispatcher.RequestOptions,
    { attempt, nowMs }: { attempt: AttemptClock; nowMs: number },
  ): Promise<AttemptResult> {
    let response: Dispatcher.ResponseData;
    try {
      response = await untilAborted(pool.request({ ...request, signal: attempt.signal }), attempt.signal);
    } catch (error) {
      attempt.throwIfCutOff();
      const durationMs = attempt.elapsedMs();
      if (attempt.isTimedOut()) {
        const reason = `no answer within ${receiver.timeoutMs} ms`;
        return { ...NOTHING_SAID, reason, durationMs, retryAfterMs: receiver.timeoutMs };
      }
      const reason = limiter.reason(describeConnectionError(error));
      return { ...NOTHING_SAID, reason, durationMs, retryAfterMs: null };
    }
    const { text, ended, cut } = await readAnswerStart(response.body);
    if (!ended) attempt.throwIfCutOff();
    const durationMs = attempt.elapsedMs();
    const verdict = classifyAnswer({
      httpStatus: response.statusCode,
      retryAfter: [response.headers['retry-after'] ?? []].flat()[0],
      ended,
      timedOutAfterMs: attempt.isTimedOut() ? receiver.timeoutMs : null,
      nowMs: nowMs + durationMs,
    });
    const answer = limiter.answer(text, { cut });
    return { ...verdict, httpStatus: response.statusCode, smtpCode: null, answer, durationMs };
  }

  return {
    deliver,
    close: async () => {
      names.close();
      await pool.destroy();
    },
  };
}

const NOTHING_SAID = {
  outcome: 'failed',
  httpStatus: null,
  smtpCode: null,
  answer: '',
} as const;

/** Secrets that an answer could echo: of the URL and the proxy, signing secrets, and values of the user's headers. */
function secretsOf({ secrets, headers, proxy }: WebhookReceiver, url: URL): string[] {
  const values = Object.values(headers).map((value) => value.reveal());
  return [
    ...secretsOfUrl(url),
    ...(proxy === null ? [] : secretsOfUrl(new URL(proxy.reveal()))),
    ...secrets.map((secret) => secret.reveal()),
    ...values.flatMap(secretsOfHeader),
  ];
}

/** The attempt's own time limit is the only one: an unmade connection ends with it. */
function openPool(receiver: WebhookReceiver, { url, names }: { url: URL; names: NameResolver }): Pool {
  return new Pool(url.origin, {
    connect: boundedConnector(connectorOf(receiver, names.lookup), receiver),
    // Otherwise the pool makes one connection first to learn which HTTP is spoken, and all wait for its handshake.
    allowH2: false,
    connections: receiver.concurrency,
    pipelining: 1,
    // Independent of Node's command line.
    maxHeaderSize: LIMITS.receiverHeader.bytes,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

/** Connects directly or by proxy. A proxy resolves names: only literal addresses are checked; it decides for API receivers. */
function connectorOf(receiver: WebhookReceiver, lookup: LookupFunction): buildConnector.connector {
  const { proxy, timeoutMs } = receiver;
  const { ca, identity } = receiver.tls ?? { ca: null, identity: null };
  const tls = {
    ...(ca === null ? {} : { ca }),
    ...(identity === null ? {} : { cert: identity.cert, key: identity.key.reveal() }),
  };
  const own = ownRules(receiver);
  if (proxy !== null) return withoutLiterals(proxiedConnector({ proxy, lookup, timeoutMs, tls }), own);
  const rules = [...apiRules(receiver), ...own];
  return guardedConnector({ ...tls, timeout: 0, allowH2: false, lookup, rules });
}

/** Rejects when the signal aborts, also while a connection is being made: undici reads the signal only after that. */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
