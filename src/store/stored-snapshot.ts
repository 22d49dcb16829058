import type { z } from 'zod';
import type { NewSnapshot } from '../domain/changes/next-snapshot.ts';
import { NEW_SNAPSHOT, SNAPSHOT, type Snapshot } from '../domain/subjects/record.ts';
import { packFields, unpackFields } from './packed.ts';
import { readHash } from './stored.ts';

/**
 * Fields of a snapshot that are not stored where they have these values, as in most; `changedAtMs` is not where it is
 * `observedAtMs`. A commit removes the former ones.
 */
const OMITTED: ReadonlyMap<string, string> = new Map([
  ['flags', ''],
  ['ahead', ''],
  ['former', ''],
  ['emitted', ''],
  ['epoch', '1'],
]);

/** Returns the fields of a snapshot in its hash, each followed by its text. */
export function snapshotFields(snapshot: NewSnapshot): string[] {
  const { record, ...fields } = NEW_SNAPSHOT.encode(snapshot);
  const isOmitted = (field: string, text: string): boolean =>
    text === (field === 'changedAtMs' ? fields.observedAtMs : OMITTED.get(field));
  return Object.entries({ ...fields, ...packFields('record', record) }).flatMap(([field, text = '']) =>
    isOmitted(field, text) ? [] : [field, text],
  );
}

/**
 * Parses a snapshot. The readable part of an unreadable one is stored: its subject was reported before and must not be
 * reported as new. No number of its events is given twice, since there are no more events than snapshots, and no more of those
 * than commits.
 */
export function parseSnapshot(fields: { [field: string]: string }): {
  snapshot: Snapshot | null;
  reason: string | null;
} {
  const { version, status, sequence, eventId } = fields;
  if (version === undefined && status === undefined && sequence === undefined && eventId === undefined) {
    return { snapshot: null, reason: null };
  }
  const reported = eventId !== undefined;
  if (fields.compact !== undefined) return { snapshot: { ...salvage(fields), compact: true }, reason: null };
  const record = unpackFields('record', fields);
  const times = fields.observedAtMs === undefined ? {} : { changedAtMs: fields.observedAtMs };
  const whole = { ...times, ...fields, ...(record === undefined ? {} : { record }) };
  const { value, foreign } = readHash(SNAPSHOT, whole);
  if (value !== null) {
    const { eventId: _, ...snapshot } = value;
    return { snapshot: { ...snapshot, reported }, reason: foreign?.reason ?? null };
  }
  return { snapshot: salvage(fields), reason: foreign?.reason ?? null };
}

/** Returns the readable part of a snapshot that is not whole. */
function salvage(fields: { [field: string]: string }): Snapshot {
  const { shape } = SNAPSHOT;
  const { version, sequence, status } = fields;
  const count = readMember(shape.sequence, sequence) ?? readMember(shape.version, version);
  const commit = readMember(shape.commit, fields.commit) ?? 0;
  return {
    version: readMember(shape.version, version) ?? count ?? commit,
    sequence: count ?? commit,
    commit,
    status: status ?? '',
    updatedAt: readMember(shape.updatedAt, fields.updatedAt),
    record: {},
    observedAtMs: readMember(shape.observedAtMs, fields.observedAtMs) ?? 0,
    changedAtMs: readMember(shape.changedAtMs, fields.changedAtMs ?? fields.observedAtMs) ?? 0,
    pendingSince: readMember(shape.pendingSince, fields.pendingSince),
    flags: readMember(shape.flags, fields.flags) ?? [],
    ahead: null,
    former: [],
    // Each of these marks may have been reported, since they cannot be read.
    emitted: readMember(shape.emitted, fields.emitted) ?? ['.1'],
    epoch: readMember(shape.epoch, fields.epoch) ?? 1,
    unconfirmed: null,
    reported: fields.eventId !== undefined,
    salvaged: true,
  };
}

/** Reads a member of a snapshot that is not whole; null where it cannot be read either. */
function readMember<T>(member: z.ZodType<T>, text: string | undefined): T | null {
  return member.safeParse(text).data ?? null;
}
