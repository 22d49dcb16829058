import type { OpenTransfer } from '../../domain/cadence/wallet.ts';
import type { PollStart } from '../../store/poll-start.ts';
import type { TooLarge } from '../../upstream/client/failure.ts';
import { followThoseThatLeft, pollThoseThatLeft, thoseThatLeft, WORTH_A_PAGE } from './left-transfers.ts';
import type { PollContext } from './poll-context.ts';
import { type Adapter, answered, failed, over, type Polled } from './poll-ends.ts';
import { reportTooLarge } from './poll-failures.ts';
import {
  isFull,
  leftBehind,
  parseSweep,
  type Sweep,
  type SweepPage,
  type SweepScope,
  statusOf,
} from './sweeps.ts';
import {
  DOUBTED_AGAIN,
  ingest,
  nextPage,
  noteDeadCursor,
  noteOrder,
  noteSwept,
  type OversizedPoll,
  observedOf,
  openFindings,
  PAGE_AT_ONCE,
  READ_EVERY_MS,
  type Run,
  readByStatus,
  readPage,
} from './wallet-plan.ts';

/** Failures of a page that end its sweep. The next sweep begins by itself. */
const PAGE_TRIES = 5;

function triesOf(scope: SweepScope): number {
  // Single polls find what it would find: nothing waits for the backoff of its pages.
  return leftBehind(scope) === null ? PAGE_TRIES : 1;
}

/** Polls the page of a wallet that a sweep reads next. */
export function pageAdapter(deps: PollContext, { member, subject, sweep: stored }: PollStart): Adapter {
  const sweep = parseSweep(subject, member.split(':')[1] ?? '', stored ?? {});
  return {
    isOver: async () => sweep === null,
    poll: async (start, signal) =>
      sweep === null ? over('ended') : pollPage(deps, sweep, { start, signal }),
    failed: async (start, failure) => {
      if (sweep === null) return failed(failure);
      if (failure.code === 'invalid-request' || sweep.tries + 1 >= triesOf(sweep.scope)) {
        // The cursor came with a larger limit, which it may be bound to.
        if (sweep.cursor !== null && sweep.limit < sweep.cursorLimit) {
          await deps.stores.sweeps.restart(sweep, start.nowMs);
          return { ...answered(PAGE_AT_ONCE), outcome: 'failed' };
        }
        // Any other 400 on a cursor means that it has expired: the next poll of the first page restarts the sweep.
        const isExpired = failure.code === 'invalid-request' && sweep.cursor !== null;
        if (isExpired && isFull(sweep.scope)) await noteDeadCursor(deps, sweep, start);
        await breakSweep(deps, sweep, start.nowMs);
        return over('failed');
      }
      if (failure.own) await deps.stores.sweeps.noteFailure(sweep);
      return failed(failure);
    },
  };
}

async function pollPage(deps: PollContext, sweep: SweepPage, run: Run): Promise<Polled> {
  const { wallet, scope, cursor, page, limit } = sweep;
  const { start } = run;
  const status = statusOf(scope);
  const findings = openFindings(start);
  const listed = leftBehind(scope);
  const left = (): OpenTransfer[] =>
    listed === null ? [] : thoseThatLeft(findings, { status: listed, sinceMs: sweep.sinceMs });
  const leftBefore = left().length;
  const answer = await readPage(deps, { wallet, status, cursor, limit, earlier: null }, run);
  if ('found' in answer) return shrinkSweep(deps, { start, findings }, { sweep, tooLarge: answer });
  const { response, answeredMs } = answer;
  const ingested = await ingest(
    deps,
    { response, answeredMs, atHead: false, sinceMs: sweep.sinceMs, polledMs: null },
    { run, findings },
  );
  if (ingested === null) return answered(DOUBTED_AGAIN, observedOf(deps, start, findings, null));
  if (status === null) noteOrder(findings, { ingested, nowMs: start.nowMs });
  const isPartial = sweep.isPartial || response.unreadable.length > 0;
  if (isPartial && !sweep.isPartial) await deps.stores.sweeps.notePartial(sweep);
  const stillLeft = left();
  const isEnough =
    (scope === 'new' && !ingested.allMoved) ||
    (listed !== null && Math.min(leftBefore - stillLeft.length, stillLeft.length) < WORTH_A_PAGE);
  const isOver = response.nextCursor === null || isEnough;
  if (!isOver) {
    const acceptedMs = Math.max(sweep.acceptedMs, start.nowMs - sweep.movedAtMs);
    const from = { page, cursor: response.nextCursor ?? '', limit, nowMs: start.nowMs, acceptedMs };
    const goesOn =
      (await deps.stores.sweeps.isPresent(sweep)) && (await deps.stores.sweeps.next(sweep, from));
    if (goesOn && sweep.isHurried) await deps.stores.sweeps.retainTurn(sweep);
    if (goesOn) return answered(nextPage(sweep), observedOf(deps, start, findings, ingested));
    await breakSweep(deps, sweep, start.nowMs);
    return answered(null, observedOf(deps, start, findings, ingested));
  }
  await deps.stores.sweeps.end(sweep);
  const beganMs = Number(sweep.id);
  if (scope === 'all') {
    await noteSwept(deps, { start, findings }, { sweptAtMs: beganMs, pages: page });
    if (!isPartial) findings.facts.readAtMs = beganMs - READ_EVERY_MS;
  }
  if (listed !== null) await pollThoseThatLeft(deps, stillLeft);
  else if (status !== null)
    await followThoseThatLeft(deps, { start, findings }, { status, sinceMs: beganMs });
  return answered(null, observedOf(deps, start, findings, ingested));
}

/** Requests the page again with a smaller limit. At 1 it reports the record and ends: no answer states the next page. */
async function shrinkSweep(
  deps: PollContext,
  { start, findings }: OversizedPoll,
  { sweep, tooLarge }: { sweep: SweepPage; tooLarge: TooLarge },
): Promise<Polled> {
  const { sweeps } = deps.stores;
  const { nowMs } = start;
  if (sweep.limit > 1) {
    await sweeps.shrink(sweep, nowMs);
    return answered(PAGE_AT_ONCE, observedOf(deps, start, findings, null));
  }
  await reportTooLarge(deps, sweep.wallet, tooLarge);
  await sweeps.end(sweep, 'blocked');
  // It counts as read; otherwise each sweep would stop at this record again.
  if (sweep.scope === 'all') {
    await noteSwept(deps, { start, findings }, { sweptAtMs: Number(sweep.id), pages: sweep.page + 1 });
    await readByStatus(deps, start);
  }
  if (sweep.scope === 'new') findings.facts.missedAtMs = nowMs;
  return answered(null, observedOf(deps, start, findings, null));
}

/** Ends a sweep that cannot go on. The next of its kind reads the rest, and a full sweep reads new transfers. */
async function breakSweep(
  { stores: { sweeps, wallets } }: PollContext,
  sweep: Sweep,
  nowMs: number,
): Promise<void> {
  if (sweep.scope === 'new') await wallets.note(sweep.wallet, { missedAtMs: nowMs });
  await sweeps.end(sweep, 'broken');
}
