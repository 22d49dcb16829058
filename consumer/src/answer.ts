/** The answer to a webhook. */
export type Answer = { status: number; headers: Readonly<Record<string, string>>; body: string };

export const ACCEPTED: Answer = { status: 204, headers: {}, body: '' };

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  405: 'Method Not Allowed',
  413: 'Content Too Large',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

/** The reason of a refusal, which the daemon stores with the attempt. `retryAfter` is in seconds. */
type Refusal = { code: string; detail: string; retryAfter?: number };

/** An answer as problem details (RFC 9457). */
export function answerOf(status: number, { code, detail, retryAfter }: Refusal): Answer {
  return {
    status,
    headers: {
      'content-type': 'application/problem+json',
      ...(status === 405 ? { allow: 'POST' } : {}),
      ...(retryAfter === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfter)) }),
    },
    body: JSON.stringify({ title: TITLES[status] ?? 'Error', status, code, detail }),
  };
}
