import type { Showing, ShownRecord } from '../sandbox/control/answer-log.ts';

/** One answer's record of one subject. Times in ms, see `Showing`. */
export type Observation = Omit<ShownRecord, 'id'> & Omit<Showing, 'records'>;

/** Observations of every subject, in the order of the answers. Of a subject that occurs twice on a page the first counts. */
export function observationsOf(showings: readonly Showing[]): Map<string, Observation[]> {
  const observations = new Map<string, Observation[]>();
  for (const { records, ...showing } of showings) {
    const onPage = new Set<string>();
    for (const { id, ...shown } of records) {
      if (onPage.has(id)) continue;
      onPage.add(id);
      const list = observations.get(id);
      if (list === undefined) observations.set(id, [{ ...showing, ...shown }]);
      else list.push({ ...showing, ...shown });
    }
  }
  return observations;
}

/** Longest time of a request, and of an answer until its commit is refused. */
export const LONGEST_MS = 60_000;

/**
 * True when an answer may have been overtaken: a different one was ingested between this request and the ingestion of its
 * answer, so that the commit refused it. `slackMs`: time after its last byte in which an answer may be ingested.
 */
export function hasRival(observations: readonly Observation[], index: number, slackMs: number): boolean {
  const one = observations[index];
  if (one === undefined) return false;
  const [fromMs, untilMs] = [one.requestedAt, (one.doneAt ?? one.at) + slackMs];
  const isRival = (other: Observation): boolean =>
    (other.status !== one.status || other.updatedAt !== one.updatedAt || other.content !== one.content) &&
    other.at <= untilMs &&
    (other.doneAt ?? other.at) + slackMs >= fromMs;
  for (let at = index - 1; at >= 0; at--) {
    const other = observations[at];
    if (other === undefined || other.at < fromMs - LONGEST_MS) break;
    if (isRival(other)) return true;
  }
  for (let at = index + 1; at < observations.length; at++) {
    const other = observations[at];
    if (other === undefined || other.at > untilMs) break;
    if (isRival(other)) return true;
  }
  return false;
}
