import { randomBytes } from 'node:crypto';
import type { NewSnapshot } from '../domain/changes/next-snapshot.ts';
import { isFollowed } from '../domain/changes/second-source.ts';
import type { Event } from '../domain/events/event.ts';
import { PROMISED, type Promised } from '../domain/events/event-schema.ts';
import { type EndpointGroup, isPollable } from '../domain/subjects/kinds.ts';
import { type Snapshot, stageOf, type Unconfirmed } from '../domain/subjects/record.ts';
import { asSubjectId, eventKind, type SubjectId } from '../domain/subjects/subject.ts';
import type { Claim } from '../domain/subjects/subscription.ts';
import { openTransfer } from '../domain/transfers/transfer-move.ts';
import { laterTurn } from '../event-loop.ts';
import type { CheckEnding } from './checks.ts';
import type { RedisClient } from './commands.ts';
import type { Epoch } from './epoch.ts';
import { SubjectEntries } from './event-log.ts';
import { type Basis, basisOf, HeldSubjects, unconfirmedText } from './held-subjects.ts';
import type { Keys } from './keys.ts';
import { storedEntry } from './log-entry.ts';
import { expectedEntry, type OwnEntries } from './own-entries.ts';
import { pack } from './packed.ts';
import { parseMember } from './plan-members.ts';
import { scripts } from './scripts.ts';
import { JSON_TEXT, type OnForeign, RedisStore, readStored } from './stored.ts';
import { parseSnapshot, snapshotFields } from './stored-snapshot.ts';
import { openSumText } from './wallets.ts';

/**
 * The stored state of a subject: its snapshot, the claims of the subscriptions that still want it, and its last successful
 * poll (Redis time, null for one that is not tracked). `promised` are the promises of its quote, if any. `basis`: it was
 * not read, so that it may only serve a commit, which compares it (`seenAtMs` is null then). `fault`: why it cannot be read;
 * nothing is committed on it.
 */
export type SubjectEntry = {
  snapshot: Snapshot | null;
  claims: Claim[];
  seenAtMs: number | null;
  promised: Promised | null;
  basis?: Basis;
  fault?: string;
};

/** The state of a subject that was never seen. */
export const UNSEEN_SUBJECT: SubjectEntry = { snapshot: null, claims: [], seenAtMs: null, promised: null };

/**
 * One commit. `token` identifies its content, so that an equal commit is recognised. `before` is the state by which it was
 * decided, where its snapshot and event may serve the next one.
 */
export type Commit = {
  subject: SubjectId;
  before?: SubjectEntry;
  asOf: string;
  token: string;
  claims: readonly Claim[];
  snapshot?: NewSnapshot;
  /** The present snapshot where no new one comes: a subject that is tracked from now on is counted by it. */
  present?: NewSnapshot;
  event?: { event: Event; updatedAt: number | null; first: boolean; claimKeys: string[] | null };
  unconfirmed?: Unconfirmed | 'clear';
  flag?: string;
  /** Starts tracking an untracked subject: first polled after its virtual seconds and `restMs`, `latestMs` later at most. */
  track?: { virtualSeconds: number; restMs: number; latestMs: number };
  /** The check that ends with the event. */
  check?: CheckEnding;
};

/**
 * The result of a commit. `committed` once for its content, also where a client library has sent it twice; `already` where
 * another commit has stored the same. `gone` and `used` only where a check was to end, `outdated` only where the state before
 * was not read. `seenAtMs` is that state's then.
 */
export type CommitResult = {
  outcome: Exclude<Awaited<ReturnType<typeof scripts.commit>>['outcome'], 'behind'>;
  commit: string;
  seenAtMs: number | null;
};

/** The registry of subjects: snapshots and claims. */
export class SubjectStore extends RedisStore {
  readonly entries: SubjectEntries;
  readonly epoch: Epoch;
  readonly #own: OwnEntries | null;
  readonly #held = new HeldSubjects();
  /** Of the ids of this process's commits. */
  readonly #callPrefix = randomBytes(5).toString('base64url');
  #calls = 0;
  #countCursor = '0';

  constructor(
    redis: RedisClient,
    keys: Keys,
    options: { epoch: Epoch; onForeign?: OnForeign; own?: OwnEntries },
  ) {
    super(redis, keys, options);
    this.epoch = options.epoch;
    this.#own = options.own ?? null;
    this.entries = new SubjectEntries(redis, keys);
  }

