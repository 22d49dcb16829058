import { z } from 'zod';
import type { PlannedPoll } from '../domain/cadence/next-poll.ts';
import type { Claim } from '../domain/claim.ts';
import type { Event } from '../domain/event.ts';
import { canonicalJson, type JsonObject } from '../domain/json.ts';
import type { SnapshotDraft } from '../domain/next-snapshot.ts';
import type { Doubt, Snapshot } from '../domain/record.ts';
import { eventKind, isPollable, type SubjectId } from '../domain/subject.ts';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { JSON_TEXT, type OnForeign, readHash } from './stored.ts';
import { surfaceOf } from './surface.ts';

/**
 * What is known of a subject: its snapshot, the claims of those who still want it, and when an answer showed it last
 * (Redis time, null for never).
 */
export type Known = { snapshot: Snapshot | null; claims: Claim[]; seenAtMs: number | null };

/**
 * What a poll knows before its request. `asOf` is the commit counter, `nowMs` Redis time; `starts` counts the polls of
 * this subject that began since one ended, this one included; `dueMs` is when the poll was due (Redis time), null when it is on no schedule.
 */
export type PollStart = Known & { asOf: string; nowMs: number; starts: number; dueMs: number | null };

/** One commit. `token` names it, so that a client library that sends it twice does it once. */
export type Commit = {
  subject: SubjectId;
  asOf: string;
  token: string;
  claims: readonly Claim[];
  snapshot?: SnapshotDraft;
  event?: { event: Event; updatedAt: number | null; first: boolean; roots: string[] | null };
  doubt?: Doubt | 'clear';
  flag?: string;
  dueMs?: number;
};

export type CommitResult = { outcome: 'committed' | 'already' | 'superseded'; commit: string };

/** However often pages show a transfer, it is asked for itself after this time: a page may stand still. */
const LONGEST_WITHOUT_OWN_MS = 3_600_000;

/** The registry of subjects: snapshots, claims and the schedule. */
export class SubjectStore {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #retentionMs: number;
  readonly #onForeign: OnForeign;

  constructor(redis: RedisClient, keys: Keys, options: { retentionMs: number; onForeign?: OnForeign }) {
    this.#redis = redis;
    this.#keys = keys;
    this.#retentionMs = options.retentionMs;
    this.#onForeign = options.onForeign ?? (() => undefined);
  }

