/** A time as `2026-11-20 11:31:00 UTC`; null when the number is no time. */
export function formatTime(timeMs: number): string | null {
  const date = new Date(timeMs);
  return Number.isNaN(date.getTime()) ? null : `${date.toISOString().slice(0, -5).replace('T', ' ')} UTC`;
}

/** Unix seconds, as digits, in the same form; null when the text is no time. */
export function formatUnixSeconds(seconds: string): string | null {
  return /^\d{1,12}$/.test(seconds) ? formatTime(Number(seconds) * 1_000) : null;
}
