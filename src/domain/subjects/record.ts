import { z } from 'zod';
import { type StageRule, UNKNOWN_STATUS, UNSEEN, WATCHED } from '../cadence/watch-rules.ts';
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import { type Kind, kindOf, statusOf } from './kinds.ts';
import { type SubjectId, subjectKind } from './subject.ts';

/**
 * A parsed upstream record. `updatedAt`: Unix seconds, null for none. `raw`: the whole record, with unknown members.
 * `unreadable`: its top-level members of another shape than the interface's. `names`: its intent hashes.
 */
export type UpstreamRecord = {
  subject: SubjectId;
  status: string;
  updatedAt: number | null;
  names: string[];
  raw: JsonObject;
  unreadable: string[];
};

/** A stale answer that exact polls repeat: the repeated key, and its first time (Redis time, ms). */
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

/** JSON is not validated member by member, in either direction. */
const RECORD = z.codec(z.string(), z.custom<JsonObject>(), {
  decode: (text, context): JsonObject => {
    const value = parsed(text);
    if (value !== undefined && isJsonObject(value)) return value;
    context.issues.push({ code: 'custom', message: 'expected a JSON object', input: text });
    return z.NEVER;
  },
  encode: canonicalJson,
});

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

const WRITTEN = {
  /** Number of snapshots. */
  version: INTEGER,
  /** Number of events. */
  sequence: INTEGER,
  status: z.string(),
  updatedAt: INTEGER_OR_NONE,
  record: RECORD,
  /** Redis time. */
  observedAtMs: INTEGER,
  /** Redis time. */
  changedAtMs: INTEGER,
  /** First `updatedAt` (Unix seconds) in the present waiting stage, or in the last one. */
  pendingSince: INTEGER_OR_NONE,
  /** Timed events that were already emitted. */
  flags: listOf('\n'),
  /** The status that v1 gave, where the open source is ahead of it (see changes/second-source.ts); null elsewhere. */
  ahead: z.codec(z.string().optional(), z.string().nullable(), {
    decode: (text) => text || null,
    encode: (status) => status ?? '',
  }),
  /** Hashes of the values and answers that it had before (see `formerAfter`). */
  former: listOf(' '),
  emitted: listOf(' '),
  /** Epoch of its newest event; snapshots from before epochs belong to the first. */
  epoch: EPOCH,
};

export const NEW_SNAPSHOT = z.object(WRITTEN);

/** The last accepted record of a subject as it is stored, with the notes of commits. */
export const SNAPSHOT = z.object({
  ...WRITTEN,
  commit: INTEGER,
  unconfirmed: UNCONFIRMED,
  /** Latest event that matched every claim of the subject. */
  eventId: z.string().optional(),
});

/** The last accepted record. `reported`: an event matched every claim of the subject; false while all of it was history. */
export type Snapshot = Omit<z.output<typeof SNAPSHOT>, 'eventId'> & {
  reported: boolean;
  /** Not readable as a whole: the record is unknown, and the status is known only if not empty. */
  salvaged?: true;
  /** Reduced to the parts that identify its state (see store/ended-subjects.ts); also `salvaged`. */
  compact?: true;
};

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Move of a subject along the usual steps of its kind. An unknown status is on none of them. */
export type Step = 'same' | 'forward' | 'skipped' | 'backward' | 'other';

/** Stage of a subject in a status; null as status means that the upstream has not shown the subject yet. */
export function stageOf(subject: SubjectId, status: string | null): StageRule {
  if (subjectKind(subject) === 'wallet') return WATCHED;
  if (status === null) return UNSEEN;
  return statusOf(subject, status)?.stage ?? UNKNOWN_STATUS;
}

/** Number of usual steps from one status to another; null when none lead there. */
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

/** Classifies a move: one usual step, over a usual step, back along the usual steps, or otherwise. */
export function stepBetween(subject: SubjectId, from: string, to: string): Step {
  const [before, after] = [from.toLowerCase(), to.toLowerCase()];
  if (before === after) return 'same';
  const { statuses } = kindOf(subject);
  const ahead = distance(statuses, before, after);
  if (ahead !== null) return ahead > 1 ? 'skipped' : 'forward';
  return distance(statuses, after, before) === null ? 'other' : 'backward';
}
