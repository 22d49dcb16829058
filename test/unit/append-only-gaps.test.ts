import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import {
  newestPart,
  REDIS_FOLDER,
  type RemovedGaps,
  readAppendOnly,
  readRecord,
  removeGaps,
  writeRecord,
} from '../../src/store/append-only.ts';

const FILE = 'appendonly.aof.1.incr.aof';
const NEXT = 'appendonly.aof.2.incr.aof';

function command(...values: string[]): string {
  return `*${values.length}\r\n${values.map((value) => `$${value.length}\r\n${value}\r\n`).join('')}`;
}

const SET = command('SET', 'a', '1');
const [MULTI, EXEC] = [command('MULTI'), command('EXEC')];
const at = (seconds: number): string => `#TS:${seconds}\r\n`;
const gap = (bytes: number): string => '\0'.repeat(bytes);
const CHUNK = 1_048_576;

async function folderWith(files: { readonly [name: string]: string }): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-gaps-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, REDIS_FOLDER));
  const lines = Object.keys(files).map((name) => `file ${name} seq ${/\d+/.exec(name)?.[0]} type i\n`);
  for (const [name, content] of Object.entries({ ...files, 'appendonly.aof.manifest': lines.join('') }))
    await writeFile(join(folder, REDIS_FOLDER, name), content, 'latin1');
  return folder;
}

async function remove(folder: string): Promise<RemovedGaps[]> {
  return removeGaps(folder, { files: await readAppendOnly(folder), unreported: [] });
}

async function contentOf(folder: string, file = FILE): Promise<string> {
  return readFile(join(folder, REDIS_FOLDER, file), 'latin1');
}

test.each<[string, { found: string; left: string; gaps: number; bytes: number; lost?: number }]>([
  ['between commands', { found: SET + gap(7) + SET, left: SET + SET, gaps: 1, bytes: 7 }],
  ['of one byte', { found: SET + gap(1) + SET, left: SET + SET, gaps: 1, bytes: 1 }],
  ['at the begin', { found: gap(3) + SET, left: SET, gaps: 1, bytes: 3 }],
  [
    'before the time of a write',
    { found: SET + gap(9) + at(5) + SET, left: SET + at(5) + SET, gaps: 1, bytes: 9 },
  ],
  [
    'longer than a chunk',
    { found: SET + gap(2 * CHUNK + 5) + SET, left: SET + SET, gaps: 1, bytes: 2 * CHUNK + 5 },
  ],
  [
    'before an unfinished command at the end',
    { found: `${SET}${gap(4)}${SET}*3\r\n$3`, left: `${SET}${SET}*3\r\n$3`, gaps: 1, bytes: 4 },
  ],
  [
    'behind a value with such bytes',
    {
      found: `${command('SET', 'a', `\0${SET}\0`)}${gap(4)}${SET}`,
      left: `${command('SET', 'a', `\0${SET}\0`)}${SET}`,
      gaps: 1,
      bytes: 4,
    },
  ],
  [
    'behind a command that was cut within its head',
    { found: `${SET}*3\r\n$3${gap(50)}${SET}`, left: SET + SET, gaps: 1, bytes: 50, lost: 6 },
  ],
  [
    'behind a command that was cut within a value, which ends within what follows',
    {
      found: `${SET}*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$92\r\n12345${gap(60)}${SET}${SET}${SET}`,
      left: SET + SET + SET + SET,
      gaps: 1,
      bytes: 60,
      lost: 30,
    },
  ],
  [
    'behind a command that was cut within a value as long as the rest of the file',
    {
      found: `${SET}*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$90000\r\n12345${gap(60)}${SET}`,
      left: SET + SET,
      gaps: 1,
      bytes: 60,
      lost: 33,
    },
  ],
  [
    'within a transaction, of which Redis would apply a part',
    {
      found: `${SET}${MULTI}${SET}${gap(5)}${MULTI}${SET}${EXEC}`,
      left: `${SET}${MULTI}${SET}${EXEC}`,
      gaps: 1,
      bytes: 5,
      lost: (MULTI + SET).length,
    },
  ],
  [
    'behind a whole transaction',
    { found: MULTI + SET + EXEC + gap(5) + SET, left: MULTI + SET + EXEC + SET, gaps: 1, bytes: 5 },
  ],
  [
    'behind another gap',
    {
      found: `${SET}${gap(5)}${SET}*3\r\n$3\r\nSE${gap(8)}${SET}`,
      left: SET + SET + SET,
      gaps: 2,
      bytes: 13,
      lost: 10,
    },
  ],
])('a gap is removed %s', async (_, { found, left, gaps, bytes, lost = 0 }) => {
  const folder = await folderWith({ [FILE]: at(3) + found });
  const { changedAtMs } = newestPart(await readAppendOnly(folder)) ?? {};
  const loss = lost === 0 ? null : { file: FILE, bytes: lost, lastWriteMs: 3_000, changedAtMs };
  expect(await remove(folder)).toEqual([{ file: FILE, gaps, bytes, lost: loss }]);
  expect(await contentOf(folder)).toBe(at(3) + left);
  expect(newestPart(await readAppendOnly(folder))?.changedAtMs).toBe(changedAtMs);
  // Before the part was replaced: no crash can hide the loss.
  expect((await readRecord(folder))?.unreported).toEqual(loss === null ? [] : [loss]);
  expect(await remove(folder)).toEqual([]);
});

