import { performance } from 'node:perf_hooks';
import type { PlannedPoll } from '../../domain/cadence/next-poll.ts';
import { isPollable } from '../../domain/subjects/kinds.ts';
import type { UpstreamRecord } from '../../domain/subjects/record.ts';
import { intentId, type SubjectId } from '../../domain/subjects/subject.ts';
import { reportError } from '../../signals.ts';
import type { PollStart } from '../../store/poll-start.ts';
import { type SubjectEntry, UNSEEN_SUBJECT } from '../../store/subjects.ts';
import { commitRecord, type IngestedRecord } from './commit-record.ts';
import { planForMore, reportUnreadable, separate } from './ingest-page.ts';
import { planOf } from './plan-subject.ts';
import type { PollContext } from './poll-context.ts';
import { type Adapter, AFTER_SUPERSEDED, AT_ONCE, answered, failed } from './poll-ends.ts';
import { isOver, noteTransfer, type Poll } from './poll-record.ts';

/**
 * Polls a transaction to find its transfers. Each transfer gets the claims of the transaction (docs/glossary.md: claim), and
 * polls of its own. Its record in this answer is stored too, because its own polls may have ended. Later polls of the
 * transaction find further transfers (see `planForMore`).
 */
export function transactionAdapter(deps: PollContext, poll: Poll): Adapter {
  return {
    isOver: (start) => isOver(deps, start),
    poll: async (start, signal) => {
      const { subject, claims } = start;
      const requestedAt = performance.now();
      const response = await poll({ subject, route: null, nowMs: start.nowMs }, signal);
      const nowMs = start.nowMs + Math.round(performance.now() - requestedAt);
      reportUnreadable(deps, subject, response);
      const pollable = new Set(response.records.flatMap(pollableOf));
      for (const one of pollable) await deps.stores.subjects.claim(one, claims);
      const unpollable = response.records.filter((record) => pollableOf(record).length === 0);
      await storePollable(deps, start, { records: response.records, nowMs });
      const next: (PlannedPoll | null)[] = [];
      for (const record of unpollable) next.push(await storeUnpollable(deps, start, { record, nowMs }));
      const shown = [...pollable, ...unpollable.map((record) => record.subject)];
      const further = await planForMore(deps, start, shown);
      switch (further.state) {
        case 'unseen':
          return answered(planOf(deps, { ...start, snapshot: null }, start).next() ?? AT_ONCE);
        case 'over':
          return answered(soonest(next));
        case 'watched':
          return answered(soonest([further.next, ...next]));
      }
    },
    failed: async (_start, failure) => failed(failure),
  };
}

function pollableOf(record: UpstreamRecord): SubjectId[] {
  return isPollable(record.subject) ? [record.subject] : record.names.map(intentId);
}

/**
 * Stores the records of transfers that have polls of their own. A transfer whose polls ended because of its age is polled again
 * if its status has changed. If a record is older than the stored one, or occurs twice, the transfer is polled soon.
 */
async function storePollable(
  deps: PollContext,
  start: PollStart,
  { records, nowMs }: { records: readonly UpstreamRecord[]; nowMs: number },
): Promise<void> {
  const { once, again } = separate(records.filter(({ subject }) => isPollable(subject)));
  const entries = await deps.stores.subjects.readEach(once.map(({ subject }) => subject));
  const results = await Promise.allSettled(
    once.map((record, index) =>
      storeOne(deps, start, { record, entry: entries[index] ?? UNSEEN_SUBJECT, nowMs }),
    ),
  );
  const stale = results.flatMap((result, index) => {
    const subject = once[index]?.subject;
    if (result.status === 'fulfilled')
      return result.value === 'stale' && subject !== undefined ? [subject] : [];
    reportError(deps, 'record.not_stored', { subject, error: result.reason });
    return [];
  });
  const requested = [...new Set([...stale, ...again])];
  if (requested.length > 0) await deps.stores.plan.recheck(requested);
}

async function storeOne(
  deps: PollContext,
  { asOf, price, claims, ...start }: PollStart,
  { record, entry, nowMs }: { record: UpstreamRecord; entry: SubjectEntry; nowMs: number },
): Promise<IngestedRecord['outcome']> {
  const { subject } = record;
  const observation = { asOf, nowMs, price, exact: false, claims };
  const { outcome, snapshot, stored } = await commitRecord(deps, record, entry, observation);
  if (stored && snapshot !== null) {
    const state = { subject, snapshot, claims: entry.claims };
    const plan = planOf(deps, state, { ...start, price, nowMs, imported: null, route: null });
    await noteTransfer(deps, { ...state, nowMs }, snapshot, plan);
  }
  return outcome;
}

function soonest(polls: readonly (PlannedPoll | null)[]): PlannedPoll | null {
  const planned = polls.flatMap((poll) => poll ?? []);
  return planned.toSorted((left, right) => left.virtualSeconds - right.virtualSeconds)[0] ?? null;
}

/** Stores the record of a subject without polls of its own. Returns when the transaction must be polled for it again. */
async function storeUnpollable(
  deps: PollContext,
  start: PollStart,
  { record, nowMs }: { record: UpstreamRecord; nowMs: number },
): Promise<PlannedPoll | null> {
  const { subject } = record;
  const { asOf, price, claims } = start;
  const [entry = UNSEEN_SUBJECT] = await deps.stores.subjects.readEach([subject]);
  const observation = { asOf, nowMs, price, exact: true, claims };
  const { outcome, snapshot } = await commitRecord(deps, record, entry, observation);
  if (outcome === 'superseded') return AFTER_SUPERSEDED;
  return planOf(deps, { subject, snapshot, claims }, { ...start, nowMs }).next();
}