  /** Reads what a poll needs. `counted`: this is the poll of the subject itself, whose crash has to be noticed. */
  async beginPoll(subject: SubjectId, options: { counted: boolean }): Promise<PollStart> {
    const keys = this.#keys;
    const reply = await this.#redis.iwBeginPoll(
      keys.subject(subject),
      keys.claims(subject),
      keys.commit,
      keys.wanted,
      keys.due,
      keys.starts,
      keys.nudged,
      keys.seen,
      subject,
      options.counted ? '1' : '0',
    );
    const [asOf, seconds, microseconds, starts, due, fields, claims, seen] = reply;
    return {
      asOf,
      nowMs: Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000),
      starts,
      dueMs: due === '' ? null : Number(due),
      snapshot: this.#snapshot(subject, pairs(fields)),
      claims: this.#claims(subject, pairs(claims)),
      seenAtMs: seen === '' ? null : Number(seen),
    };
  }

  /**
   * Reads many subjects in one round trip, and keeps the finished ones among them: what a page still shows must not
   * expire, or it would be seen for the first time again.
   */
  async look(subjects: readonly SubjectId[]): Promise<Known[]> {
    if (subjects.length === 0) return [];
    const pipeline = this.#redis.pipeline();
    for (const subject of subjects) {
      pipeline.hgetall(this.#keys.subject(subject));
      pipeline.hgetall(this.#keys.claims(subject));
      pipeline.pexpire(this.#keys.subject(subject), this.#retentionMs, 'GT');
      pipeline.pexpire(this.#keys.claims(subject), this.#retentionMs, 'GT');
    }
    pipeline.hmget(this.#keys.seen, ...subjects);
    const replies = (await pipeline.exec()) ?? [];
    const error = replies.find(([failure]) => failure !== null)?.[0];
    if (error) throw error;
    const seen = z.array(z.string().nullable()).parse(replies.at(-1)?.[1]);
    return subjects.map((subject, index) => ({
      snapshot: this.#snapshot(subject, hashReply(replies[index * 4])),
      claims: this.#claims(subject, hashReply(replies[index * 4 + 1])),
      seenAtMs: seen[index] ? Number(seen[index]) : null,
    }));
  }

  #snapshot(subject: SubjectId, fields: { [field: string]: string }): Snapshot | null {
    const { snapshot, reason } = parseSnapshot(fields);
    if (reason !== null) this.#onForeign({ what: 'snapshot', where: this.#keys.subject(subject), reason });
    return snapshot;
  }

  #claims(subject: SubjectId, fields: { [field: string]: string }): Claim[] {
    return Object.entries(fields).flatMap(([root, value]) => {
      const claim = parseClaim(root, value);
      if (claim !== null) return [claim];
      const where = `${this.#keys.claims(subject)} ${root}`;
      this.#onForeign({ what: 'claim', where, reason: 'expected <at>:<before>:<served>' });
      return [];
    });
  }

  /** Notes when an answer showed some polled subjects, also where it said nothing new. */
  async noteSeen(subjects: readonly SubjectId[], atMs: number): Promise<void> {
    if (subjects.length === 0) return;
    await this.#redis.hset(this.#keys.seen, Object.fromEntries(subjects.map((subject) => [subject, atMs])));
  }

  /** When some subjects are polled next (Redis time, ms); null for those on no schedule. */
  async dueMs(subjects: readonly SubjectId[]): Promise<(number | null)[]> {
    if (subjects.length === 0) return [];
    const scores = await this.#redis.zmscore(this.#keys.due, ...subjects);
    return scores.map((score) => (score === null ? null : Number(score)));
  }

  async commit(commit: Commit): Promise<CommitResult> {
    const { subject, snapshot, event, doubt } = commit;
    const keys = this.#keys;
    const meta = event && {
      id: event.event.id,
      updatedAt: event.updatedAt ?? false,
      first: event.first,
      roots: event.roots ?? false,
    };
    const [outcome, number] = await this.#redis.iwCommit(
      keys.subject(subject),
      keys.claims(subject),
      keys.commit,
      keys.events,
      keys.due,
      keys.counts,
      keys.wanted,
      subject,
      commit.token,
      commit.asOf,
      snapshot ? JSON.stringify(snapshotFields(snapshot)) : '',
      snapshot ? `${eventKind(subject)}|${snapshot.status.toLowerCase()}` : '',
      event ? JSON.stringify(event.event) : '',
      meta ? JSON.stringify(meta) : '',
      claimsArgument(commit.claims),
      commit.dueMs === undefined || !isPollable(subject) ? '' : String(commit.dueMs),
      doubt === undefined ? '' : doubt === 'clear' ? '-' : `${doubt.sinceMs}|${doubt.key}`,
      commit.flag ?? '',
      String(this.#retentionMs),
    );
    return { outcome: COMMIT_OUTCOME.parse(outcome), commit: number };
  }

  /** Ends the poll of a subject. Returns the ms until its next poll, or null when it has none. */
  async endPoll(subject: SubjectId, next: PlannedPoll | null): Promise<number | null> {
    const afterMs = await this.#end(subject, next, '');
    return afterMs === '' ? null : Number(afterMs);
  }

  /**
   * Takes a subject off the schedule that a page showed finished, as its snapshot of a commit says. False where it has
   * to stay: the snapshot has changed since, a poll is under way, or somebody wants more of it than pages show.
   */
  async retire(subject: SubjectId, commit: number): Promise<boolean> {
    return (await this.#end(subject, null, String(commit))) === '';
  }

  async #end(subject: SubjectId, next: PlannedPoll | null, asOf: string): Promise<string> {
    const keys = this.#keys;
    return this.#redis.iwEndPoll(
      keys.due,
      keys.starts,
      keys.nudged,
      keys.demand(surfaceOf(subject)),
      keys.subject(subject),
      keys.claims(subject),
      keys.wanted,
      keys.counts,
      keys.totalDemand(surfaceOf(subject)),
      keys.seen,
      keys.looked(subject),
      keys.own,
      subject,
      next === null ? '' : String(Math.round(next.afterMs)),
      next === null || next.demand === null ? '' : String(next.demand),
      String(this.#retentionMs),
      asOf,
    );
  }

  /** Whether a subject is on the schedule. */
  async isPolled(subject: SubjectId): Promise<boolean> {
    return (await this.#redis.zscore(this.#keys.due, subject)) !== null;
  }

  /**
   * Moves a poll that is due sooner to so many ms from now, or to the end of the longest time without one of its own.
   * Returns the ms until it; null when it keeps its time.
   */
  async movePoll(subject: SubjectId, afterMs: number): Promise<number | null> {
    const keys = this.#keys;
    const surface = surfaceOf(subject);
    const moved = await this.#redis.iwMovePoll(
      keys.due,
      keys.demand(surface),
      keys.totalDemand(surface),
      keys.own,
      subject,
      String(Math.round(afterMs)),
      String(LONGEST_WITHOUT_OWN_MS),
    );
    return moved === '' ? null : Number(moved);
  }

  /** Gives a subject claims that its next poll serves. True when one was new, so that the subject has to be polled. */
  async claim(subject: SubjectId, claims: readonly Claim[]): Promise<boolean> {
    const keys = this.#keys;
    const added = await this.#redis.iwClaim(
      keys.claims(subject),
      keys.due,
      keys.subject(subject),
      keys.wanted,
      subject,
      claimsArgument(claims),
    );
    return added === 1;
  }

  /** Lets a subject that nobody polls go after the retention; one that is polled is kept by its polls. */
  async expire(subject: SubjectId): Promise<void> {
    if (await this.isPolled(subject)) return;
    await this.#redis.pexpire(this.#keys.subject(subject), this.#retentionMs);
    await this.#redis.pexpire(this.#keys.claims(subject), this.#retentionMs);
  }

  /** Has a subject polled again as soon as the poll that may be running has ended. */
  async nudge(subject: SubjectId): Promise<void> {
    await this.#redis.sadd(this.#keys.nudged, subject);
  }
}

const COMMIT_OUTCOME = z.enum(['committed', 'already', 'superseded']);

function claimsArgument(claims: readonly Claim[]): string {
  return JSON.stringify(
    claims.map((claim) => ({
      root: claim.root,
      at: String(claim.atMs),
      before: claim.historyBefore === null ? '' : String(claim.historyBefore),
    })),
  );
}

function snapshotFields(snapshot: SnapshotDraft): string[] {
  const fields: [string, string][] = [
    ['version', String(snapshot.version)],
    ['sequence', String(snapshot.sequence)],
    ['status', snapshot.status],
    ['updatedAt', String(snapshot.updatedAt ?? '')],
    ['record', canonicalJson(snapshot.record)],
    ['observedAtMs', String(snapshot.observedAtMs)],
    ['changedAtMs', String(snapshot.changedAtMs)],
    ['pendingSince', String(snapshot.pendingSince ?? '')],
    ['flags', snapshot.flags.join('\n')],
  ];
  return fields.flat();
}

const integer = z
  .string()
  .regex(/^-?\d+$/)
  .transform(Number);
const integerOrNone = z.union([z.literal('').transform(() => null), integer]);

const SNAPSHOT = z.object({
  version: integer,
  sequence: integer,
  commit: integer,
  status: z.string(),
  updatedAt: integerOrNone,
  record: JSON_TEXT.pipe(z.record(z.string(), z.json())).transform((record): JsonObject => record),
  observedAtMs: integer,
  changedAtMs: integer,
  pendingSince: integerOrNone,
  flags: z.string().transform((text) => (text === '' ? [] : text.split('\n'))),
  eventId: z.string().optional(),
  doubt: z
    .string()
    .optional()
    .transform((text): Doubt | null => {
      if (text === undefined) return null;
      const bar = text.indexOf('|');
      return { sinceMs: Number(text.slice(0, bar)), key: text.slice(bar + 1) };
    }),
});

/**
 * Reads a snapshot. Of one that cannot be read, what can be is kept: its subject was told before and must not be told
 * as new. No number of its events is given twice, for there are no more events than snapshots, and no more of those
 * than commits.
 */
function parseSnapshot(fields: { [field: string]: string }): {
  snapshot: Snapshot | null;
  reason: string | null;
} {
  const { version, status, sequence, eventId } = fields;
  if (version === undefined && status === undefined && sequence === undefined && eventId === undefined) {
    return { snapshot: null, reason: null };
  }
  const told = eventId !== undefined;
  const { value, foreign } = readHash(SNAPSHOT, fields);
  if (value !== null) {
    const { eventId: _, ...snapshot } = value;
    return { snapshot: { ...snapshot, told }, reason: foreign?.reason ?? null };
  }
  const part = SALVAGED.parse(fields);
  const count = part.sequence ?? part.version ?? part.commit ?? 0;
  const salvaged: Snapshot = {
    ...part,
    version: part.version ?? count,
    sequence: count,
    commit: part.commit ?? 0,
    record: {},
    doubt: null,
    told,
    salvaged: true,
  };
  return { snapshot: salvaged, reason: foreign?.reason ?? null };
}

const SALVAGED = z.object({
  version: integer.nullable().catch(null),
  sequence: integer.nullable().catch(null),
  commit: integer.nullable().catch(null),
  status: z.string().catch(''),
  updatedAt: integerOrNone.catch(null),
  observedAtMs: integer.catch(0),
  changedAtMs: integer.catch(0),
  pendingSince: integerOrNone.catch(null),
  flags: SNAPSHOT.shape.flags.catch([]),
});

/** A claim as it is stored; null for one of another shape, which is made anew by a page or by the poll of its subject. */
function parseClaim(root: string, value: string): Claim | null {
  const match = /^(\d+):(-?\d*):([01])$/.exec(value);
  if (match === null) return null;
  const [, at = '', before = '', served] = match;
  return {
    root,
    atMs: Number(at),
    historyBefore: before === '' ? null : Number(before),
    served: served === '1',
  };
}

function pairs(list: readonly string[]): { [field: string]: string } {
  const fields: { [field: string]: string } = {};
  for (let index = 0; index + 1 < list.length; index += 2) fields[list[index] ?? ''] = list[index + 1] ?? '';
  return fields;
}

const HASH = z.record(z.string(), z.string());

function hashReply(reply: [Error | null, unknown] | undefined): { [field: string]: string } {
  if (reply === undefined || reply[0] !== null) throw reply?.[0] ?? new Error('Redis gave no reply');
  return HASH.parse(reply[1]);
}
