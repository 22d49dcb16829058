import type { RenderedEvent } from '../../src/domain/events/event.ts';

/** Times of the upstream are whole seconds. */
const SECOND_MS = 1_000;

/**
 * The last true status of each intent. Omitted is an intent that had ended by the time (Unix ms) when the wallets began to
 * be watched, or in the same second: it is history, of which nothing may be reported.
 */
export function endsOf(
  transitions: readonly { subject: string; to: string; at: number }[],
  watchedSinceMs: number,
): Map<string, string> {
  const last = new Map(
    transitions.filter(({ subject }) => subject.startsWith('intent:')).map((one) => [one.subject, one]),
  );
  return new Map(
    [...last]
      .filter(([, { at }]) => at > watchedSinceMs + SECOND_MS)
      .map(([subject, { to }]) => [subject, to]),
  );
}

/** The last reported status of each subject, in any order of its events. */
export function lastReported(events: readonly RenderedEvent[]): Map<string, string | null> {
  return new Map(
    events
      .toSorted((a, b) => a.data.sequence - b.data.sequence)
      .map(({ data }): [string, string | null] => [data.subject.id, data.status]),
  );
}
