import type { UpstreamRecord } from '../../domain/subjects/record.ts';
import type { SubjectId } from '../../domain/subjects/subject.ts';
import type { Reading } from '../../pollers/reading.ts';
import type { PollParts } from './poll-parts.ts';

/** Of one answer, so much that cannot be read is told one by one. */
const MOST_REPORTED = 10;

/** Says what of an answer could not be read. */
export function reportUnreadable(
  { signals, log }: Pick<PollParts, 'signals' | 'log'>,
  subject: SubjectId,
  reading: Reading,
): void {
  for (const reason of reading.unreadable.slice(0, MOST_REPORTED)) {
    signals.emit('record.unreadable', { where: subject, reason });
    log.warn({ subject, reason }, 'record.unreadable');
  }
  const more = reading.unreadable.length - MOST_REPORTED;
  if (more > 0) log.warn({ subject, reason: `${more} more` }, 'record.unreadable');
  for (const record of reading.records) {
    for (const reason of unreadableMembers(record)) {
      signals.emit('record.unreadable', { where: subject, reason });
      log.debug({ subject: record.subject, reason }, 'record.unreadable');
    }
  }
}

/** A member that is not as the interface describes it says nothing, and is counted; null is how a member says nothing. */
function unreadableMembers({ subject, raw, unreadable }: UpstreamRecord): string[] {
  return unreadable
    .filter((name) => (raw[name] ?? null) !== null)
    .map((member) => `${member} of ${subject} is not as the interface describes it`);
}
