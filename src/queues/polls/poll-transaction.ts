import { performance } from 'node:perf_hooks';
import type { PlannedPoll } from '../../domain/cadence/next-poll.ts';
import { isPollable } from '../../domain/subjects/kinds.ts';
import type { UpstreamRecord } from '../../domain/subjects/record.ts';
import { intentId } from '../../domain/subjects/subject.ts';
import type { PollStart } from '../../store/poll-start.ts';
import { NOTHING_KNOWN } from '../../store/subjects.ts';
import { commitRecord, planOf } from './commit-record.ts';
import type { PollParts } from './poll-parts.ts';
import { type Ask, isOver } from './poll-record.ts';
import { type Adapter, AFTER_SUPERSEDED, AT_ONCE, answered, failed, over } from './polled.ts';
import { reportUnreadable } from './unreadable.ts';

/**
 * Polls transactions: looks for the transfer that one belongs to. What is found gets the claims of the transaction, and is
 * polled and told as itself; then the transaction has nothing more to say.
 */
export function transactionAdapter(parts: PollParts, ask: Ask): Adapter {
  return {
    isOver: (start) => isOver(parts, start),
    poll: async (start, signal) => {
      const { subject, claims } = start;
      const askedAt = performance.now();
      const reading = await ask({ subject, route: null, nowMs: start.nowMs }, signal);
      const nowMs = start.nowMs + Math.round(performance.now() - askedAt);
      reportUnreadable(parts, subject, reading);
      const found = reading.records.flatMap((record) =>
        isPollable(record.subject) ? [record.subject] : record.names.map(intentId),
      );
      for (const one of new Set(found)) await parts.stores.subjects.claim(one, claims);
      if (found.length > 0) return over('answered');
      const [only] = reading.records;
      if (only !== undefined) return answered(await follow(parts, start, { record: only, nowMs }));
      return answered(planOf(parts, { ...start, snapshot: null }, start).next() ?? AT_ONCE);
    },
    failed: async (_start, failure) => failed(failure),
  };
}

/** Takes in a record that can be asked for by its transaction alone. Returns when that is due next; null when it is over. */
async function follow(
  parts: PollParts,
  start: PollStart,
  { record, nowMs }: { record: UpstreamRecord; nowMs: number },
): Promise<PlannedPoll | null> {
  const { subject } = record;
  const { asOf, price, claims } = start;
  const [known = NOTHING_KNOWN] = await parts.stores.subjects.look([subject]);
  const sighting = { asOf, nowMs, price, exact: true, claims };
  const { outcome, snapshot } = await commitRecord(parts, record, known, sighting);
  if (outcome === 'superseded') return AFTER_SUPERSEDED;
  return planOf(parts, { subject, snapshot, claims }, { ...start, nowMs }).next();
}
