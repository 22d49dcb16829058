import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { SCHEMA_VERSION } from '../../src/store/commands.ts';
import { runCommand } from '../support/command.ts';
import { configYaml, startDaemon, type TestConfig } from '../support/daemon.ts';
import { deliveryStage } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { Program } from '../support/program.ts';

const open = opening();
const MAIN = join(import.meta.dirname, '../../src/main.ts');
const NEWER = String(SCHEMA_VERSION + 1);

async function configFile(config: TestConfig): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-test-'));
  onTestFinished(() => rm(folder, { recursive: true, maxRetries: 5 }));
  const file = join(folder, 'intentwatch.yaml');
  await writeFile(file, configYaml(config));
  return file;
}

async function refused(command: string, config: TestConfig): Promise<{ code: number | null; err: string }> {
  if (command !== 'start') return runCommand([command, '--config', await configFile(config)]);
  const daemon = await started(config);
  const { code } = await daemon.ending();
  return { code, err: daemon.stderr.join('\n') };
}

async function started(config: TestConfig): Promise<Program> {
  const running = await Program.start(MAIN, ['start', '--config', await configFile(config)]);
  open.later(() => running.end('SIGKILL'));
  return running;
}

describe('data of a newer version', () => {
  test.each([
    ['start'],
    ['quarantine'],
    ['learned'],
  ])('is refused by %s with one sentence, and not changed', async (command) => {
    const hook = await open.started(new Hook());
    const { config, redis, keys } = await deliveryStage(open, { hook: { hook } });
    await redis.set(keys.schema, NEWER);
    const { code, err } = await refused(command, config);
    expect(code).toBe(1);
    const expected = `intentwatch: Redis holds data of version ${NEWER}, expected ${SCHEMA_VERSION}: start the newer Intentwatch that wrote it, or restore a dump from before it`;
    expect(err).toBe(expected);
    expect(await redis.keys(`${keys.prefix}:*`)).toEqual([keys.schema]);
  });

  test('ends a daemon that runs, cleanly', async () => {
    const hook = await open.started(new Hook());
    const { config, redis, keys, lease } = await deliveryStage(open, { hook: { hook } });
    const running = await started(config);
    await running.line(/daemon\.started/);
    expect(await redis.get(keys.schema)).toBe(String(SCHEMA_VERSION));
    await redis.set(keys.schema, NEWER);
    expect((await running.ending()).code).toBe(1);
    expect(running.stdout.some((line) => line.includes('schema.changed'))).toBe(true);
    expect(running.stdout.at(-1)).toContain('daemon.stopped');
    expect(running.stderr.at(-1)).toContain(`data of version ${NEWER}`);
    expect(await lease.isHeld()).toBe(false);
  });
});

describe('data of an older version', () => {
  test.each([
    ['1', '1'],
    [null, '0'],
  ])('(stored as %j) is refused at the start with one sentence, and not changed', async (stored, found) => {
    const hook = await open.started(new Hook());
    const { config, redis, keys } = await deliveryStage(open, { hook: { hook } });
    await redis.set(keys.config, 'of a clone from before 0.1.0');
    if (stored !== null) await redis.set(keys.schema, stored);
    const before = (await redis.keys(`${keys.prefix}:*`)).toSorted();
    const { code, err } = await refused('start', config);
    expect(code).toBe(1);
    expect(err).toBe(
      `intentwatch: Redis holds data of version ${found}, expected ${SCHEMA_VERSION}: a clone from before 0.1.0 wrote it, and this version does not read it; set another redis.prefix, or start with an empty Redis or dataDir`,
    );
    expect((await redis.keys(`${keys.prefix}:*`)).toSorted()).toEqual(before);
  });
});

test('a Redis that is emptied gets the version again, and the daemon goes on', async () => {
  const hook = await open.started(new Hook());
  const { config, redis, keys } = await deliveryStage(open, { hook: { hook } });
  const lines: string[] = [];
  const { daemon } = await startDaemon(config, (line) => lines.push(line));
  open.later(() => daemon.close());
  const all = await redis.keys(`${keys.prefix}:*`);
  await redis.del(...all);
  await eventually(
    'the version is back',
    async () => (await redis.get(keys.schema)) === String(SCHEMA_VERSION),
  );
  await eventually('the config is back', async () => (await redis.exists(keys.config)) === 1);
  expect(lines.some((line) => line.includes('schema.changed'))).toBe(false);
});
