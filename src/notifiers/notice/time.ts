/** A time as `2026-11-20 11:31:00 UTC`; null when the number is no time. */
export function formatTime(timeMs: number): string | null {
  const date = new Date(timeMs);
  return Number.isNaN(date.getTime()) ? null : `${date.toISOString().slice(0, -5).replace('T', ' ')} UTC`;
}

/** Unix seconds, as digits, in the same form; null when the text is no time. */
export function formatUnixSeconds(seconds: string): string | null {
  return /^\d{1,12}$/.test(seconds) ? formatTime(Number(seconds) * 1_000) : null;
}

const UNITS: readonly (readonly [name: string, seconds: number])[] = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
];

/** A span in its two greatest units: `23 s`, `15 min`, `2 h 5 min`. */
export function formatDuration(seconds: number): string {
  const first = UNITS.findIndex(([, size]) => seconds >= size);
  if (first === -1) return '0 s';
  let rest = Math.floor(seconds);
  const parts: string[] = [];
  for (const [name, size] of UNITS.slice(first, first + 2)) {
    if (rest >= size) parts.push(`${Math.floor(rest / size)} ${name}`);
    rest %= size;
  }
  return parts.join(' ');
}
