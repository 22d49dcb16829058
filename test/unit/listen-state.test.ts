import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ListenState } from '../../src/commands/listen.ts';

const FROM = 'http://127.0.0.1:9464';

async function newFile(): Promise<string> {
  const base = await mkdtemp(join(tmpdir(), 'intentwatch-listen-'));
  onTestFinished(() => rm(base, { recursive: true }));
  return join(base, 'state', 'listen.json');
}

test('makes one secret for listeners that start at once', async () => {
  const file = await newFile();
  const all = await Promise.all(Array.from({ length: 20 }, () => ListenState.open(file)));
  const stored = await ListenState.open(file);
  expect(new Set(all.map(({ secret }) => secret.reveal()))).toEqual(new Set([stored.secret.reveal()]));
  expect(await readdir(join(file, '..'))).toEqual(['.intentwatch-folder', 'listen.json']);
});

test('retains the places of listeners that run side by side', async () => {
  const file = await newFile();
  const [one, other] = [await ListenState.open(file), await ListenState.open(file)];
  const [toOne, toOther] = [
    { from: FROM, to: 'http://127.0.0.1:8001/' },
    { from: FROM, to: 'http://127.0.0.1:8002/' },
  ];
  await one.advance({ ...toOne, cursor: 'a' });
  await other.advance({ ...toOther, cursor: 'b' });
  await Promise.all([one.advance({ ...toOne, cursor: 'c' }), other.advance({ ...toOther, cursor: 'd' })]);
  const next = await ListenState.open(file);
  expect([await next.cursor(toOne), await next.cursor(toOther)]).toEqual(['c', 'd']);
  expect(await next.cursor({ ...toOne, to: 'http://127.0.0.1:8003/' })).toBe(null);
});
