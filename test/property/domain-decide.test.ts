import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decide } from '../../src/domain/changes/decide.ts';
import type { Decision } from '../../src/domain/changes/decision.ts';
import { diffRecords } from '../../src/domain/changes/diff.ts';
import { nextSnapshot } from '../../src/domain/changes/next-snapshot.ts';
import { makeEvent } from '../../src/domain/events/make-event.ts';
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from '../../src/domain/json.ts';
import type { Snapshot, UpstreamRecord } from '../../src/domain/subjects/record.ts';
import { gaslessId } from '../../src/domain/subjects/subject.ts';

const SUBJECT = gaslessId('a');
const NOW_MS = 1_763_638_260_000;
const CONFIRM_MS = 600_000;
const WORDS = ['pending', 'PENDING', 'submitted', 'published', 'failed', 'unknown', 'Rerouting'];

type Answer = { status: string; updatedAt: number | null; content: JsonObject };
type DecideOptions = { exact?: boolean; history?: boolean; nowMs?: number };

function record({ status, updatedAt, content }: Answer): UpstreamRecord {
  const raw = { id: 'gasless:a', type: 'gasless', ...content, status, updatedAt };
  return { subject: SUBJECT, status, updatedAt, names: [], raw, unreadable: [] };
}

function decideOn(snapshot: Snapshot | null, answer: Answer, context: DecideOptions = {}): Decision {
  const { exact = true, history = false, nowMs = NOW_MS } = context;
  return decide(snapshot, record(answer), { exact, history, nowMs, confirmAfterMs: CONFIRM_MS });
}

/** Snapshot after a decision was stored, as the commit does it. */
function stored(before: Snapshot | null, decision: Decision, nowMs = NOW_MS): Snapshot | null {
  if (decision.outcome === 'stale') {
    return before === null || decision.unconfirmed === null
      ? before
      : { ...before, unconfirmed: decision.unconfirmed };
  }
  if (decision.accepted === null) return before === null ? null : { ...before, unconfirmed: null };
  const event = decision.outcome === 'first' || decision.outcome === 'changed';
  const reported = event || before?.reported === true;
  return {
    ...nextSnapshot(before, decision.accepted, { subject: SUBJECT, nowMs, event }),
    commit: 1,
    reported,
  };
}

function isEvent(decision: Decision): boolean {
  return decision.outcome === 'first' || decision.outcome === 'changed';
}

const hash = fc.integer({ min: 1, max: 60 }).map((n) => `0xabc${n}`);
const transaction = fc.record({
  chainId: fc.constantFrom(1, 10),
  txHash: hash,
  amount: fc.constantFrom('1', '2'),
});
const subStatus = fc.record({
  chainId: fc.constantFrom(1, 10),
  quoteIds: fc.uniqueArray(fc.constantFrom('quote:a', 'quote:b', 'quote:c'), { minLength: 1, maxLength: 3 }),
  txHash: fc.option(hash),
  intentHashes: fc.uniqueArray(hash, { maxLength: 3 }),
  state: fc.constantFrom('pending', 'submitted', 'failed'),
});
const step = fc.record({
  type: fc.constantFrom('SWAP', 'BRIDGE'),
  intentHash: hash,
  status: fc.constantFrom('OPEN', 'FULFILLED'),
  transactions: fc.record({ created: transaction, fulfilled: transaction }, { requiredKeys: [] }),
});

/** The complete content of the upstream at one time; `name` distinguishes its sub-statuses. */
const contentBy = (name: (sub: { chainId: number; state: string }) => string): fc.Arbitrary<JsonObject> =>
  fc.record({
    intentHashes: fc.uniqueArray(hash, { minLength: 1, maxLength: 4 }),
    txHash: hash,
    sourceTx: transaction,
    destinationTx: transaction,
    subStatuses: fc.uniqueArray(subStatus, { maxLength: 3, selector: name }),
    steps: fc.array(step, { maxLength: 3 }),
    mood: fc.constantFrom('good', 'bad'),
  });
const content = contentBy(({ chainId, state }) => `${chainId}${state}`);

