const MAX_RETRY_AFTER_MS = 3_600_000;

/** An HTTP date in milliseconds since 1970; null for anything else. */
export function httpDateMs(text: string | null): number | null {
  // Date.parse alone also takes "5" and local dates; every form of an HTTP date starts with the day's name.
  if (text === null || !/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? /.test(text)) return null;
  // The oldest of the three forms (asctime) names no zone and means GMT.
  const ms = Date.parse(/(GMT|UTC)$/.test(text) ? text : `${text} GMT`);
  return Number.isNaN(ms) ? null : ms;
}

/**
 * A Retry-After header in whole milliseconds, at most an hour; null when absent or unreadable.
 * `nowMs` is the moment of the answer, best on the clock that wrote the header.
 */
export function retryAfterMs(text: string | null, nowMs: number): number | null {
  if (text === null) return null;
  const ms = /^\d+(\.\d+)?$/.test(text) ? Math.ceil(Number(text) * 1000) : untilMs(text, nowMs);
  return ms === null ? null : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}

function untilMs(text: string, nowMs: number): number | null {
  const atMs = httpDateMs(text);
  return atMs === null ? null : atMs - nowMs;
}
