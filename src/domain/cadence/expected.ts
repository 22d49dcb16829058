import type { ExpectedBy } from '../events/event-schema.ts';
import { statusOf } from '../subjects/kinds.ts';
import { type Snapshot, stageOf } from '../subjects/record.ts';
import type { SubjectId } from '../subjects/subject.ts';
import { routeName } from '../transfers/transfer.ts';
import { AGE_BINS, type HazardCurve, lowerEdge, upperEdge } from './hazard.ts';
import { stageSinceMs } from './next-poll.ts';
import type { Watch } from './watch-rules.ts';

/** How a stage ends, by age: as is usual, or failed (expired, failed, refundable), after which the usual does not come. */
export type StageEnds = { usual: HazardCurve; failed: HazardCurve };

/** An age (seconds) and the chance that the usual end has come by then. */
type Arrival = { ageSeconds: number; probability: number };

/** Of those that still come, so many have come by the time that is reported. */
const SHARE = 0.9;

/** What is more likely not to come at all is not reported as expected. */
const LEAST_PROBABILITY = 0.5;

/**
 * By which age a share of those stages have come to their usual end that are open at `ageSeconds` and ever do, and the
 * chance of any that is open then to be among them. The later it is still open, the later that age; never before
 * `ageSeconds`. Null for one that is older than the start of the last age bin, beyond which nothing is said.
 */
export function arrivalOf(
  ends: StageEnds,
  { ageSeconds, share }: { ageSeconds: number; share: number },
): Arrival | null {
  const pieces = piecesFrom(ends, ageSeconds);
  const last = pieces.at(-1);
  const ever = last === undefined ? 0 : last.arrived + last.arrives;
  if (!(ever > 0)) return null;
  const probability = Math.min(1, Math.max(0, share)) * ever;
  const piece = pieces.find(({ arrived, arrives }) => arrived + arrives >= probability) ?? last;
  if (piece === undefined) return null;
  const { from, to, usual, both, open, arrived } = piece;
  // How far into the piece: the usual ends come in it as `open · usual/both · (1 − exp(−both·t))`.
  const gone = ((probability - arrived) * both) / (open * usual);
  const seconds = -Math.log1p(-Math.min(1, gone)) / both;
  return { ageSeconds: Math.min(to, from + Math.max(0, seconds || 0)), probability };
}

/** A span of age within which both rates are constant: how many are open as it begins, had arrived by then, and arrive in it. */
type Piece = {
  from: number;
  to: number;
  usual: number;
  both: number;
  open: number;
  arrived: number;
  arrives: number;
};

function piecesFrom(ends: StageEnds, ageSeconds: number): Piece[] {
  const pieces: Piece[] = [];
  let open = 1;
  let arrived = 0;
  for (let bin = 0; bin < AGE_BINS.length - 1; bin++) {
    const [from, to] = [Math.max(lowerEdge(bin), ageSeconds), upperEdge(bin)];
    if (from >= to) continue;
    const usual = ends.usual[bin] ?? 0;
    const both = usual + (ends.failed[bin] ?? 0);
    const ended = open * -Math.expm1(-both * (to - from));
    const arrives = both > 0 ? (ended * usual) / both : 0;
    pieces.push({ from, to, usual, both, open, arrived, arrives });
    open -= ended;
    arrived += arrives;
  }
  return pieces;
}

/**
 * By when a subject that is under way is expected to come to the end of its stage, by what was learned of it (`ends`, null
 * while that is too little). Null where nothing is waited for, and where it is more likely not to come at all.
 */
export function expectedBy(
  { subject, snapshot, nowMs }: { subject: SubjectId; snapshot: Stage; nowMs: number },
  ends: (route: string, watch: Watch) => StageEnds | null,
): ExpectedBy | null {
  const { watch } = stageOf(subject, snapshot.status);
  const status = usualNext(subject, snapshot.status);
  if (watch === null || status === null) return null;
  const known = ends(routeName(snapshot.record), watch);
  if (known === null) return null;
  const sinceMs = stageSinceMs(snapshot);
  const ageSeconds = Math.max(0, nowMs - sinceMs) / 1_000;
  const most = arrivalOf(known, { ageSeconds, share: SHARE });
  const half = arrivalOf(known, { ageSeconds, share: 0.5 });
  if (most === null || half === null || most.probability < LEAST_PROBABILITY) return null;
  const timeAt = (arrival: Arrival): string =>
    new Date(Math.max(nowMs, Math.ceil(sinceMs + arrival.ageSeconds * 1_000))).toISOString();
  return {
    status,
    at: timeAt(most),
    probability: Math.round(most.probability * 100) / 100,
    medianAt: timeAt(half),
  };
}

/** What is known of a subject in its stage. */
type Stage = Pick<Snapshot, 'status' | 'record' | 'updatedAt' | 'changedAtMs'>;

/** The status that comes next where all goes well, as the tables of its kind name it; null where none does. */
function usualNext(subject: SubjectId, status: string): string | null {
  const next = statusOf(subject, status)?.next ?? [];
  return next.find((word) => statusOf(subject, word)?.isFailure === false) ?? null;
}
