import type { ReportRow } from '../../src/domain/books/report-schema.ts';
import { type Account, endOf, NEVER, rowsOf } from './books-lives.ts';
import { proofWords } from './books-proofs.ts';
import type { TrueTransfer } from './books-truth.ts';

/** Lists the differences between the newest row of a transfer and the transfer as made. */
export function differencesOfOne(row: ReportRow | undefined, transfer: TrueTransfer): string[] {
  const { subject, statuses, statedMs, source, destination, reported } = transfer;
  if (row === undefined) return [`${subject} is not in the books`];
  const found: string[] = [];
  const differ = (what: string, was: unknown, has: unknown): void => {
    if (was !== has) found.push(`${subject}: ${what} was ${was}, in the books ${has}`);
  };
  differ('its last status', statuses.at(-1)?.status, reported.at(-1)?.status ?? row.status);
  const times = new Set([...statuses.map(({ atMs }) => atMs), ...statedMs]);
  const fundedMs = Date.parse(row.fundedAt ?? '');
  if (reported[0]?.status === 'pending') differ('its funding', statuses[0]?.atMs, fundedMs);
  else if (!times.has(fundedMs)) found.push(`${subject} was not funded at ${row.fundedAt}`);
  const end = endOf(transfer);
  if (end !== undefined && !times.has(end.happenedMs)) found.push(`${subject} did not end at ${row.endedAt}`);
  differ('its end', end?.happenedMs, row.endedAt === null ? undefined : Date.parse(row.endedAt));
  if (source !== null) differ('what it sent', String(source.amount), row.sent?.amount);
  if (row.phase === 'delivered' && destination !== null)
    differ('what it delivered', String(destination.amount), row.delivered?.amount);
  return found;
}

/**
 * A transfer has a row on each day in which it was under way, or a check or an exception of it was reported; no other has. The
 * row has the last status reported by then, and the verdict of the chain.
 */
export function rowDifferences({ report, day, lives, dayOf }: Account): string[] {
  const rows = rowsOf(report);
  const named = new Set(report.exceptions.map(({ subject }) => subject.toLowerCase()));
  return lives.flatMap(({ transfer, startDay, endDay }) => {
    const { subject, reported, statuses } = transfer;
    const row = rows.get(subject);
    const proofDays = reported.filter(({ proof }) => proof !== null).map(dayOf);
    const isOfDay =
      (startDay <= day && day <= endDay) || named.has(subject) || proofDays.some((one) => one === day);
    if (row === undefined) return isOfDay ? [`${report.day}: no row of ${subject}`] : [];
    if (!isOfDay && !proofDays.includes(null))
      return [`${report.day}: a row of ${subject}, of which nothing was to be reported`];
    const found: string[] = [];
    const words = proofWords(transfer, { day, dayOf, isEnded: endDay <= day });
    if (!words.has(row.proof))
      found.push(`${report.day}: ${subject} was ${[...words].join(' or ')}, in the books ${row.proof}`);
    const days = reported.map(dayOf);
    if (days.includes(null)) return found;
    const last = reported.findLast((_, at) => (days[at] ?? NEVER) <= day)?.status ?? statuses[0]?.status;
    // A transfer under way when its wallet was subscribed is in the books before any event of it.
    if (row.status === last || (row.carried && reported.length === 0)) return found;
    return [...found, `${report.day}: ${subject} was ${last}, in the books ${row.status}`];
  });
}
