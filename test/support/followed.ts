import { decide } from '../../src/domain/changes/decide.ts';
import type { Decision, Transition } from '../../src/domain/changes/decision.ts';
import { nextSnapshot } from '../../src/domain/changes/next-snapshot.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { statusMember } from '../../src/domain/subjects/kinds.ts';
import type { Snapshot, UpstreamRecord } from '../../src/domain/subjects/record.ts';
import type { SubjectId } from '../../src/domain/subjects/subject.ts';

/** An answer about a subject: its status, its time, and its other members. */
export type Answer = { status: string; updatedAt?: number | null; more?: JsonObject; unreadable?: string[] };

/** One subject over several answers: each is decided and stored as a commit does it. */
export class Followed {
  readonly subject: SubjectId;
  readonly reported: Transition[] = [];
  snapshot: Snapshot | null = null;
  nowMs = 1_763_638_260_000;

  constructor(subject: SubjectId) {
    this.subject = subject;
  }

  /** Applies an exact poll, or a page, some seconds after the last answer. */
  poll(answer: Answer, { afterSeconds = 1, exact = true, history = false } = {}): Decision {
    this.nowMs += afterSeconds * 1_000;
    const { nowMs, subject, snapshot } = this;
    const context = { nowMs, exact, history, confirmAfterMs: 600_000 };
    const decision = decide(snapshot, this.#record(answer), context);
    if (decision.outcome === 'stale') {
      if (snapshot !== null && decision.unconfirmed !== null)
        this.snapshot = { ...snapshot, unconfirmed: decision.unconfirmed };
      return decision;
    }
    const event = decision.outcome === 'first' || decision.outcome === 'changed';
    if (event) this.reported.push(decision.transition);
    if (decision.accepted === null)
      this.snapshot = snapshot === null ? null : { ...snapshot, unconfirmed: null };
    else {
      const next = nextSnapshot(snapshot, decision.accepted, { subject, nowMs, event });
      this.snapshot = { ...next, commit: 1, reported: event || snapshot?.reported === true };
    }
    return decision;
  }

  get types(): string[] {
    return this.reported.map(({ type }) => type);
  }

  #record({ status, updatedAt = null, more = {}, unreadable = [] }: Answer): UpstreamRecord {
    const raw = { ...more, [statusMember(this.subject)]: status, updatedAt };
    return { subject: this.subject, status, updatedAt, names: [], raw, unreadable };
  }
}
