import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { probeSocket } from '../../src/store/embedded-files.ts';

test('a server that ends amid the question is gone', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-embedded-socket-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const server = createServer((connection) => connection.once('data', () => connection.end()));
  onTestFinished(() => void server.close());
  const path = join(folder, 'redis.sock');
  await once(server.listen(path), 'listening');
  expect(await probeSocket(path)).toBe('gone');
});
