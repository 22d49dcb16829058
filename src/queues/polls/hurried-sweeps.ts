import { isHurried, mostHurried, neededRate } from '../../domain/cadence/cursor-lifetime.ts';
import type { SubjectId } from '../../domain/subjects/subject.ts';
import type { PollStart } from '../../store/poll-start.ts';
import type { PollParts } from './poll-parts.ts';
import type { SweepPage, SweepScope } from './sweeps.ts';

/**
 * How a full sweep of a wallet that is due reads its pages: each in its turn, or back to back where a cursor of the wallet has
 * died. Null where it is to be hurried and has no turn yet: it begins at a later poll.
 */
export async function paceOfSweep(
  { stores: { sweeps }, rules }: PollParts,
  { subject: wallet, facts, nowMs }: PollStart,
  scope: SweepScope,
): Promise<'patient' | 'hurried' | null> {
  if (!isHurried(facts, nowMs)) return 'patient';
  const most = mostHurried(facts, rules.requestsPerSecond);
  return (await sweeps.takeTurn({ wallet, scope }, most)) ? 'hurried' : null;
}

/**
 * Notes that the cursor of a sweep was refused: the next sweep of its wallet is hurried. Where this one was, reports the rate
 * that would do if the budget is smaller.
 */
export async function noteDeadCursor(parts: PollParts, sweep: SweepPage, start: PollStart): Promise<void> {
  const { stores, rules, log } = parts;
  const { wallet, page, isHurried: wasHurried } = sweep;
  const { facts, nowMs } = start;
  const ageMs = Math.max(0, nowMs - sweep.movedAtMs);
  await stores.wallets.note(wallet, { cursorDiedAtMs: nowMs, cursorDiedAfterMs: ageMs });
  if (facts.sweptAtMs === 0 && sweep.scope === 'all') await stores.wallets.noteUnswept(wallet, 'broken');
  log.info({ subject: wallet, page, ageMs, hurried: wasHurried }, 'sweep.cursor_expired');
  if (!wasHurried) return;
  const needed = neededRate({
    ageMs,
    sweepAgeMs: sweep.movedAtMs - Number(sweep.id),
    acceptedMs: sweep.acceptedMs,
    pages: Math.max(page, facts.pages),
  });
  if (needed.requestsPerSecond > rules.requestsPerSecond) await report(parts, wallet, needed);
}

async function report(
  { stores: { health }, rules, signals, log }: PollParts,
  wallet: SubjectId,
  { requestsPerSecond: neededRequestsPerSecond, ...seen }: ReturnType<typeof neededRate>,
): Promise<void> {
  const { requestsPerSecond } = rules;
  const record = { wallet, ...seen, requestsPerSecond, neededRequestsPerSecond };
  if (!(await health.reportExpiredCursor('status', record))) return;
  signals.emit('cursor.expired', { wallet, neededRequestsPerSecond });
  log.error(record, 'upstream.cursor_expired');
}