  /**
   * Reads many subjects that a response shows, in one round trip: the untracked ones are stored from now for the retention. One
   * that cannot be read has a `fault`, and concerns no other.
   */
  async readEach(subjects: readonly SubjectId[]): Promise<SubjectEntry[]> {
    return this.#read(subjects, { areShown: true, isWhole: true, mayFail: true });
  }

  /**
   * Returns a transfer as this process last stored it, or as one that was never seen where it may be new; null where it must be
   * read. `status`: that of Redis, in lower case, null for none.
   */
  recall(
    subject: SubjectId,
    { status, mayBeNew }: { status: string | null; mayBeNew: boolean },
  ): SubjectEntry | null {
    const stored = this.#held.get(subject, { mayBeNew });
    if (stored === null) return null;
    const entry = this.entryOf(subject, { ...stored, polledAtMs: null, promised: '' });
    const isCurrent = status === null || entry.snapshot?.status.toLowerCase() === status;
    return isCurrent ? { ...entry, basis: basisOf(stored) } : null;
  }

  /** As `readEach`, without extending their retention. */
  async peekEach(subjects: readonly SubjectId[]): Promise<SubjectEntry[]> {
    return this.#read(subjects, { areShown: false, isWhole: true, mayFail: true });
  }

  /** Reads a subject without extending its retention. Throws where it cannot be read. */
  async peek(subject: SubjectId): Promise<SubjectEntry> {
    const [entry = UNSEEN_SUBJECT] = await this.#read([subject], { areShown: false, isWhole: true });
    return entry;
  }