const answer: fc.Arbitrary<Answer> = fc.record({
  status: fc.constantFrom(...WORDS),
  updatedAt: fc.option(fc.integer({ min: 100, max: 104 })),
  content: fc.oneof(content, fc.constant({})),
});

/** Numbers that select, one after the other, the omissions of an answer. */
const omissions = fc.array(fc.nat(9), { minLength: 40, maxLength: 40 });

/** Sets lose any elements, lists their last ones. */
const SETS = ['intentHashes', 'quoteIds', 'subStatuses'];

/** The content with members omitted or emptied, elements missing, and sets in another order. */
function weaken(full: JsonObject, choices: readonly number[]): JsonObject {
  let at = 0;
  const next = (): number => choices[at++ % choices.length] ?? 0;
  const walk = (value: JsonValue, name: string): JsonValue => {
    if (Array.isArray(value)) {
      if (!SETS.includes(name)) {
        return value.slice(0, value.length - (next() < 3 ? 1 : 0)).map((one) => walk(one, ''));
      }
      const remaining = value.filter(() => next() > 2).map((one) => walk(one, ''));
      return next() < 5 ? remaining.reverse() : remaining;
    }
    if (!isJsonObject(value)) return value;
    const members = Object.entries(value).flatMap(([key, inner]): [string, JsonValue][] => {
      const choice = next();
      // The interface has no sub-status without chain, and no step without hash.
      if (choice > 3 || key === 'chainId' || key === 'intentHash') return [[key, walk(inner, key)]];
      if (choice === 0) return [];
      if (isJsonObject(inner)) return [];
      return [[key, choice === 1 ? null : Array.isArray(inner) ? [] : '']];
    });
    return Object.fromEntries(members);
  };
  const weak = walk(full, '');
  if (!isJsonObject(weak)) throw new Error('a record became something else');
  return weak;
}

const time = fc.constantFrom(100, null);

describe('answers at one time', () => {
  test('that omit something never remove a stored member, and make no event', () => {
    let weaker = 0;
    fc.assert(
      fc.property(content, omissions, time, fc.boolean(), (full, choices, updatedAt, exact) => {
        const snapshot = stored(null, decideOn(null, { status: 'pending', updatedAt: 100, content: full }));
        const weak = weaken(full, choices);
        if (canonicalJson(weak) !== canonicalJson(full)) weaker += 1;
        const decision = decideOn(snapshot, { status: 'pending', updatedAt, content: weak }, { exact });
        expect(decision).toEqual({ outcome: 'unchanged', accepted: null });
      }),
      { numRuns: 1_000 },
    );
    expect(weaker).toBeGreaterThan(900);
  });

  test('make no event after the fullest was seen, in any order and any number', () => {
    let early = 0;
    fc.assert(
      fc.property(
        // Parts of two sub-statuses on one chain that came before the whole could not be distinguished.
        contentBy(({ chainId }) => String(chainId)),
        fc.array(omissions, { minLength: 1, maxLength: 4 }),
        fc.array(fc.nat(4), { minLength: 1, maxLength: 8 }),
        fc.nat(7),
        (full, weakenings, order, fullestAt) => {
          const weak = weakenings.map((choices) => weaken(full, choices));
          const sequence = order.map((index) => weak[index % weak.length] ?? {});
          const shown = [...sequence.slice(0, fullestAt), full, ...sequence.slice(fullestAt), full, ...weak];
          let snapshot: Snapshot | null = null;
          let sawFullest = false;
          for (const raw of shown) {
            const decision = decideOn(snapshot, { status: 'pending', updatedAt: 100, content: raw });
            if (sawFullest) expect(isEvent(decision)).toBe(false);
            else if (decision.outcome === 'changed') early += 1;
            sawFullest ||= raw === full;
            snapshot = stored(snapshot, decision);
          }
          const { record: last } = snapshot ?? { record: {} };
          expect(diffRecords(full, last, { completeness: 'replaces', unreadable: [] }).changes).toEqual([
            'type',
            'status',
          ]);
        },
      ),
      { numRuns: 1_000 },
    );
    expect(early).toBeGreaterThan(100);
  });
});

