import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { ConfigFile } from '../../src/config/file/config-file.ts';
import { Daemon } from '../../src/daemon/daemon.ts';
import { configYaml, type TestConfig } from './daemon.ts';
import type { opening } from './opening.ts';

/** A daemon inside the test's process that reads its config again. */
export type Reloadable = {
  daemon: Daemon;
  file: string;
  lines: { msg: string; [field: string]: unknown }[];
  write: (config: TestConfig | string) => Promise<void>;
};

/** Makes a folder of the test's own, removed after it. */
export async function testFolder({ later }: Pick<ReturnType<typeof opening>, 'later'>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-reload-'));
  later(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** Starts a daemon that can reload its config, closed after the test; the config is `file`, or a file of its own. */
export async function reloadable(
  config: TestConfig,
  { later, file: named }: Pick<ReturnType<typeof opening>, 'later'> & { file?: string },
): Promise<Reloadable> {
  const file = named ?? join(await testFolder({ later }), 'intentwatch.yaml');
  const write = async (next: TestConfig | string): Promise<void> => {
    await writeFile(`${file}.new`, typeof next === 'string' ? next : configYaml(next));
    await rename(`${file}.new`, file);
  };
  if (named === undefined) await write(config);
  const lines: Reloadable['lines'] = [];
  const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const source = new ConfigFile(file, process.env);
  const daemon = new Daemon({ config: await source.load(), log, source });
  await daemon.start();
  later(() => daemon.close());
  return { daemon, file, lines, write };
}