  async #read(
    subjects: readonly SubjectId[],
    { areShown, isWhole, mayFail = false }: { areShown: boolean; isWhole: boolean; mayFail?: boolean },
  ): Promise<SubjectEntry[]> {
    if (subjects.length === 0) return [];
    const keys = this.keys;
    const entries = new Map<SubjectId, SubjectEntry>();
    for (const [endpointGroup, some] of Map.groupBy(subjects, this.keys.groupOf)) {
      const [subjectPrefix, claimsPrefix] = [keys.subject(''), keys.claims('')];
      const stored = await scripts.readSubjects(this.redis, {
        keys: { plan: keys.plan(endpointGroup) },
        args: { subjectPrefix, claimsPrefix, areShown, isWhole, promised: keys.promised, subjects: some },
      });
      stored.forEach((one, index) => {
        const subject = some[index];
        if (subject === undefined) return;
        const { fault } = one;
        if (fault !== '' && !mayFail) throw new Error(fault);
        entries.set(subject, { ...this.entryOf(subject, one), ...(fault === '' ? {} : { fault }) });
      });
    }
    return subjects.map((subject) => entries.get(subject) ?? UNSEEN_SUBJECT);
  }

  /** Returns subjects with a snapshot, the last changed first; `from` is the last one of the previous call. */
  async changed(from: ChangedSubject | null, count: number): Promise<ChangedSubject[]> {
    const highest = from === null ? '+inf' : String(from.atMs);
    const found: ChangedSubject[] = [];
    for (let offset = 0; found.length < count; offset += count) {
      const limit = ['LIMIT', offset, count] as const;
      const rows = await this.redis.zrange(
        this.keys.changedSubjects,
        highest,
        '-inf',
        'BYSCORE',
        'REV',
        ...limit,
        'WITHSCORES',
      );
      for (let index = 0; index + 1 < rows.length; index += 2) {
        const one = { subject: rows[index] ?? '', atMs: Number(rows[index + 1]) };
        // Those of one millisecond are ordered by their ids, the last first.
        if (from === null || one.atMs < from.atMs || one.subject < from.subject) found.push(one);
      }
      if (rows.length < count * 2) break;
    }
    return found.slice(0, count);
  }

  /**
   * Compares some tracked subjects with their counts and corrects these. Returns the wrong ones; `open`: sums of open
   * transfers.
   */
  async recount(): Promise<string[]> {
    const keys = this.keys;
    const group = countedGroup(keys);
    const plan = keys.plan(group);
    const [cursor, rows] = await this.redis.hscan(
      `${plan}:items`,
      this.#countCursor,
      'COUNT',
      COUNTED_AT_ONCE,
    );
    this.#countCursor = cursor;
    const members = rows.filter((_, index) => index % 2 === 0).map(parseMember);
    const subjects = members.flatMap(({ subject, route }) => (route === null ? subject : []));
    const entries = await this.#read(subjects, { areShown: false, isWhole: false, mayFail: true });
    const counted = subjects.flatMap((subject, index) => {
      const snapshot = entries[index]?.snapshot ?? null;
      return snapshot === null ? [] : [{ subject, commit: snapshot.commit, ...countOf(subject, snapshot) }];
    });
    return scripts.recount(this.redis, {
      keys: { plan, counts: keys.counts, repairCursors: keys.repairCursors(group) },
      args: { subjectPrefix: keys.subject(''), count: COUNTED_AT_ONCE, subjects: counted },
    });
  }

  /** Builds the state of a subject from its stored fields. Entries of another shape are reported and omitted. */
  entryOf(subject: SubjectId, stored: StoredSubject): SubjectEntry {
    return {
      snapshot: this.#snapshot(subject, stored.snapshot),
      claims: this.#claims(subject, stored.claims),
      seenAtMs: stored.polledAtMs,
      promised: this.#promised(subject, stored.promised),
    };
  }

  #promised(subject: SubjectId, text: string): Promised | null {
    if (text === '') return null;
    const where = `${this.keys.promised} ${subject}`;
    return readStored(PROMISED_TEXT, text, { what: 'quote', where, onForeign: this.onForeign });
  }

  #snapshot(subject: SubjectId, fields: { [field: string]: string }): Snapshot | null {
    const { snapshot, reason } = parseSnapshot(fields);
    if (reason !== null) this.onForeign({ what: 'snapshot', where: this.keys.subject(subject), reason });
    return snapshot;
  }

  #claims(subject: SubjectId, fields: { [field: string]: string }): Claim[] {
    return Object.entries(fields).flatMap(([key, value]) => {
      const claim = parseClaim(key, value);
      if (claim !== null) return [claim];
      const where = `${this.keys.claims(subject)} ${key}`;
      this.onForeign({ what: 'claim', where, reason: 'expected <at>:<before>:<served>' });
      return [];
    });
  }

  async commit(commit: Commit): Promise<CommitResult> {
    const { subject, snapshot, event, unconfirmed } = commit;
    const shown = snapshot ?? commit.present;
    const { counted, open } = countOf(subject, shown ?? null);
    const keys = this.keys;
    const epoch = event?.event.data.epoch ?? this.epoch.begun.epoch;
    const meta = event && {
      id: event.event.id,
      updatedAt: event.updatedAt ?? false,
      first: event.first,
      claimKeys: event.claimKeys ?? false,
    };
    const packed = event === undefined ? null : pack(JSON.stringify(event.event));
    const call = this.#callPrefix + (this.#calls++).toString(36);
    const fields = snapshot === undefined ? null : snapshotFields(snapshot);
    const request = {
      keys: {
        subject: keys.subject(subject),
        claims: keys.claims(subject),
        commit: keys.commit,
        events: keys.events,
        plan: keys.planOf(subject),
        counts: keys.counts,
        wanted: keys.wanted,
        changedSubjects: keys.changedSubjects,
        subjectEntries: keys.subjectEntries(subject),
        trimmed: keys.trimmed,
        openStatusPlan: keys.plan('open-status'),
        promised: keys.promised,
      },
      args: {
        subject,
        token: commit.token,
        asOf: commit.asOf,
        snapshot: fields,
        counted,
        event: packed,
        meta: meta ?? null,
        claims: claimsArgument(commit.claims),
        virtualSeconds: isPollable(subject) ? (commit.track?.virtualSeconds ?? null) : null,
        unconfirmed: unconfirmedText(unconfirmed),
        flag: commit.flag ?? '',
        restMs: Math.round(commit.track?.restMs ?? 0),
        atMs: null,
        latestMs: Math.round(commit.track?.latestMs ?? 0),
        open,
        check: commit.check ?? null,
        call,
        epoch,
        commits: this.epoch.commits,
        isFollowed: keys.statusSource === 'both' && shown !== undefined && isFollowed(subject, shown),
        basis: commit.before?.basis ?? null,
      },
    };
    const noteAnswered =
      event === undefined || packed === null
        ? undefined
        : this.#own?.expect(expectedEntry({ ...commit, event }, packed));
    const committing = scripts.commit(this.redis, request).finally(noteAnswered);
    const { entry, claimKeys, withheld, polledAtMs, ...done } = await committing;
    if (done.outcome === 'behind') {
      // As for a superseded response: the next poll starts from the state of Redis.
      this.epoch.checkSoon();
      return {
        outcome: commit.before?.basis === undefined ? 'superseded' : 'outdated',
        commit: done.commit,
        seenAtMs: null,
      };
    }
    if (done.outcome === 'committed') {
      this.epoch.noteCommit(epoch, { commits: Number(done.commit), entry });
      if (entry !== '' && event !== undefined && packed !== null) {
        const texts = { claimKeys, withheld };
        this.#own?.add(storedEntry(entry, event.event, { packed, ...texts }));
      }
    }
    const isFinal = shown === undefined || stageOf(subject, shown.status).finishAfterMs === 0;
    const isStored = done.outcome === 'committed' && !isFinal;
    this.#held.note(commit, isStored && fields !== null ? { call, commit: done.commit, fields } : null);
    const seenAtMs = commit.before?.basis === undefined ? (commit.before?.seenAtMs ?? null) : polledAtMs;
    // Its deliveries come with the same answer of Redis, and are sent first.
    if (event !== undefined) await laterTurn();
    return { outcome: done.outcome, commit: done.commit, seenAtMs };
  }

  /** Adds claims to a subject that its next poll serves, and requests that poll. True when one was new. */
  async claim(subject: SubjectId, claims: readonly Claim[]): Promise<boolean> {
    const keys = this.keys;
    const plan = keys.planOf(subject);
    return scripts.claim(this.redis, {
      keys: { claims: keys.claims(subject), plan, subject: keys.subject(subject), wanted: keys.wanted },
      args: { subject, claims: claimsArgument(claims), atMs: null },
    });
  }

  /** Stores transfers that a response showed. Returns all ever shown, and when the newest came (Redis time; null for none). */
  async noteTransfers(
    subject: SubjectId,
    shown: readonly SubjectId[],
  ): Promise<{ newestAtMs: number | null; transfers: SubjectId[] }> {
    const { newestMs, transfers } = await scripts.noteTransfers(this.redis, {
      keys: { transfers: this.keys.transfersOf(subject) },
      args: { transfers: shown },
    });
    return { newestAtMs: newestMs, transfers: transfers.map(asSubjectId) };
  }

  /** Notes that nobody names a subject any more; its polls end the tracking of one that is tracked. */
  async expire(subject: SubjectId): Promise<void> {
    const plan = this.keys.planOf(subject);
    const keys = { subject: this.keys.subject(subject), plan };
    await scripts.noteEnded(this.redis, { keys, args: { subject } });
  }
}

