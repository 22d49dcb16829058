import type { UpstreamRecord } from '../../domain/subjects/record.ts';
import type { SubjectId } from '../../domain/subjects/subject.ts';
import type { Reading } from '../../pollers/reading.ts';
import type { TooLarge } from '../../upstream/client/failure.ts';
import type { PollParts } from './poll-parts.ts';

/** Of one answer, so much that cannot be read is reported one by one. */
const MOST_REPORTED = 10;

/** The most characters of an id, and of a reason that quotes the upstream, that are logged. */
const ID_CHARS = 100;
const REASON_CHARS = 300;

/** Reports what of an answer could not be read, and its records of reserved kinds. */
export function reportUnreadable(
  { client, signals, log }: Pick<PollParts, 'client' | 'signals' | 'log'>,
  subject: SubjectId,
  reading: Reading,
): void {
  for (const [kind, [first, ...others]] of Map.groupBy(reading.reserved ?? [], (record) => record.kind)) {
    const id = client.loggable(first?.id ?? '', ID_CHARS);
    signals.emit('record.reserved', { kind, id, count: others.length + 1 });
  }
  for (const words of reading.unreadable.slice(0, MOST_REPORTED)) {
    const reason = client.loggable(words, REASON_CHARS);
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

/** Reports a record of a wallet that is too large to be read, once however often its pages are requested. */
export async function reportTooLarge(
  { stores, signals, log }: Pick<PollParts, 'stores' | 'signals' | 'log'>,
  wallet: SubjectId,
  { found, firstId }: TooLarge,
): Promise<void> {
  const record = { wallet, id: firstId, reason: `a page of one record: found ${found}` };
  if (!(await stores.health.reportTooLarge('status', record))) return;
  signals.emit('record.too-large', record);
  log.error({ subject: wallet, id: firstId, reason: record.reason }, 'record.too_large');
}

/** A member that is not as the interface describes it says nothing, and is counted; null is how a member says nothing. */
function unreadableMembers({ subject, raw, unreadable }: UpstreamRecord): string[] {
  return unreadable
    .filter((name) => (raw[name] ?? null) !== null)
    .map((member) => `${member} of ${subject} is not as the interface describes it`);
}
