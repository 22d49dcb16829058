import type { RenderedEvent } from '../../src/domain/events/event.ts';

/** Times of the upstream are whole seconds. */
const SECOND_MS = 1_000;

/**
 * The status that each intent came to last, by what really happened. What had ended when the wallets began to be watched
 * (Unix ms), or in the same second, is left out: it is history, of which nothing may be reported.
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

/** The status of each subject that was reported last, in whatever order its events came. */
export function lastReported(events: readonly RenderedEvent[]): Map<string, string | null> {
  return new Map(
    events
      .toSorted((a, b) => a.data.sequence - b.data.sequence)
      .map(({ data }): [string, string | null] => [data.subject.id, data.status]),
  );
}