describe('any answer', () => {
  const polls = fc.array(fc.record({ answer, exact: fc.boolean(), history: fc.boolean() }), { maxLength: 6 });

  test('that was accepted is unchanged when it comes again', () => {
    const seen = { first: 0, changed: 0, history: 0, unchanged: 0, stale: 0 };
    fc.assert(
      fc.property(polls, answer, fc.boolean(), fc.nat(2), (before, last, history, minutes) => {
        let snapshot: Snapshot | null = null;
        let nowMs = NOW_MS;
        for (const { answer: one, exact } of before) {
          snapshot = stored(snapshot, decideOn(snapshot, one, { exact, history, nowMs }), nowMs);
          nowMs += minutes * 300_000;
        }
        const decision = decideOn(snapshot, last, { nowMs, history });
        seen[decision.outcome] += 1;
        if (decision.outcome === 'stale') return;
        const after = stored(snapshot, decision, nowMs);
        // By now its subscribers have been notified of it.
        expect(decideOn(after, last, { nowMs, history: true })).toEqual({
          outcome: 'unchanged',
          accepted: null,
        });
      }),
      { numRuns: 2_000 },
    );
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(20);
  });

  test('that is stale does not change the record until exact polls have confirmed it, and never from a page', () => {
    let stale = 0;
    fc.assert(
      fc.property(
        answer.filter(({ status }) => status !== 'unknown'),
        fc.array(fc.record({ answer, exact: fc.boolean() }), { minLength: 1, maxLength: 5 }),
        (first, later) => {
          const start = stored(null, decideOn(null, first));
          let snapshot = start;
          let nowMs = NOW_MS;
          for (const { answer: one, exact } of later) {
            const older =
              one.updatedAt !== null && first.updatedAt !== null && one.updatedAt < first.updatedAt;
            if (!older && one.status !== 'unknown') continue;
            stale += 1;
            nowMs += 110_000;
            const decision = decideOn(snapshot, one, { exact, nowMs });
            expect(decision.outcome).toBe('stale');
            snapshot = stored(snapshot, decision, nowMs);
            expect({ ...snapshot, unconfirmed: null }).toEqual(start);
            const page = decideOn(snapshot, one, { exact: false, nowMs: nowMs + 10 * CONFIRM_MS });
            expect(page).toMatchObject({ outcome: 'stale', unconfirmed: null });
          }
        },
      ),
      { numRuns: 1_000 },
    );
    expect(stale).toBeGreaterThan(500);
  });

  test('that is stale is accepted at last when no other comes for the whole time', () => {
    let accepted = 0;
    fc.assert(
      fc.property(answer, answer, fc.integer({ min: 1, max: 20 }), (first, later, everyMinutes) => {
        let snapshot = stored(null, decideOn(null, first));
        let nowMs = NOW_MS;
        const begin = decideOn(snapshot, later, { nowMs });
        if (begin.outcome !== 'stale') return;
        snapshot = stored(snapshot, begin, nowMs);
        // A step back that nothing orders in time is confirmed sooner.
        const isTimeless =
          begin.reason === 'backward' && first.updatedAt === null && later.updatedAt === null;
        while (nowMs - NOW_MS < (isTimeless ? 45_000 : CONFIRM_MS)) {
          expect(decideOn(snapshot, later, { nowMs }).outcome).toBe('stale');
          nowMs += everyMinutes * 60_000;
        }
        const decision = decideOn(snapshot, later, { nowMs });
        expect(decision.outcome).not.toBe('stale');
        snapshot = stored(snapshot, decision, nowMs);
        expect(snapshot).toMatchObject({
          status: later.status,
          updatedAt: later.updatedAt,
          unconfirmed: null,
        });
        accepted += 1;
      }),
      { numRuns: 1_000 },
    );
    expect(accepted).toBeGreaterThan(100);
  });
});

const LASTING_WORDS = ['updated', 'step_failed', 'error', 'refund_sent'];

