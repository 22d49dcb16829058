import type { Day } from './day.ts';
import { type DayTransfer, deliveriesBy, type ReportEvent } from './day-transfer.ts';
import { linesOf } from './postings.ts';
import type { BookException, ExceptionKind } from './report-schema.ts';
import { proofOf } from './row.ts';

/** When a delivery must have been done, and how long one may take in a day that is not closed; 0 in one that is. */
type ExceptionContext = { day: Day; tellByMs: number; graceMs: number; checked: ReadonlySet<string> };

/** Why a transfer needs a poll: every reason by itself. */
export function exceptionsOf(transfer: DayTransfer, context: ExceptionContext): BookException[] {
  const { subject, state, openAfter, inDay, eventsInDay } = transfer;
  const found: BookException[] = [];
  const add = (kind: ExceptionKind, text: string): void => void found.push({ kind, subject, text });
  const status = state.status.toLowerCase();
  if (openAfter > 0) {
    const since = state.fundedAtMs === null ? '' : ` since ${new Date(state.fundedAtMs).toISOString()}`;
    add('in-flight', `under way${since}, ${status || 'without a status'}`);
    if (state.isOverdue) add('overdue', 'it takes longer than expected');
    if (status === 'refundable') add('refundable', 'its funds can be claimed back, and were not');
  }
  const { proof, proofReason } = proofOf(state);
  if (proof === 'disputed')
    add('disputed', `the chain says otherwise: ${proofReason ?? 'no reason was given'}`);
  const chainId = state.transfer.destination?.chainId ?? '';
  const isDeliveredNow = state.phase === 'delivered' && inDay.some(({ side }) => side === 'ended');
  const isUnproven =
    proof === 'unproven' || (proof === 'not checked' && isDeliveredNow && context.checked.has(chainId));
  if (isUnproven) {
    add(
      'unproven',
      proof === 'unproven'
        ? 'delivered, and the chain does not have it'
        : 'delivered, and not proved by then',
    );
  }
  for (const event of eventsInDay) {
    for (const text of undelivered(event, context)) add('undelivered', text);
  }
  if (state.isGone) add('gone', 'the service knew it, and does not any more');
  if (linesOf(state).some(({ side, token }) => side === 'started' && token === '')) {
    add('amount-unknown', 'no record says how much of which token was sent');
  }
  if (isDeliveredNow && state.transfer.delivered === undefined && !state.isCountedElsewhere) {
    add('amount-unknown', 'no record says how much of which token was paid out');
  }
  return found;
}

/** Of which receivers an event was not accepted in time. */
function undelivered(event: ReportEvent, { tellByMs, graceMs }: ExceptionContext): string[] {
  return deliveriesBy(event, tellByMs).flatMap(({ receiver, state, deliveredMs, eventMs }) => {
    if (deliveredMs !== null && deliveredMs <= tellByMs) return [];
    if (graceMs > 0 && state === 'waiting' && eventMs > tellByMs - graceMs) return [];
    return [`${event.type} was not delivered to ${receiver} by then`];
  });
}
