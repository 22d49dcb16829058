/** The longest wait that a receiver can ask for. */
const MAX_RETRY_AFTER_MS = 60 * 60 * 1_000;

/**
 * The wait that a `Retry-After` header asks for, given in seconds or as an HTTP date, in milliseconds from `nowMs`
 * and between 0 and one hour. Null when the header is missing or says neither.
 */
export function parseRetryAfter(header: string | undefined, nowMs: number): number | null {
  const text = header?.trim() ?? '';
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1_000 : httpDateMs(text) - nowMs;
  return Number.isNaN(waitMs) ? null : Math.min(Math.max(Math.round(waitMs), 0), MAX_RETRY_AFTER_MS);
}

/** An HTTP date begins with the name of a day; `Date.parse` alone would also read `-1` as a year. */
function httpDateMs(text: string): number {
  return /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text) ? Date.parse(text) : Number.NaN;
}
