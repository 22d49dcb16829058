import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type EventIdentity, identify } from '../../src/domain/events/event.ts';

const SUBJECT = `intent:0x${'a'.repeat(64)}`;

/** Names the events of a life: states by number, from the snapshot of the earlier ones. */
function name(states: readonly number[], emitted: readonly string[] = [], restoredIn: number | null = null) {
  const named: EventIdentity[] = [];
  let marks = emitted;
  for (const [index, state] of states.entries()) {
    const record = { status: `s${state}` };
    const identity = identify(
      { subject: SUBJECT, type: `intent.s${state}`, record },
      { emitted: marks, restoredIn: index === 0 ? restoredIn : null },
    );
    named.push(identity);
    marks = identity.emitted;
  }
  return named;
}

const LIVES = fc.array(fc.integer({ min: 0, max: 90 }), { minLength: 1, maxLength: 200 });

test('no two events of a life have the same id, however often a state returns', () => {
  fc.assert(
    fc.property(LIVES, (states) => {
      const ids = name(states).map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
    }),
    { numRuns: 300 },
  );
});

test('the marks of a life are bounded', () => {
  const last = name(Array.from({ length: 2_000 }, (_, index) => index % 97)).at(-1);
  expect(last?.emitted.join(' ').length).toBeLessThan(600);
});

test('a state that is found again after a restore has its id, also where states between are not', () => {
  const short = fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 2, maxLength: 12 });
  fc.assert(
    fc.property(short, fc.nat(), fc.nat(), (states, at, skip) => {
      const before = name(states);
      const restored = at % (states.length - 1);
      const found = restored + 1 + (skip % (states.length - 1 - restored));
      const between = states.slice(restored + 1, found);
      const state = states[found] ?? 0;
      // A return within the lost time is reported at first sight by the intermediate states alone.
      fc.pre(!between.includes(state));
      const [again] = name([state], before[restored]?.emitted);
      expect(again).toMatchObject({ id: before[found]?.id });
    }),
    { numRuns: 500 },
  );
});

test('a state without a time of its own has another id after a restore', () => {
  const [first] = name([1]);
  const [again] = name([1, 2], [], 2);
  expect(again?.id).not.toBe(first?.id);
});

test('a state that is reported once more has the id and the epoch of its last report, and no further mark', () => {
  const report = fc.record({
    state: fc.integer({ min: 0, max: 4 }),
    restoredIn: fc.constantFrom(null, null, 2, 3),
    isAgain: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(report, { minLength: 2, maxLength: 30 }), (reports) => {
      const last = new Map<number, EventIdentity>();
      let emitted: readonly string[] = [];
      for (const { state, restoredIn, isAgain: mayRepeat } of reports) {
        const before = last.get(state);
        const isAgain = mayRepeat && before !== undefined;
        const named = { subject: SUBJECT, type: `intent.s${state}`, record: { status: `s${state}` } };
        const identity = identify(named, { emitted, restoredIn: isAgain ? null : restoredIn, isAgain });
        if (isAgain) {
          expect(identity).toMatchObject({ id: before.id, restoredIn: before.restoredIn, isNew: false });
          expect([...identity.emitted].sort()).toEqual([...emitted].sort());
        } else {
          expect(identity).toMatchObject({ restoredIn, isNew: true });
          expect([...last.values()].map(({ id }) => id)).not.toContain(identity.id);
        }
        last.set(state, identity);
        emitted = identity.emitted;
      }
    }),
    { numRuns: 500 },
  );
});

test('the flag and the payment are parts of the id', () => {
  const state = { subject: SUBJECT, type: 'intent.overdue', record: {} };
  const none = { emitted: [], restoredIn: null };
  const ids = [state, { ...state, flag: 'overdue:60' }, { ...state, payment: 'source' }].map(
    (one) => identify(one, none).id,
  );
  expect(new Set(ids).size).toBe(3);
});

test('a state has one id however its hex and UUIDs are spelled, and base58 in another case is another state', () => {
  const hex = fc
    .uint8Array({ minLength: 1, maxLength: 32 })
    .map((bytes) => Buffer.from(bytes).toString('hex'));
  const idOf = (record: { id: string; txHash: string; quoteId: string; from: string }) =>
    identify({ subject: SUBJECT, type: 'intent.filled', record }, { emitted: [], restoredIn: null }).id;
  fc.assert(
    fc.property(hex, fc.uuid(), (digits, uuid) => {
      const record = {
        id: `intent:0x${digits}`,
        txHash: `0x${digits}`,
        quoteId: uuid,
        from: '7xKXtg2CW87d97TX',
      };
      const upper = { ...record, txHash: `0x${digits.toUpperCase()}`, quoteId: uuid.toUpperCase() };
      const other = { ...upper, id: `intent:0X${digits.toUpperCase()}` };
      expect([idOf(upper), idOf(other)]).toEqual([idOf(record), idOf(record)]);
      expect(idOf({ ...record, from: record.from.toLowerCase() })).not.toBe(idOf(record));
    }),
  );
});
