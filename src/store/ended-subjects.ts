import { asSubjectId, parseSubjectId } from '../domain/subjects/subject.ts';
import { scripts } from './scripts.ts';
import { RedisStore } from './stored.ts';

/*
 * The states of a subject that is tracked no more. None expires by a clock of Redis: the moves are made by
 * the repeating check, by confirmed time (see confirmed-time.ts), a bounded number at a time, oldest first.
 *
 *   state    | stored as                              | ends when
 *   ---------|----------------------------------------|-------------------------------------------------------------------
 *   tracked, | whole, not in `ended`                  | its tracking ends, or it is named no more: ended
 *   or named |                                        |
 *   unseen   | claims alone: no response has shown it | a response shows it: tracked. A vault that only its quote leads to: an
 *            |                                        | hour after its deadline (`unseenUntilMs`), ended without a snapshot
 *   ended    | whole; in `ended` since it was shown   | a response shows it: ended anew. The retention has passed: held,
 *            | last, or its tracking has ended        | absent where nothing holds it, or removed without a snapshot
 *   held     | compact, with `shownAtMs`; checked     | a response shows it: ended. No claim by a named subject remains, and
 *            | once a day                             | of each wallet that claims it all pages were read, by a sweep that
 *            |                                        | began after `shownAtMs`: absent
 *   absent   | compact, with `absentAtMs`; in `ended` | a response shows it: ended. The retention has passed: removed, or
 *            | since then                             | held where something holds it by now
 *   removed  | nothing                                | a response shows it: it counts as new, except old records of a
 *            |                                        | wallet (see domain/changes/decision.ts)
 *
 * Compact: status, `updatedAt`, sequence and the marks of its events, which identify an unchanged state, and the next
 * event has the next sequence. Where only wallets claim it, it is a member of one hash (commands/include/compact.lua), in place of
 * two keys and its entry in `ended`: about 0.2 kB, a tenth of the whole.
 */

const MOST_MOVED = 500;

const CHECKED_AT_ONCE = 200;

/** Times by which moves are due, ms; `retentionMs` is a span. */
type CompactTimes = { confirmedMs: number; retentionMs: number; loggedFromMs: number };

/** The results of one round. */
export type EndedMoves = { compacted: number; removed: number };

/** The subjects that nobody tracks any more. */
export class EndedSubjects extends RedisStore {
  #cursor = '0';
  #compactCursor = '0';

  /**
   * Makes the moves that are due at a confirmed time (ms): of whole subjects the longest wait first, of compact ones those in a
   * bounded part of all. A whole subject that ended at `loggedFromMs`, the time of the oldest entry of the log, or later stays whole:
   * the log still has its events, and compact it would never learn when they have left it.
   */
  async compact({ confirmedMs, retentionMs, loggedFromMs }: CompactTimes): Promise<EndedMoves> {
    const keys = this.keys;
    const due = await this.redis.zrangebyscore(
      keys.ended,
      '-inf',
      Math.min(confirmedMs - retentionMs, loggedFromMs - 1),
      'LIMIT',
      0,
      MOST_MOVED,
    );
    const compact = await scripts.listCompact(this.redis, {
      keys: { compact: keys.compact },
      args: { cursor: this.#compactCursor, count: CHECKED_AT_ONCE, beforeMs: confirmedMs - retentionMs },
    });
    this.#compactCursor = compact.cursor;
    const moves: EndedMoves = { compacted: 0, removed: 0 };
    // A member of another program stays where it is, and is no reason to move nothing.
    const named = [...due, ...compact.subjects].filter((text) => parseSubjectId(text) !== null);
    const subjects = named.map(asSubjectId);
    for (const [endpointGroup, some] of Map.groupBy(subjects, this.keys.groupOf)) {
      const { compacted, removed } = await scripts.compactEnded(this.redis, {
        keys: this.#keysOf(endpointGroup),
        args: { confirmedMs, retentionMs, subjectPrefix: keys.subject(''), subjects: some },
      });
      moves.compacted += compacted;
      moves.removed += removed;
    }
    return moves;
  }

  /** Adds untracked subjects with a snapshot that are missing in `ended`, from a bounded part of all. Returns how many. */
  async repair(): Promise<number> {
    const keys = this.keys;
    const [cursor, rows] = await this.redis.zscan(
      keys.changedSubjects,
      this.#cursor,
      'COUNT',
      CHECKED_AT_ONCE,
    );
    this.#cursor = cursor;
    const subjects = rows.filter((_, index) => index % 2 === 0).map(asSubjectId);
    let found = 0;
    for (const [endpointGroup, some] of Map.groupBy(subjects, this.keys.groupOf)) {
      const args = { subjectPrefix: keys.subject(''), subjects: some };
      found += await scripts.repairEnded(this.redis, { keys: this.#keysOf(endpointGroup), args });
    }
    return found;
  }

  #keysOf(endpointGroup: string): Record<'ended' | 'plan' | 'wanted' | 'changedSubjects', string> {
    const { ended, wanted, changedSubjects } = this.keys;
    return { ended, plan: this.keys.plan(endpointGroup), wanted, changedSubjects };
  }
}
