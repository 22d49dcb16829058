import type { RenderedEvent } from '../../src/domain/event.ts';

/** The status that each intent came to last, by what really happened. */
export function endsOf(transitions: readonly { subject: string; to: string }[]): Map<string, string> {
  return new Map(
    transitions
      .filter(({ subject }) => subject.startsWith('intent:'))
      .map(({ subject, to }): [string, string] => [subject, to]),
  );
}

/** The status of each subject that was told last, in whatever order its events came. */
export function lastTold(events: readonly RenderedEvent[]): Map<string, string | null> {
  return new Map(
    events
      .toSorted((a, b) => a.data.sequence - b.data.sequence)
      .map(({ data }): [string, string | null] => [data.subject.id, data.status]),
  );
}
