import type { ExpectedBy } from '../events/event-schema.ts';
import type { JsonObject } from '../json.ts';
import { statusOf } from '../subjects/kinds.ts';
import { stageOf } from '../subjects/record.ts';
import type { SubjectId } from '../subjects/subject.ts';
import { routeName } from '../transfers/transfer.ts';
import { AGE_BINS, type HazardCurve, lowerEdge, upperEdge } from './hazard.ts';
import { stageSinceMs } from './next-poll.ts';
import type { Watch } from './watch-rules.ts';

/** Hazards of a stage's ends: usual, or failed (expired, failed, refundable), after which the usual end does not come. */
export type StageEnds = { usual: HazardCurve; failed: HazardCurve };

/** An age (seconds) and the chance that the usual end has come by then. */
type Arrival = { ageSeconds: number; probability: number };

/** Share of the coming ends that have come by the reported time. */
const SHARE = 0.9;

/** An end that is more likely not to come is not reported as expected. */
const LEAST_PROBABILITY = 0.5;

/**
 * Age by which a share of the stages open at `ageSeconds` that ever end as usual have ended, and the chance of that
 * for any of them. The age is never before `ageSeconds`. Null beyond the start of the last age bin.
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
  // Position within the piece: the usual ends come as `open · usual/both · (1 − exp(−both·t))`.
  const gone = ((probability - arrived) * both) / (open * usual);
  const seconds = -Math.log1p(-Math.min(1, gone)) / both;
  return { ageSeconds: Math.min(to, from + Math.max(0, seconds || 0)), probability };
}

/** Span of age with constant rates. `open`: share open at its start; `arrived`: before it; `arrives`: in it. */
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
 * Expected end of the stage of a subject under way, from the learned `ends` (null while too few). Null when no change
 * is awaited, and when the end is more likely not to come.
 */
export function expectedBy(
  { subject, snapshot, nowMs }: { subject: SubjectId; snapshot: CurrentStage; nowMs: number },
  ends: (route: string, watch: Watch) => StageEnds | null,
): ExpectedBy | null {
  const { watch } = stageOf(subject, snapshot.status);
  const status = usualNext(subject, snapshot.status);
  if (watch === null || status === null) return null;
  const learned = ends(routeName(snapshot.record), watch);
  if (learned === null) return null;
  const sinceMs = stageSinceMs(snapshot);
  const ageSeconds = Math.max(0, nowMs - sinceMs) / 1_000;
  const most = arrivalOf(learned, { ageSeconds, share: SHARE });
  const half = arrivalOf(learned, { ageSeconds, share: 0.5 });
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

type CurrentStage = { status: string; record: JsonObject; updatedAt: number | null; changedAtMs: number };

/** The next status when all goes well, from the table of the subject's kind; null for none. */
function usualNext(subject: SubjectId, status: string): string | null {
  const next = statusOf(subject, status)?.next ?? [];
  return next.find((word) => statusOf(subject, word)?.isFailure === false) ?? null;
}
