import { queryObjects } from 'node:v8';
import { expect, test } from 'vitest';
import { makeEvent } from '../../src/domain/events/make-event.ts';
import type { Proof } from '../../src/domain/proof/proof.ts';
import { intentId } from '../../src/domain/subjects/subject.ts';
import { parseEntry, storedEntry } from '../../src/store/log-entry.ts';
import { OwnEntries } from '../../src/store/own-entries.ts';
import { pack } from '../../src/store/packed.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const ENTRY = { id: '1-0', fields: [], entry: parseEntry('1-0', []) };

test('waits for own entries that never come leave nothing in memory', async () => {
  const own = new OwnEntries();
  for (let wait = 0; wait < 20_000; wait += 1) await Promise.race([null, own.came()]);
  // A count of all objects takes seconds on a busy machine, so there is one, and the waits are far more than all else.
  expect(Number(queryObjects(Promise))).toBeLessThan(10_000);
  // Used after the count, so that it is still in memory then, and what waits for it.
  expect(own.take('0-0')).toEqual([]);
});

test('a wait ends with the entry that comes, also where it came before', async () => {
  const own = new OwnEntries();
  const waits = own.came();
  own.add(ENTRY);
  await waits;
  await own.came();
  expect(own.take('0-0')).toEqual([ENTRY]);
});

test('an event has the same text in the process that stored it as where it is read, with a proof too', () => {
  const id = intentId(hashOf(1));
  const proof: Proof = {
    payment: 'destination',
    chainId: '10',
    txHash: '0xab',
    checked: ['success'],
    endpoints: ['one'],
    singleSource: true,
  };
  const transition = { type: 'intent.verified', status: 'filled', previousStatus: 'filled' };
  for (const more of [{}, { proof }]) {
    const event = makeEvent({
      subject: { kind: 'intent', id },
      ...{ sequence: 2, epoch: 1, record: { id, status: 'filled' }, updatedAt: 5, nowMs: 7_000 },
      transition: { ...transition, changes: [], skipped: false, regression: false },
      ...more,
    });
    const texts = { packed: pack(JSON.stringify(event)), claimKeys: '["s|"]', withheld: '' };
    const { fields, entry } = storedEntry('1-0', event, texts);
    expect(JSON.stringify(entry)).toBe(JSON.stringify(parseEntry('1-0', fields)));
  }
});
