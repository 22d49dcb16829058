import { describe, expect, test } from 'vitest';
import { decide } from '../../src/domain/changes/decide.ts';
import { unseenSnapshot } from '../../src/domain/changes/next-snapshot.ts';
import { wantsType } from '../../src/domain/events/filter.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { gatewayJobId, intentId } from '../../src/domain/subjects/subject.ts';
import { countedReads } from '../support/counted-reads.ts';

const HASH = `0x${'ab'.repeat(32)}`;
const SUBJECT = intentId(HASH);
const T = 1_795_174_200;

const STEP = { type: 'BRIDGE', intentHash: HASH, status: 'OPEN', transactions: {} };
const FAILED = { ...STEP, status: 'FAILED' };
const REFUNDED = { ...STEP, transactions: { refunded: { chainId: 1, txHash: '0x12' } } };
const SUB = { chainId: 1, quoteIds: ['quote:1'], txHash: null, intentHashes: [], state: 'pending' };
const OTHER_SUB = { ...SUB, chainId: 10 };

/** Type of the event for a change of the record without a change of status; null for none. */
function typeOf(before: JsonObject, after: JsonObject, unreadable: string[] = []): string | null {
  const snapshot = {
    ...unseenSnapshot(T * 1_000),
    version: 1,
    status: 'pending',
    updatedAt: T,
    record: { status: 'pending', ...before },
    reported: true,
  };
  const raw = { status: 'pending', ...after };
  const record = { subject: SUBJECT, status: 'pending', updatedAt: T + 1, names: [], raw, unreadable };
  const context = { nowMs: (T + 2) * 1_000, exact: true, history: false, confirmAfterMs: 1 };
  const decision = decide(snapshot, record, context);
  return decision.outcome === 'changed' ? decision.transition.type : null;
}

describe('a change within one status', () => {
  test.each<[string, JsonObject, JsonObject, string | null]>([
    ['a step fails', { steps: [STEP] }, { steps: [FAILED] }, 'step_failed'],
    ['a step comes that has failed', { steps: [STEP] }, { steps: [STEP, FAILED] }, 'step_failed'],
    ['a second step fails', { steps: [FAILED, STEP] }, { steps: [FAILED, FAILED] }, 'step_failed'],
    [
      'a status of no table for a failure',
      { steps: [STEP] },
      { steps: [{ ...STEP, status: 'sad' }] },
      'updated',
    ],
    [
      'another step comes before a failed one',
      { steps: [FAILED] },
      { steps: [{ ...STEP, type: 'SWAP', intentHash: '0x5a' }, FAILED] },
      'updated',
    ],
    ['a step recovers', { steps: [FAILED] }, { steps: [STEP] }, 'updated'],
    ['a failed step shows more', { steps: [FAILED] }, { steps: [{ ...FAILED, gas: '1' }] }, 'updated'],
    [
      'a sub-status fails',
      { subStatuses: [SUB] },
      { subStatuses: [{ ...SUB, state: 'failed' }] },
      'step_failed',
    ],
    [
      'sub-statuses change places',
      { subStatuses: [{ ...SUB, state: 'failed' }, OTHER_SUB] },
      { subStatuses: [OTHER_SUB, { ...SUB, state: 'failed' }] },
      null,
    ],
    [
      'another sub-status shows more beside a failed one',
      { subStatuses: [{ ...SUB, state: 'failed' }, OTHER_SUB] },
      {
        subStatuses: [
          { ...OTHER_SUB, txHash: '0x34' },
          { ...SUB, state: 'failed' },
        ],
      },
      'updated',
    ],
    [
      'an intent of a step fails',
      { steps: [{ ...STEP, intents: [{ intentHash: HASH, status: 'pending' }] }] },
      { steps: [{ ...STEP, intents: [{ intentHash: HASH, status: 'failed' }] }] },
      'step_failed',
    ],
    ['a refund transaction appears', { steps: [STEP] }, { steps: [REFUNDED] }, 'refund_sent'],
    ['an error text appears', {}, { error: 'no gas' }, 'error'],
    ['an empty error text appears', { note: 1 }, { note: 2, error: '' }, 'updated'],
    ['an error text goes', { error: 'no gas' }, { error: null }, 'updated'],
    ['a step fails with an error', { steps: [STEP] }, { steps: [FAILED], error: 'no gas' }, 'step_failed'],
    [
      'something else changes beside a failed step',
      { steps: [FAILED], note: 1 },
      { steps: [FAILED], note: 2 },
      'updated',
    ],
  ])('%s', (_, before, after, word) => {
    expect(typeOf(before, after)).toBe(word === null ? null : `intent.${word}`);
  });

  test('of a part that cannot be read is no failure', () => {
    expect(typeOf({ note: 1 }, { note: 2, steps: [FAILED, 7] }, ['steps'])).toBe('intent.updated');
  });

  test('reaches mails by default, as other changes do not', () => {
    const mails = ['*', '!*.updated'];
    const types = ['intent.step_failed', 'intent.error', 'intent.refund_sent', 'intent.updated'];
    expect(types.filter((type) => wantsType(mails, type))).toEqual(types.slice(0, 3));
  });
});

describe('a job without a status', () => {
  const subject = gatewayJobId('7');
  const context = { nowMs: (T + 2) * 1_000, exact: true, history: false, confirmAfterMs: 1 };
  const raw = (more: JsonObject) => ({
    subject,
    status: '',
    updatedAt: null,
    names: [],
    raw: more,
    unreadable: [],
  });

  test.each<[string, JsonObject, string]>([
    ['with an error text', { id: '7', error: 'no gas' }, 'gasless.error'],
    ['without one', { id: '7', amount: '1' }, 'gasless.updated'],
  ])('%s, is reported at first sight by its facts', (_, record, type) => {
    expect(decide(null, raw(record), context)).toMatchObject({
      outcome: 'first',
      transition: { type, status: '' },
    });
  });
});

test('many parts that have failed are read in proportion', () => {
  const subStatuses = (count: number, state: string): JsonObject[] =>
    Array.from({ length: count }, (_, index) => ({
      ...SUB,
      chainId: index % 7,
      quoteIds: [`quote:${index}`],
      state,
    }));
  const readsOf = (count: number): number => {
    const { value, reads } = countedReads({ subStatuses: subStatuses(count, 'failed') });
    expect(typeOf({ subStatuses: subStatuses(count, 'pending') }, value)).toBe('intent.step_failed');
    return reads();
  };
  expect(readsOf(5_000)).toBeLessThan(6 * readsOf(1_000));
});