test.each([
  ['no gap', SET + SET],
  ['an unfinished command at the end', `${SET}*3\r\n$3\r\nSET\r\n$1`],
  ['an unfinished value that has NUL bytes', `${SET}*3\r\n$3\r\nSET\r\n$1\r\na\r\n$90\r\n1${gap(9)}2`],
  ['a value of NUL bytes', command('SET', 'a', gap(2_000)) + SET],
  ['NUL bytes over the rest of a command', `${SET}*3\r\n$3${gap(9)}1\r\n${SET}`],
  ['NUL bytes at the end', SET + gap(9)],
  ['other bytes between two commands', `${SET}abc${SET}`],
  ['a gap and other damage', `${SET}${gap(9)}${SET}abc${SET}`],
  ['nothing', ''],
])('a file with %s is left to Redis', async (_, content) => {
  const folder = await folderWith({ [FILE]: content });
  expect(await remove(folder)).toEqual([]);
  expect(await contentOf(folder)).toBe(content);
  expect(await readRecord(folder)).toBe(null);
  expect(await readdir(join(folder, REDIS_FOLDER))).toHaveLength(2);
});

test('gaps are removed from all files, and the recorded size is that without them', async () => {
  const folder = await folderWith({
    [FILE]: SET + gap(5) + SET,
    [NEXT]: `${SET}${gap(7)}${SET}*1${gap(9)}${SET}`,
  });
  const earlier = { file: FILE, bytes: 1, lastWriteMs: null, changedAtMs: 1 };
  const bytes = SET.length * 2 + 7;
  await writeRecord(folder, { file: NEXT, bytes, unreported: [earlier] });
  const files = await readAppendOnly(folder);
  const removed = await removeGaps(folder, { files, unreported: [earlier] });
  expect(removed.map((one) => [one.file, one.gaps, one.bytes, one.lost?.bytes ?? 0])).toEqual([
    [FILE, 1, 5, 0],
    [NEXT, 2, 16, 2],
  ]);
  const losses = removed.flatMap(({ lost }) => lost ?? []);
  expect(await readRecord(folder)).toEqual({
    file: NEXT,
    bytes: bytes - 7,
    unreported: [earlier, ...losses],
  });
  expect(await contentOf(folder)).toBe(SET + SET);
  expect(await contentOf(folder, NEXT)).toBe(SET + SET + SET);
});

test('gaps are found however the chunks in which the file is read divide it', async () => {
  const tail = `${SET}${gap(3)}${SET}`;
  for (let before = 1; before <= tail.length; before += 1) {
    // All but the value are 16 bytes.
    const head = command('y'.repeat(CHUNK - before - 16));
    expect(head.length).toBe(CHUNK - before);
    const folder = await folderWith({ [FILE]: head + tail });
    expect(await remove(folder)).toEqual([{ file: FILE, gaps: 1, bytes: 3, lost: null }]);
    expect((await contentOf(folder)) === head + SET + SET).toBe(true);
  }
});

test('a file with any commands and any gaps between them has those commands afterwards', async () => {
  const value = fc.oneof(
    fc.string({ unit: fc.constantFrom('\0', '*', '$', '#', '3', '\r', '\n', 'x'), maxLength: 20 }),
    fc.integer({ min: 0, max: 70_000 }).map((length) => 'y'.repeat(length)),
  );
  const piece = fc.record({
    values: fc.array(value, { minLength: 1, maxLength: 4 }),
    gapBytes: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 9_000 })),
    isTimed: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { minLength: 1, maxLength: 40 }), async (pieces) => {
      const texts = pieces.map(({ values, isTimed }) => (isTimed ? at(7) : '') + command('SET', ...values));
      const found = texts.map((text, index) => gap(pieces[index]?.gapBytes ?? 0) + text).join('');
      const folder = await folderWith({ [FILE]: found });
      const removed = await remove(folder);
      expect(await contentOf(folder)).toBe(texts.join(''));
      expect(removed.map(({ lost }) => lost)).toEqual(found === texts.join('') ? [] : [null]);
    }),
    { numRuns: 60 },
  );
});
