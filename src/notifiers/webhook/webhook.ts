import { buildConnector, type Dispatcher, Pool } from 'undici';
import type { WebhookReceiver } from '../../config/config.ts';
import type { RenderedEvent } from '../../domain/event.ts';
import { type Attempt, beginAttempt } from '../attempt.ts';
import type { AttemptOptions, AttemptResult, Notifier } from '../notifier.ts';
import { printableLine } from '../printable.ts';
import { redact, secretsOfUrl } from '../redact.ts';
import { guardedConnector } from './address-guard.ts';
import { readAnswerStart } from './answer.ts';
import { classifyAnswer, describeConnectionError } from './classify.ts';
import { renderBody } from './render.ts';
import { signatureHeader } from './sign.ts';

/** Delivers events by signed POST requests (Standard Webhooks 1.0.0) over a connection pool of its own. */
export function createWebhookNotifier(receiver: WebhookReceiver, { version }: { version: string }): Notifier {
  const url = new URL(receiver.url.reveal());
  const pool = openPool(receiver, url);
  const secrets = [...secretsOfUrl(url), ...receiver.secrets.map((secret) => secret.reveal())];

  async function deliver(event: RenderedEvent, options: AttemptOptions): Promise<AttemptResult> {
    const attempt = beginAttempt(options, receiver.timeoutMs);
    const body = renderBody(event);
    const timestampSeconds = Math.floor(options.nowMs / 1_000);
    const headers = {
      'content-type': 'application/json',
      'user-agent': `Intentwatch/${version}`,
      'webhook-id': event.id,
      'webhook-timestamp': String(timestampSeconds),
      'webhook-signature': signatureHeader({ id: event.id, timestampSeconds, body }, receiver.secrets),
    };
    const path = `${url.pathname}${url.search}`;
    const result = await send({ path, method: 'POST', headers, body }, { attempt, nowMs: options.nowMs });
    return { ...result, reason: redact(result.reason, secrets), answer: redact(result.answer, secrets) };
  }

  async function send(
    request: Dispatcher.RequestOptions,
    { attempt, nowMs }: { attempt: Attempt; nowMs: number },
  ): Promise<AttemptResult> {
    let response: Dispatcher.ResponseData;
    try {
      response = await untilAborted(pool.request({ ...request, signal: attempt.signal }), attempt.signal);
    } catch (error) {
      attempt.throwIfCutOff();
      const reason = attempt.isTimedOut()
        ? `no answer within ${receiver.timeoutMs} ms`
        : printableLine(describeConnectionError(error), 300);
      return { ...NOTHING_SAID, reason, durationMs: attempt.elapsedMs() };
    }
    const { text, ended } = await readAnswerStart(response.body);
    if (!ended) attempt.throwIfCutOff();
    const durationMs = attempt.elapsedMs();
    const verdict = classifyAnswer({
      httpStatus: response.statusCode,
      retryAfter: [response.headers['retry-after'] ?? []].flat()[0],
      ended,
      timedOut: attempt.isTimedOut(),
      nowMs: nowMs + durationMs,
    });
    return { ...verdict, httpStatus: response.statusCode, smtpCode: null, answer: text, durationMs };
  }

  return { deliver, close: () => pool.destroy() };
}

const NOTHING_SAID = {
  outcome: 'failed',
  httpStatus: null,
  smtpCode: null,
  answer: '',
  retryAfterMs: null,
} as const;

/** The only limit in time is the attempt's own; a connection that is never made is given up as late as that. */
function openPool(receiver: WebhookReceiver, url: URL): Pool {
  const connection = { timeout: receiver.timeoutMs, allowH2: false };
  return new Pool(url.origin, {
    connect: receiver.allowPrivateNetwork ? buildConnector(connection) : guardedConnector(connection),
    connections: receiver.concurrency,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

/** undici looks at the signal only once a connection stands; the attempt must also end while one is being made. */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
