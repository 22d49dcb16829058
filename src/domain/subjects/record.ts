import { z } from 'zod';
import { type Stage, UNNAMED, UNSEEN, WATCHED } from '../cadence/watch-rules.ts';
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import { type Kind, kindOf, statusOf } from './kinds.ts';
import { type SubjectId, subjectKind } from './subject.ts';

/**
 * What the upstream said about a subject, parsed. `updatedAt` is in Unix seconds; null when the answer had none.
 * `raw` is the record whole, unknown members included; `unreadable` lists the top-level members of `raw` that did
 * not have the shape of the interface. `names` are the intent hashes that the record mentions.
 */
export type UpstreamRecord = {
  subject: SubjectId;
  status: string;
  updatedAt: number | null;
  names: string[];
  raw: JsonObject;
  unreadable: string[];
};

/** A stale answer that exact polls keep giving: what of it they repeat, and since when (Redis time, ms). */
export type Unconfirmed = { key: string; sinceMs: number };

const INTEGER = z.codec(z.string().regex(/^-?\d+$/), z.number(), { decode: Number, encode: String });

const INTEGER_OR_NONE = z.codec(z.string().regex(/^(-?\d+)?$/), z.number().nullable(), {
  decode: (text) => (text === '' ? null : Number(text)),
  encode: (value) => String(value ?? ''),
});

const EPOCH = z.codec(z.string().optional(), z.number(), {
  decode: (text) => Number(text) || 1,
  encode: String,
});

/** What is JSON already need not be held to it member by member, in either direction. */
const RECORD = z.codec(z.string(), z.custom<JsonObject>(), {
  decode: (text, context): JsonObject => {
    const value = parsed(text);
    if (value !== undefined && isJsonObject(value)) return value;
    context.issues.push({ code: 'custom', message: 'expected a JSON object', input: text });
    return z.NEVER;
  },
  encode: canonicalJson,
});

/** A list of texts that do not hold the separator. */
const listOf = (separator: string) =>
  z.codec(z.string().optional(), z.array(z.string()), {
    decode: (text) => (text ? text.split(separator) : []),
    encode: (list) => list.join(separator),
  });

const UNCONFIRMED = z.codec(z.string().optional(), z.custom<Unconfirmed>().nullable(), {
  decode: (text) => {
    if (text === undefined) return null;
    const bar = text.indexOf('|');
    return { sinceMs: Number(text.slice(0, bar)), key: text.slice(bar + 1) };
  },
  encode: (unconfirmed) => (unconfirmed === null ? undefined : `${unconfirmed.sinceMs}|${unconfirmed.key}`),
});

/** What a new snapshot says: members on one side, the texts of a hash in Redis on the other. */
const WRITTEN = {
  /** Counts snapshots. */
  version: INTEGER,
  /** Counts events. */
  sequence: INTEGER,
  status: z.string(),
  updatedAt: INTEGER_OR_NONE,
  record: RECORD,
  /** Redis time. */
  observedAtMs: INTEGER,
  /** Redis time. */
  changedAtMs: INTEGER,
  /** The first `updatedAt` (Unix seconds) seen in the present stage of waiting, or in the last one. */
  pendingSince: INTEGER_OR_NONE,
  /** The events of time that were already made. */
  flags: listOf('\n'),
  /** The values that it has left at its present `updatedAt`, as hashes (see `formerAfter`). */
  former: listOf(' '),
  /** The marks of its events (see `identify`). */
  emitted: listOf(' '),
  /** In which epoch its newest event was made; what was stored before there were epochs is of the first. */
  epoch: EPOCH,
};

/** A snapshot as a commit writes it. */
export const SNAPSHOT_DRAFT = z.object(WRITTEN);

/** The last accepted record of a subject as it is stored, with what commits note beside it. */
export const SNAPSHOT = z.object({
  ...WRITTEN,
  /** The number that the commit counter had when it was written. */
  commit: INTEGER,
  unconfirmed: UNCONFIRMED,
  /** The latest event that every claim of the subject matched. */
  eventId: z.string().optional(),
});

/**
 * The last accepted record of a subject. `reported`: there was an event that everybody who had claimed the subject was
 * matched by; false while all that happened was history.
 */
export type Snapshot = Omit<z.output<typeof SNAPSHOT>, 'eventId'> & {
  reported: boolean;
  /** It could not be read whole: its record is not known, and its status only where it is not empty. */
  salvaged?: true;
  /** It was reduced to what recognises its state (see store/ended-subjects.ts); it is salvaged as well. */
  compact?: true;
};

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** How a subject moved along the usual steps of its kind. A word that stands in no table is on none of them. */
export type Step = 'same' | 'forward' | 'skipped' | 'backward' | 'other';

/** The stage of a subject in a status; null as status means that the upstream has not shown the subject yet. */
export function stageOf(subject: SubjectId, status: string | null): Stage {
  if (subjectKind(subject) === 'wallet') return WATCHED;
  if (status === null) return UNSEEN;
  return statusOf(subject, status)?.stage ?? UNNAMED;
}

/** The number of usual steps that lead from one status to another; null when none do. */
function distance(statuses: Kind['statuses'], from: string, to: string): number | null {
  let frontier = [from];
  const seen = new Set(frontier);
  for (let length = 0; frontier.length > 0; length += 1) {
    if (frontier.includes(to)) return length;
    frontier = frontier
      .flatMap((status) => (Object.hasOwn(statuses, status) ? (statuses[status]?.next ?? []) : []))
      .filter((status) => !seen.has(status));
    for (const status of frontier) seen.add(status);
  }
  return null;
}

/** How a subject moved: one usual step, over a usual step, back along the usual steps, or otherwise. */
export function stepBetween(subject: SubjectId, from: string, to: string): Step {
  const [before, after] = [from.toLowerCase(), to.toLowerCase()];
  if (before === after) return 'same';
  const { statuses } = kindOf(subject);
  const ahead = distance(statuses, before, after);
  if (ahead !== null) return ahead > 1 ? 'skipped' : 'forward';
  return distance(statuses, after, before) === null ? 'other' : 'backward';
}