describe('answers with ever newer times', () => {
  const story = fc.array(fc.record({ status: fc.constantFrom(...WORDS), content, exact: fc.boolean() }), {
    minLength: 1,
    maxLength: 12,
  });

  test('make events whose statuses are the observed statuses, each once in a row, and count without a gap', () => {
    fc.assert(
      fc.property(story, (chapters) => {
        const reported: string[] = [];
        const sequences: number[] = [];
        const expected: string[] = [];
        let snapshot: Snapshot | null = null;
        for (const [index, { status, content: shown, exact }] of chapters.entries()) {
          // Unknown is stale at any time; any other status is news.
          if (status !== 'unknown' && status.toLowerCase() !== expected.at(-1))
            expected.push(status.toLowerCase());
          const decision = decideOn(snapshot, { status, updatedAt: 100 + index, content: shown }, { exact });
          const before: Snapshot | null = snapshot;
          snapshot = stored(snapshot, decision);
          if (decision.outcome !== 'first' && decision.outcome !== 'changed') continue;
          const { transition } = decision;
          expect(transition.previousStatus).toBe(before?.status ?? null);
          sequences.push(snapshot?.sequence ?? 0);
          const word = transition.type.slice('gasless.'.length);
          const isLasting = LASTING_WORDS.includes(word);
          if (!isLasting) reported.push(word);
          expect(isLasting).toBe(
            before !== null && before.status.toLowerCase() === transition.status.toLowerCase(),
          );
        }
        expect(reported).toEqual(expected);
        expect(sequences).toEqual(sequences.map((_, index) => index + 1));
      }),
      { numRuns: 500 },
    );
  });

  test('make the stored record equal to the last answer, in all members of that', () => {
    fc.assert(
      fc.property(story, (chapters) => {
        let snapshot: Snapshot | null = null;
        for (const [index, { status, content: shown, exact }] of chapters.entries()) {
          if (status === 'unknown') continue;
          const raw = { status, updatedAt: 100 + index, content: shown };
          snapshot = stored(snapshot, decideOn(snapshot, raw, { exact }));
          const before = snapshot?.record ?? {};
          const difference = diffRecords(before, record(raw).raw, {
            completeness: 'replaces',
            unreadable: [],
          });
          expect(difference.changes).toEqual([]);
          expect(snapshot?.updatedAt).toBe(100 + index);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('a change that is history to one subscription and news to another', () => {
  test('is reported to the other, without any loss in the stored record', () => {
    fc.assert(
      fc.property(content, omissions, time, (full, choices, updatedAt) => {
        const before = { status: 'pending', updatedAt: 100, content: full };
        const history = stored(null, decideOn(null, before, { history: true }));
        expect(history?.sequence).toBe(0);
        const decision = decideOn(history, { status: 'pending', updatedAt, content: weaken(full, choices) });
        expect(decision).toMatchObject({
          outcome: 'first',
          accepted: { status: 'pending', updatedAt: 100, record: history?.record },
          transition: { type: 'gasless.pending' },
        });
      }),
      { numRuns: 500 },
    );
  });
});

describe('the id of an event', () => {
  const facts = fc.record({
    sequence: fc.integer({ min: 1, max: 3 }),
    type: fc.constantFrom('gasless.pending', 'gasless.updated', 'gasless.failed'),
    content: fc.dictionary(fc.constantFrom('a', 'b'), fc.constantFrom('1', '2', null), {
      maxKeys: 2,
      noNullPrototype: true,
    }),
    nowMs: fc.constantFrom(0, NOW_MS),
    previousStatus: fc.option(fc.constantFrom('pending')),
  });

  test('is another exactly where type or record is another, for any sequence', () => {
    const seen = { same: 0, other: 0 };
    fc.assert(
      fc.property(facts, facts, (one, other) => {
        const [first, second] = [one, other].map(
          ({ sequence, type, content: shown, nowMs, previousStatus }) =>
            makeEvent({
              subject: { kind: 'gasless', id: SUBJECT },
              sequence,
              epoch: 1,
              transition: {
                type,
                status: 'x',
                previousStatus,
                changes: [],
                skipped: false,
                regression: false,
              },
              record: shown,
              updatedAt: null,
              nowMs,
            }),
        );
        const isSame = one.type === other.type && canonicalJson(one.content) === canonicalJson(other.content);
        seen[isSame ? 'same' : 'other'] += 1;
        expect(first?.id === second?.id).toBe(isSame);
      }),
      { numRuns: 1_000 },
    );
    expect(Math.min(seen.same, seen.other)).toBeGreaterThan(5);
  });
});
