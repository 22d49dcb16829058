import { createHmac, sign } from 'node:crypto';
import type { Dispatcher } from 'undici';
import type { WebhookReceiver } from '../../config/config.ts';
import type { WebhookFormat } from '../../config/fields/receiver.ts';
import { ExpiringSecret, parseSigningSecret, type SigningKey } from '../../config/fields/signing-secret.ts';
import type { RenderedEvent } from '../../domain/events/event.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../../domain/json.ts';
import { MAX_WEBHOOK_BYTES } from '../../domain/limits.ts';
import { COMMON_NAMES, type Directory } from '../../domain/transfers/chains.ts';
import { secretsOfHeader, secretsOfUrl } from '../../redact.ts';
import type { Secret } from '../../secret.ts';
import { makeNotice } from '../notice/notice.ts';
import {
  type AttemptClock,
  type AttemptOptions,
  type AttemptResult,
  beginAttempt,
  type EventUrl,
  type Notifier,
} from '../notifier.ts';
import { limiterWithout } from '../printable.ts';
import { ReceiverConnections } from './connections.ts';
import { discordMessage } from './discord.ts';
import { classifyAnswer, describeConnectionError, type ReceiverAnswer } from './exchange.ts';
import { slackMessage } from './slack.ts';
import { teamsMessage } from './teams.ts';

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
  const start = `${id}.${timestampSeconds}.`;
  switch (signing.type) {
    case 'hmac':
      return `v1,${createHmac('sha256', signing.key).update(start).update(body).digest('base64')}`;
    case 'ed25519':
      return `v1a,${sign(null, Buffer.concat([Buffer.from(start), body]), signing.key).toString('base64')}`;
    default:
      return signing satisfies never;
  }
}

/** Cache of parsed keys: an ed25519 key is costly to make. */
const KEYS = new WeakMap<Secret, SigningKey>();

function readKey(secret: Secret): SigningKey {
  const cached = KEYS.get(secret);
  if (cached !== undefined) return cached;
  const key = parseSigningSecret(secret.reveal());
  if (key === null) throw new Error('a webhook secret is neither whsec_ nor whsk_ with a key behind it');
  KEYS.set(secret, key);
  return key;
}

/** Delivers events by POST over its own connections, signed (Standard Webhooks 1.0.0) or as a message for a chat. */
export function createWebhookNotifier(
  receiver: WebhookReceiver,
  { version, eventUrl, directory }: { version: string; eventUrl: EventUrl | null; directory: Directory },
): Notifier {
  const url = new URL(receiver.url.reveal());
  const path = `${url.pathname}${url.search}`;
  const connections = new ReceiverConnections(receiver, url);
  const limiter = limiterWithout(secretsOf(receiver, url));
  const fixedHeaders = [
    ...Object.entries(receiver.headers).flatMap(([name, value]) => [name, value.reveal()]),
    ...['content-type', 'application/json', 'user-agent', `Intentwatch/${version}`],
  ];

  async function deliver(event: RenderedEvent, options: AttemptOptions): Promise<AttemptResult> {
    const attempt = beginAttempt(options, receiver.timeoutMs);
    const recordUrl = eventUrl?.({ id: event.id, receiver: receiver.name }, options.nowMs) ?? null;
    const body = renderBody(event, { format: receiver.format, recordUrl, directory });
    const timestampSeconds = Math.floor(options.nowMs / 1_000);
    const headers = [
      ...fixedHeaders,
      ...['webhook-id', event.id, 'webhook-timestamp', String(timestampSeconds)],
    ];
    // A chat's webhook has a secret URL and no other secret.
    if (receiver.secrets.length > 0) {
      const signatures = signatureHeader({ id: event.id, timestampSeconds, body }, receiver.secrets);
      headers.push('webhook-signature', signatures);
    }
    if (options.replay) headers.push('intentwatch-replay', 'true');
    try {
      return await send({ path, method: 'POST', headers, body }, { attempt, nowMs: options.nowMs });
    } finally {
      attempt.end();
    }
  }

  async function send(
    request: Dispatcher.DispatchOptions,
    { attempt, nowMs }: { attempt: AttemptClock; nowMs: number },
  ): Promise<AttemptResult> {
    let answer: ReceiverAnswer;
    try {
      answer = await connections.request(request, attempt.signal);
    } catch (error) {
      attempt.throwIfCutOff();
      const durationMs = attempt.elapsedMs();
      if (attempt.isTimedOut()) {
        const reason = `no answer within ${receiver.timeoutMs} ms`;
        return { ...NO_ANSWER, reason, durationMs, retryAfterMs: receiver.timeoutMs };
      }
      const reason = limiter.reason(describeConnectionError(error));
      return { ...NO_ANSWER, reason, durationMs, retryAfterMs: null };
    }
    const { httpStatus, retryAfter, text, ended, cut } = answer;
    if (!ended) attempt.throwIfCutOff();
    const durationMs = attempt.elapsedMs();
    const timedOutAfterMs = attempt.isTimedOut() ? receiver.timeoutMs : null;
    const verdict = classifyAnswer({
      httpStatus,
      retryAfter,
      ended,
      timedOutAfterMs,
      nowMs: nowMs + durationMs,
    });
    return {
      ...verdict,
      httpStatus,
      smtpCode: null,
      durationMs,
      // Searching it for secrets costs more than the request, and the answer to a success is hardly ever stored.
      get answer() {
        return limiter.answer(text, { cut });
      },
    };
  }

  return { deliver, close: () => connections.close() };
}

