import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeFolder } from '../../src/files.ts';

test('makes a folder with those above it, and does not change an existing one', async () => {
  const base = await mkdtemp(join(tmpdir(), 'intentwatch-folder-'));
  onTestFinished(() => rm(base, { recursive: true }));
  const folder = join(base, 'a/b/c');
  await Promise.all([makeFolder(folder), makeFolder(folder)]);
  await makeFolder(folder);
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  await writeFile(join(base, 'file'), '');
  await expect(makeFolder(join(base, 'file'))).rejects.toThrow('EEXIST');
  await expect(makeFolder(join(base, 'file/a/b'))).rejects.toThrow('ENOTDIR');
});

test('makes one folder for many concurrent calls', async () => {
  const base = await mkdtemp(join(tmpdir(), 'intentwatch-folder-'));
  onTestFinished(() => rm(base, { recursive: true }));
  const folders = Array.from({ length: 50 }, (_, index) => join(base, `${index}/a/b/c`));
  await Promise.all(
    folders.flatMap((folder) => [folder, `${folder}/d`, folder, `${folder}/d/e`]).map(makeFolder),
  );
  for (const folder of folders) expect((await stat(`${folder}/d/e`)).isDirectory(), folder).toBe(true);
});

test.skipIf(process.platform !== 'linux')('ends where a folder takes none', async () => {
  await expect(makeFolder('/proc/intentwatch/data')).rejects.toThrow('ENOENT');
});