/** A subject with a snapshot, and when it was first seen or its last event was made (Redis time, ms). */
export type ChangedSubject = { subject: string; atMs: number };

const COUNTED_AT_ONCE = 200;

/** The endpoint group of transfers, and of most tracked subjects. */
function countedGroup({ statusSource }: Keys): EndpointGroup {
  return statusSource === 'open' ? 'open-status' : 'status';
}

/** Returns the keys under which a snapshot is counted, "" for none: among all subjects, and among open transfers. */
function countOf(subject: SubjectId, snapshot: NewSnapshot | null): { counted: string; open: string } {
  if (snapshot === null) return { counted: '', open: '' };
  const counted = `${eventKind(subject)}|${snapshot.status.toLowerCase()}`;
  return { counted, open: openSumText(openTransfer(subject, snapshot)) };
}

function claimsArgument(claims: readonly Claim[]): object {
  return claims.map((claim) => ({
    key: claim.key,
    at: String(claim.atMs),
    before: claim.historyBefore === null ? '' : String(claim.historyBefore),
  }));
}

/** Parses a stored claim; null for one of another shape, which a page or the poll of its subject makes anew. */
function parseClaim(key: string, value: string): Claim | null {
  const match = /^(\d+):(-?\d*):([01])$/.exec(value);
  if (match === null) return null;
  const [, at = '', before = '', served] = match;
  const historyBefore = before === '' ? null : Number(before);
  return { key, atMs: Number(at), historyBefore, served: served === '1' };
}

/** The reply of a script about a subject; `promised` is "" where nothing is known. */
type StoredSubject = {
  snapshot: { [field: string]: string };
  claims: { [key: string]: string };
  polledAtMs: number | null;
  promised: string;
};

const PROMISED_TEXT = JSON_TEXT.pipe(PROMISED);