const NO_ANSWER = {
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

/** Members of a record that are removed last. */
const CORE: ReadonlySet<string> = new Set(['id', 'type', 'status', 'state', 'vaultAddress', 'updatedAt']);

/**
 * Shortens an event over 20 kB. It removes members of `record`, the largest first, then `transfer`, which is made from it, then
 * the last of `changes`, then the record's core, then members of `metadata` (`truncated` has their names), at last the ends of
 * lists. The same event is always cut the same way.
 */
function cutEvent(event: RenderedEvent, recordUrl: string | null): RenderedEvent {
  if (sizeOf(event) <= MAX_WEBHOOK_BYTES) return event;
  const link = recordUrl === null ? {} : { recordUrl };
  const marked: RenderedEvent = { ...event, data: { ...event.data, ...link, recordTruncated: true } };
  const { record, changes } = marked.data;
  const bySize = largestFirst(record);
  let excess = sizeOf(marked) - MAX_WEBHOOK_BYTES;
  const left = new Set<string>();
  const leaveOut = (members: readonly { key: string; bytes: number }[]): void => {
    for (const { key, bytes } of members) {
      if (excess <= 0) return;
      left.add(key);
      // Without the braces around it, and at times with a comma: an estimate that is never too high.
      excess -= bytes - 2;
    }
  };
  leaveOut(bySize.filter(({ key }) => !CORE.has(key)));
  const { transfer } = marked.data;
  const isTransferLeft = excess > 0 && transfer !== undefined;
  if (isTransferLeft) excess -= sizeOf(transfer);
  let count = changes.length;
  for (; excess > 0 && count > 0; count -= 1) excess -= sizeOf(changes[count - 1] ?? '');
  leaveOut(bySize.filter(({ key }) => CORE.has(key)));
  const rest = Object.fromEntries(Object.entries(record).filter(([key]) => !left.has(key)));
  const { transfer: _, ...others } = marked.data;
  const data = isTransferLeft ? others : marked.data;
  const cut = { ...marked, data: { ...data, record: rest, changes: changes.slice(0, count) } };
  return excess > 0 ? cutMetadata(cut) : cut;
}

/** Removes members of the merged metadata, the largest first, then the ends of lists that are still too long. */
function cutMetadata(event: RenderedEvent): RenderedEvent {
  const { metadata, wallets, subscriptions } = event.data;
  let excess = sizeOf({ ...event, data: { ...event.data, truncated: [] } }) - MAX_WEBHOOK_BYTES;
  const truncated: string[] = [];
  for (const { key, bytes } of largestFirst(metadata)) {
    if (excess <= 0) break;
    truncated.push(key);
    // A comma leaves with the member and another comes with its name: an estimate that is never too high.
    excess -= bytes - 2 - sizeOf(key);
  }
  const left = new Set(truncated);
  const shortened = (list: readonly string[]): string[] => {
    let count = list.length;
    for (; excess > 0 && count > 0; count -= 1) excess -= sizeOf(list[count - 1] ?? '');
    return list.slice(0, count);
  };
  const data = {
    ...event.data,
    metadata: Object.fromEntries(Object.entries(metadata).filter(([key]) => !left.has(key))),
    truncated: shortened(truncated),
    wallets: shortened(wallets),
    subscriptions: shortened(subscriptions),
  };
  return { ...event, data };
}

function largestFirst(members: JsonObject): { key: string; bytes: number }[] {
  return Object.entries(members)
    .map(([key, value]) => ({ key, bytes: sizeOf({ [key]: value }) }))
    .sort((a, b) => b.bytes - a.bytes || (a.key < b.key ? -1 : 1));
}

function sizeOf(value: JsonValue): number {
  return Buffer.byteLength(canonicalJson(value), 'utf8');
}

/** Form of a body: `recordUrl` is the address of the whole event, `directory` has the names of chains and tokens. */
export type Rendering = { format: WebhookFormat; recordUrl: string | null; directory?: Directory };

/** Renders the bytes to send and sign: canonical JSON of `{ id, type, timestamp, data }`, cut if too large, or a chat message. */
export function renderBody(event: RenderedEvent, rendering: Rendering): Buffer {
  if (rendering.format === 'standard') {
    // Most are small enough, and are serialised once.
    const whole = Buffer.from(canonicalJson(event), 'utf8');
    if (whole.length <= MAX_WEBHOOK_BYTES) return whole;
  }
  return Buffer.from(canonicalJson(render(event, rendering)), 'utf8');
}

function render(
  event: RenderedEvent,
  { format, recordUrl, directory = COMMON_NAMES }: Rendering,
): JsonObject {
  switch (format) {
    case 'standard':
      return cutEvent(event, recordUrl);
    case 'slack':
      return slackMessage(makeNotice(event, directory));
    case 'discord':
      return discordMessage(makeNotice(event, directory), event.timestamp);
    case 'teams':
      return teamsMessage(makeNotice(event, directory));
    default:
      return format satisfies never;
  }
}
