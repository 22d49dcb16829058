import { createHmac, timingSafeEqual, verify as verifyEd25519 } from 'node:crypto';
import { howChanged } from './body-changes.ts';
import { WebhookError } from './error.ts';
import { type AnyEvent, parseEvent } from './event.ts';
import { type HeadersInput, headerValues, requiredHeader, type Signature, signaturesOf } from './headers.ts';
import { createKeyring, type Secrets, type VerifyingKey } from './secrets.ts';

const DEFAULT_TOLERANCE_SECONDS = 300;

/** A received webhook: `body` is the original bytes, before any parser. */
export type WebhookRequest = { headers: HeadersInput; body: Uint8Array };

/** A webhook with a valid signature. `attemptedAt` is the time of this attempt; `isReplay`: an operator sends it again. */
export type VerifiedWebhook = { id: string; attemptedAt: Date; isReplay: boolean; event: AnyEvent };

/** Options of the verification. */
export type VerifyOptions = {
  /** `whsec_…`, `whpk_…`, a list during a rotation, or a function that returns them. */
  secrets: Secrets;
  /** Largest difference of the clocks, and largest age of an attempt: a finite positive number. Default: 300. */
  toleranceSeconds?: number;
  /** The clock, in milliseconds since 1970. Default: `Date.now`. */
  now?: () => number;
};

/**
 * Makes the function that verifies webhooks: it returns the event, or throws a `WebhookError` with the reason. Both kinds of
 * signatures are compared in constant time. Throws at once for an invalid secret or `toleranceSeconds`.
 */
export function createVerifier(options: VerifyOptions): (request: WebhookRequest) => VerifiedWebhook {
  const keys = createKeyring(options.secrets);
  const toleranceSeconds = parseTolerance(options.toleranceSeconds ?? DEFAULT_TOLERANCE_SECONDS);
  const now = options.now ?? Date.now;
  return ({ headers, body }) => {
    const bytes = bytesOf(body);
    const id = requiredHeader(headers, 'webhook-id');
    const timestamp = requiredHeader(headers, 'webhook-timestamp');
    const signatures = signaturesOf(headers);
    if (!/^\d{1,12}$/.test(timestamp))
      throw new WebhookError(
        'timestamp_invalid',
        `webhook-timestamp is ${JSON.stringify(timestamp.slice(0, 40))}, expected Unix seconds`,
      );
    requireSignature({ prefix: `${id}.${timestamp}.`, bytes, signatures, keys: keys(), headers });
    requireRecent(Number(timestamp), { nowMs: now(), toleranceSeconds });
    const event = parseEvent(bytes);
    if (event.id !== id)
      throw new WebhookError(
        'event_invalid',
        `the body is the event ${JSON.stringify(event.id)}, expected the webhook-id ${JSON.stringify(id)}`,
      );
    return {
      id,
      attemptedAt: new Date(Number(timestamp) * 1_000),
      isReplay: headerValues(headers, 'intentwatch-replay').includes('true'),
      event,
    };
  };
}

/** Refuses NaN and Infinity: no age is greater than either, so a webhook of any age would be accepted. */
function parseTolerance(seconds: unknown): number {
  if (typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0) return seconds;
  const found = typeof seconds === 'string' ? JSON.stringify(seconds) : String(seconds);
  throw new Error(`toleranceSeconds: found ${found}, expected a finite positive number of seconds`);
}

function bytesOf(body: unknown): Buffer {
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const found = body === null ? 'null' : typeof body === 'string' ? 'a text' : `a parsed ${typeof body}`;
  throw new WebhookError(
    'body_parsed',
    `the body is ${found}, expected its bytes: verify before anything parses the request`,
  );
}

type Signed = {
  prefix: string;
  bytes: Buffer;
  signatures: readonly Signature[];
  keys: readonly VerifyingKey[];
  headers: HeadersInput;
};

function requireSignature({ prefix, bytes, signatures, keys, headers }: Signed): void {
  const fits = (body: Buffer): boolean => {
    const signed = Buffer.concat([Buffer.from(prefix), body]);
    return keys.some((key) => isSignedBy(key, signatures, signed));
  };
  if (fits(bytes)) return;
  const versions = [...new Set(keys.map(({ version }) => version))];
  if (!signatures.some(({ version }) => versions.some((one) => one === version))) {
    const found = [...new Set(signatures.map(({ version }) => version.slice(0, 10)))].join(', ');
    const advice = versions.includes('v1') ? 'a whpk_ key verifies v1a' : 'a whsec_ secret verifies v1';
    throw new WebhookError(
      'signature_kind',
      `found signatures of version ${found}, expected ${versions.join(' or ')} for the secrets given (${advice})`,
    );
  }
  const encodings = headerValues(headers, 'content-encoding').filter((value) => value !== 'identity');
  const change = howChanged(bytes, { encoding: encodings[0] ?? null, fits });
  if (change !== null)
    throw new WebhookError(
      'body_changed',
      `the body was changed on its way: ${change}. Verify the bytes as sent`,
    );
  throw new WebhookError(
    'signature_mismatch',
    `found ${signatures.length} signatures and ${keys.length} secrets, expected one that fits: another secret, or a changed body`,
  );
}

/** True when one of the signatures is that of the content under a key. Base64 in another form than an encoder's is invalid. */
function isSignedBy(key: VerifyingKey, signatures: readonly Signature[], signed: Buffer): boolean {
  const given = signatures.filter(({ version }) => version === key.version).map(({ base64 }) => base64);
  switch (key.version) {
    case 'v1': {
      const expected = Buffer.from(createHmac('sha256', key.key).update(signed).digest('base64'));
      return given
        .map((text) => Buffer.from(text))
        .some((text) => text.length === expected.length && timingSafeEqual(text, expected));
    }
    case 'v1a':
      return given.some((text) => {
        const bytes = Buffer.from(text, 'base64');
        return bytes.toString('base64') === text && verifyEd25519(null, signed, key.key, bytes);
      });
    default:
      return key satisfies never;
  }
}

type Clock = { nowMs: number; toleranceSeconds: number };

/** Checks the time of a signed webhook: only a clock or the age can be wrong. */
function requireRecent(timestampSeconds: number, { nowMs, toleranceSeconds }: Clock): void {
  const age = Math.floor(nowMs / 1_000) - timestampSeconds;
  if (age > toleranceSeconds)
    throw new WebhookError(
      'timestamp_too_old',
      `signed ${age} s ago, expected at most ${toleranceSeconds} s: a request sent again, or a clock that is off`,
    );
  if (age < -toleranceSeconds)
    throw new WebhookError(
      'timestamp_too_new',
      `signed ${-age} s in the future, expected at most ${toleranceSeconds} s: is this machine's clock behind?`,
    );
}
