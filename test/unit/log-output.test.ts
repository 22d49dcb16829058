import { expect, test } from 'vitest';
import { bufferedLines } from '../../src/log.ts';

test('lines of one turn are written together before the next, in their order', async () => {
  const written: string[] = [];
  const output = bufferedLines({ write: (text) => written.push(text) });
  output.write('one\n');
  output.write('two\n');
  expect(written).toEqual([]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(written).toEqual(['one\ntwo\n']);
  output.write('three\n');
  await new Promise((resolve) => setImmediate(resolve));
  expect(written).toEqual(['one\ntwo\n', 'three\n']);
});
