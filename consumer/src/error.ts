/**
 * Faults of a webhook:
 * - `method_not_allowed`: another method than POST
 * - `header_missing`, `header_repeated`: of `webhook-id`, `webhook-timestamp`, `webhook-signature`
 * - `timestamp_invalid`, `timestamp_too_old`, `timestamp_too_new`: the clock of one side is off, or it is a replay
 * - `signature_kind`: only signatures of a kind for which no secret is configured
 * - `body_changed`: the signature fits the body before a proxy or framework rewrote it
 * - `signature_mismatch`: no signature fits
 * - `body_too_large`: more than `maxBodyBytes`
 * - `body_parsed`: a parser consumed the bytes before the verification; a mistake in the program, not in the request
 * - `event_invalid`: signed, but no event
 */
export type WebhookErrorCode =
  | 'method_not_allowed'
  | 'header_missing'
  | 'header_repeated'
  | 'timestamp_invalid'
  | 'timestamp_too_old'
  | 'timestamp_too_new'
  | 'signature_kind'
  | 'body_changed'
  | 'signature_mismatch'
  | 'body_too_large'
  | 'body_parsed'
  | 'event_invalid';

const STATUS: Readonly<Record<WebhookErrorCode, number>> = {
  method_not_allowed: 405,
  header_missing: 400,
  header_repeated: 400,
  timestamp_invalid: 400,
  timestamp_too_old: 401,
  timestamp_too_new: 401,
  signature_kind: 401,
  body_changed: 401,
  signature_mismatch: 401,
  body_too_large: 413,
  body_parsed: 500,
  event_invalid: 400,
};

/** A refused webhook. The message states the found and the expected value, and shows no secret. */
export class WebhookError extends Error {
  readonly code: WebhookErrorCode;
  readonly status: number;

  constructor(code: WebhookErrorCode, message: string) {
    super(message);
    this.name = 'WebhookError';
    this.code = code;
    this.status = STATUS[code];
  }
}

/** Thrown by a handler to postpone an event. The answer is 503 with `Retry-After`, which Intentwatch follows up to an hour. */
export class RetryLater extends Error {
  readonly seconds: number;

  constructor(seconds: number, message = `to be tried again in ${seconds} s`) {
    super(message);
    this.name = 'RetryLater';
    this.seconds = seconds;
  }
}

/** The error of a body with more bytes than the limit. */
export function bodyTooLarge(maxBodyBytes: number): WebhookError {
  return new WebhookError('body_too_large', `the body has more than ${maxBodyBytes} bytes (maxBodyBytes)`);
}
