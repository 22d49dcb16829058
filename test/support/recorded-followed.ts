import { expect } from 'vitest';
import { decide, withStatus } from '../../src/domain/changes/decide.ts';
import type { Transition } from '../../src/domain/changes/decision.ts';
import { nextSnapshot } from '../../src/domain/changes/next-snapshot.ts';
import type { Event } from '../../src/domain/events/event.ts';
import { STORED_EVENT } from '../../src/domain/events/event-schema.ts';
import { makeEvent } from '../../src/domain/events/make-event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { Snapshot, UpstreamRecord } from '../../src/domain/subjects/record.ts';
import { eventKind, type SubjectId } from '../../src/domain/subjects/subject.ts';
import { isOtherContent, type StatedContent } from './recorded-oracle.ts';
import { FROM_SECONDS } from './recorded-shape.ts';
import { snapshotOf } from './snapshot.ts';

/** Redis time of the first answer. */
export const NOW_MS = FROM_SECONDS * 1_000 + 60_000;

/** A subject in a test: its state, and the events that were made of its answers. */
export class FollowedSubject {
  readonly subject: SubjectId;
  snapshot: Snapshot | null;
  readonly events: Event[] = [];
  #nowMs = NOW_MS;

  constructor(subject: SubjectId, first: JsonObject | null) {
    this.subject = subject;
    const status = first?.status ?? first?.state;
    this.snapshot =
      first === null
        ? null
        : snapshotOf(NOW_MS)(String(status), {
            record: first,
            updatedAt: typeof first.updatedAt === 'number' ? first.updatedAt : null,
          });
  }

  /** Decides on a record as the ingestion of a poll does. True when the state accepts it at once. */
  answer(raw: UpstreamRecord, { exact }: { exact: boolean }): boolean {
    const before = this.snapshot;
    const record = withStatus(raw, before);
    this.#nowMs += 20_000;
    const context = { nowMs: this.#nowMs, exact, history: before !== null, confirmAfterMs: 600_000 };
    const decision = decide(before, record, context);
    if (decision.outcome === 'stale') {
      if (before !== null && decision.unconfirmed !== null)
        this.snapshot = { ...before, unconfirmed: decision.unconfirmed };
      return false;
    }
    if (decision.accepted === null) return true;
    const isEvent = 'transition' in decision;
    const { subject } = this;
    const next = nextSnapshot(before, decision.accepted, { subject, nowMs: this.#nowMs, event: isEvent });
    this.snapshot = { ...next, commit: 1, reported: true };
    if (isEvent) {
      const event = this.#event(decision.transition, before, decision.accepted);
      // The process that stores it sends it as it is, others as they read it: the same bytes.
      const text = JSON.stringify(event);
      expect(JSON.stringify(STORED_EVENT.parse(JSON.parse(text)))).toBe(text);
      this.events.push(event);
    }
    return true;
  }

  #event(
    transition: Transition,
    before: Snapshot | null,
    accepted: { record: JsonObject; updatedAt: number | null },
  ): Event {
    return makeEvent({
      subject: { kind: eventKind(this.subject), id: this.subject },
      sequence: this.snapshot?.sequence ?? 1,
      epoch: 1,
      transition,
      record: accepted.record,
      updatedAt: accepted.updatedAt,
      before: before?.record ?? null,
      nowMs: this.#nowMs,
    });
  }
}

const lower = (text: string): string => text.toLowerCase();

/** Compares the event of one answer with what the answer states, and what cannot be read with what is reported. */
export function expectOne(
  followed: FollowedSubject,
  { before, stated, record }: { before: JsonObject | null; stated: StatedContent; record: UpstreamRecord },
): void {
  expect(record.raw).toEqual(stated.record);
  expect(record.unreadable.toSorted()).toEqual(stated.unreadable.toSorted());
  expect([record.status, record.updatedAt]).toEqual([stated.status, stated.updatedAt]);
  const [event] = followed.events;
  if (before === null) {
    expect(event?.data).toMatchObject({ status: stated.status, previousStatus: null });
    return;
  }
  const former = String(before.status ?? before.state);
  const isMoved = stated.status !== '' && lower(stated.status) !== lower(former);
  const isNewer = stated.updatedAt !== null && stated.updatedAt > Number(before.updatedAt);
  const isDue = isMoved || isOtherContent(before, stated, { isNewer });
  expect(followed.events.length, JSON.stringify(event?.data.changes ?? null)).toBe(isDue ? 1 : 0);
  if (event === undefined) return;
  expect(event.data.previousStatus).toBe(former);
  expect(event.data.status).toBe(stated.status === '' ? former : stated.status);
  if (isMoved) expect(event.type).toBe(`${eventKind(followed.subject)}.${lower(stated.status)}`);
  for (const path of event.data.changes) {
    const name = path.split(/[.[]/)[0] ?? '';
    expect(stated.unreadable).not.toContain(name);
    expect(Object.hasOwn(stated.record, name)).toBe(true);
  }
}

/** Answers healthily until the state accepts it: then the state is the truth, and each move was reported once. */
export function expectTruth(
  followed: FollowedSubject,
  healthy: UpstreamRecord,
  { exact, moves }: { exact: boolean; moves: number },
): void {
  const isUntimed = followed.snapshot?.updatedAt == null && healthy.updatedAt !== null;
  let answers = 0;
  // Without times, an answer that returns to a former value is confirmed by further ones.
  while (!followed.answer(healthy, { exact }) && answers < 5) answers += 1;
  // What the first answer showed too much, at a time that could not be read, ends with the next time (docs/assumptions.md).
  if (isUntimed) followed.answer({ ...healthy, updatedAt: Number(healthy.updatedAt) + 10 }, { exact });
  const { snapshot } = followed;
  expect(lower(snapshot?.status ?? '')).toBe(lower(healthy.status));
  const truth = { status: healthy.status, updatedAt: null, record: healthy.raw, unreadable: [] };
  expect(isOtherContent(snapshot?.record ?? {}, truth, { isNewer: true })).toBe(false);
  const moved = followed.events.filter(
    ({ data }) => lower(data.status ?? '') !== lower(data.previousStatus ?? ''),
  );
  expect(moved.length).toBe(moves);
}
