import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  findTruncation,
  newestPart,
  readAppendOnly,
  readRecord,
  silentLoss,
  type WriteRecord,
  writeRecord,
} from '../../src/store/append-only.ts';

async function folderWith(files: { readonly [name: string]: string }): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-append-only-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, 'appendonlydir'));
  for (const [name, content] of Object.entries(files))
    await writeFile(join(folder, 'appendonlydir', name), content);
  return folder;
}

function manifest(base: number, ...writes: number[]): string {
  const lines = writes.map((sequence) => `file appendonly.aof.${sequence}.incr.aof seq ${sequence} type i\n`);
  return [`file appendonly.aof.${base}.base.rdb seq ${base} type b\n`, ...lines].join('');
}

const MANIFEST = 'appendonly.aof.manifest';
const base = (sequence: number): string => `appendonly.aof.${sequence}.base.rdb`;
const writes = (sequence: number): string => `appendonly.aof.${sequence}.incr.aof`;

test.each<[string, { [name: string]: string }, RegExp | null]>([
  ['no files', {}, null],
  ['all files', { [MANIFEST]: manifest(2, 2), [base(2)]: 'REDIS', [writes(2)]: 'x' }, null],
  [
    'a rewrite under way',
    { [MANIFEST]: manifest(1, 1, 2), [base(1)]: 'REDIS', [writes(1)]: 'x', [writes(2)]: '' },
    null,
  ],
  ['a first start that was cut short before the manifest', { [base(1)]: 'REDIS', [writes(1)]: '' }, null],
  [
    'a rewrite that was cut short before the manifest',
    {
      [MANIFEST]: manifest(1, 1, 2),
      [base(1)]: 'REDIS',
      [base(2)]: 'REDIS',
      [writes(1)]: 'x',
      [writes(2)]: 'x',
      [writes(3)]: '',
    },
    null,
  ],
  [
    'parts that a rewrite has replaced',
    {
      [MANIFEST]: manifest(2, 2),
      [base(1)]: 'REDIS',
      [base(2)]: 'REDIS',
      [writes(1)]: 'x',
      [writes(2)]: 'x',
    },
    null,
  ],
  [
    'no manifest',
    { [base(1)]: 'REDIS', [writes(1)]: 'x' },
    /^found appendonly\.aof\.1\.incr\.aof with data but no appendonly\.aof\.manifest/,
  ],
  [
    'no manifest after a rewrite, and no writes since',
    { [base(2)]: 'REDIS', [writes(2)]: '' },
    /^found appendonly\.aof\.2\.base\.rdb, appendonly\.aof\.2\.incr\.aof with data but no/,
  ],
  [
    'an empty manifest',
    { [MANIFEST]: '', [base(1)]: 'REDIS', [writes(1)]: 'x' },
    /^found appendonly\.aof\.1\.incr\.aof with data, expected appendonly\.aof\.manifest to name it/,
  ],
  [
    'a manifest that was cut between two lines',
    { [MANIFEST]: manifest(2, 2), [base(2)]: 'REDIS', [writes(2)]: 'x', [writes(3)]: 'x' },
    /^found appendonly\.aof\.3\.incr\.aof with data, expected/,
  ],
  [
    'a base without content',
    { [MANIFEST]: manifest(2, 2), [base(2)]: '', [writes(2)]: 'x' },
    /^found appendonly\.aof\.2\.base\.rdb empty/,
  ],
])('files of which Redis would ignore data are found: %s', async (_, files, loss) => {
  const folder = await folderWith(files);
  const found = silentLoss(await readAppendOnly(folder));
  expect(found).toEqual(loss === null ? null : expect.stringMatching(loss));
});

const SET = '*3\r\n$3\r\nset\r\n$1\r\na\r\n$1\r\n1\r\n';
const at = (seconds: number): string => `#TS:${seconds}\r\n`;
const LONG = `*3\r\n$3\r\nset\r\n$1\r\na\r\n$1100000\r\n${'x'.repeat(1_100_000)}\r\n`;
/** A value that resembles the time of a write. */
const LOOKALIKE = '*3\r\n$3\r\nset\r\n$1\r\na\r\n$9\r\n#TS:99999\r\n';
const CHANGED_MS = 1_700_000_009_000;

test.each<
  [
    string,
    { found: string; left?: string; record?: number; output?: string; lost: number; last: number | null },
  ]
>([
  ['is none where all was read', { found: at(7) + SET, lost: 0, last: null }],
  [
    'is none where Redis has appended at once',
    { found: at(7) + SET, left: at(7) + SET + SET, lost: 0, last: null },
  ],
  ['is what the file has less', { found: `${at(7)}${SET}*3\r\n$3`, left: at(7) + SET, lost: 6, last: 7_000 }],
  [
    'is what the log names where Redis has appended since',
    {
      found: `${at(7)}${SET}*3\r\n$3`,
      left: at(7) + SET + SET,
      output: `1:M 25 Nov # !!! Truncating the AOF x at offset ${(at(7) + SET).length} !!!`,
      lost: 6,
      last: 7_000,
    },
  ],
  ['is what was recorded where no server ran', { found: '', record: 5_000, lost: 5_000, last: null }],
  [
    'is dated by the newest remaining time',
    {
      found: at(7) + SET + at(8) + SET,
      record: 500,
      lost: 500 - (at(7) + SET + at(8) + SET).length,
      last: 8_000,
    },
  ],
  [
    'is dated across a long value',
    { found: at(7) + LONG, record: LONG.length + 1_000, lost: 1_000 - at(7).length, last: 7_000 },
  ],
  [
    'is not dated by a value',
    {
      found: at(7) + SET + LOOKALIKE,
      record: 500,
      lost: 500 - (at(7) + SET + LOOKALIKE).length,
      last: 7_000,
    },
  ],
])('a truncation %s', async (_, { found, left = found, record, output = '', lost, last }) => {
  const folder = await folderWith({ [MANIFEST]: manifest(1, 1), [writes(1)]: found });
  const path = join(folder, 'appendonlydir', writes(1));
  await utimes(path, CHANGED_MS / 1_000, CHANGED_MS / 1_000);
  const before = newestPart(await readAppendOnly(folder));
  if (before === null) throw new Error('found no newest part, expected one');
  await writeFile(path, left);
  const recorded: WriteRecord | null =
    record === undefined ? null : { file: writes(1), bytes: record, unreported: [] };
  const truncation = await findTruncation(folder, { before, record: recorded, output });
  expect(truncation).toEqual(
    lost === 0 ? null : { file: writes(1), bytes: lost, lastWriteMs: last, changedAtMs: CHANGED_MS },
  );
});

test('a record of another part claims nothing, and one that cannot be read is none', async () => {
  const folder = await folderWith({ [MANIFEST]: manifest(2, 2), [writes(2)]: SET });
  const before = newestPart(await readAppendOnly(folder));
  if (before === null) throw new Error('found no newest part, expected one');
  await writeRecord(folder, { file: writes(1), bytes: 9_000, unreported: [] });
  const record = await readRecord(folder);
  expect(record).toEqual({ file: writes(1), bytes: 9_000, unreported: [] });
  expect(await findTruncation(folder, { before, record, output: '' })).toBe(null);
  await writeFile(join(folder, 'redis-written.json'), '{"file":');
  expect(await readRecord(folder)).toBe(null);
});
