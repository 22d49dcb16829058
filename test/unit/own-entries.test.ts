import { queryObjects } from 'node:v8';
import { expect, test } from 'vitest';
import { OwnEntries } from '../../src/store/event-log.ts';
import { parseEntry } from '../../src/store/log-entry.ts';

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
