import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import { configYaml, testPrefix } from './daemon.ts';
import { freePort } from './port.ts';
import { hashOf } from './scripted-upstream.ts';

/** Writes the config file of a daemon whose upstream never answers; `write` replaces its section `log`. */
export async function loggingConfig(
  later: (close: () => Promise<unknown>) => void,
): Promise<{ file: string; port: number; write: (log: object) => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-log-'));
  later(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const file = join(folder, 'intentwatch.yaml');
  const port = await freePort();
  const config = {
    baseUrl: 'http://127.0.0.1:9',
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: {},
    subscriptions: [{ name: 'orders', receivers: [], intents: [hashOf(1)] }],
  };
  const write = (log: object): Promise<void> =>
    writeFile(file, configYaml({ ...config, more: { server: { host: '127.0.0.1', port }, log } }));
  await write({});
  return { file, port, write };
}
