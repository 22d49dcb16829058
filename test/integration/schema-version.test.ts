import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Queue } from 'bullmq';
import { pino } from 'pino';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { asSubjectId, type SubjectId } from '../../src/domain/subjects/subject.ts';
import { scheduleMigration } from '../../src/queues/migrate-schedule.ts';
import { type RedisClient, SCHEMA_VERSION } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { type Migration, migrate } from '../../src/store/migrate.ts';
import { SchemaVersion } from '../../src/store/schema-version.ts';
import { runCommand } from '../support/command.ts';
import { configYaml, startDaemon, type TestConfig, testPrefix } from '../support/daemon.ts';
import { deliveryStage } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { Program } from '../support/program.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const open = opening();
const MAIN = join(import.meta.dirname, '../../src/main.ts');
const NEWER = String(SCHEMA_VERSION + 1);

function connected(): { redis: RedisClient; keys: Keys } {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  open.later(() => disconnect(redis));
  return { redis, keys: new Keys(testPrefix()) };
}

async function configFile(config: TestConfig): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-test-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'intentwatch.yaml');
  await writeFile(file, configYaml(config));
  return file;
}

/** How a command ends that cannot do its work. */
async function refused(command: string, config: TestConfig): Promise<{ code: number | null; err: string }> {
  if (command !== 'start') return runCommand([command, '--config', await configFile(config)]);
  const daemon = await started(config);
  const { code } = await daemon.ending();
  return { code, err: daemon.stderr.join('\n') };
}

/** The daemon as a process of its own. */
async function started(config: TestConfig): Promise<Program> {
  const running = await Program.start(MAIN, ['start', '--config', await configFile(config)]);
  open.later(() => running.end('SIGKILL'));
  return running;
}

describe('data of a newer version', () => {
  test.each([
    ['start'],
    ['set-aside'],
    ['learned'],
  ])('is refused by %s with one sentence, and left alone', async (command) => {
    const hook = await open.started(new Hook());
    const { config, redis, keys } = await deliveryStage(open, { hook: { hook } });
    await redis.set(keys.schema, NEWER);
    const { code, err } = await refused(command, config);
    expect(code).toBe(1);
    const expected = `intentwatch: Redis holds data of version ${NEWER}, expected ${SCHEMA_VERSION} or older: start the newer Intentwatch that wrote it, or restore a dump from before it`;
    expect(err).toBe(expected);
    expect(await redis.keys(`${keys.root}:*`)).toEqual([keys.schema]);
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

test('a Redis that is emptied gets the version again, and the daemon goes on', async () => {
  const hook = await open.started(new Hook());
  const { config, redis, keys } = await deliveryStage(open, { hook: { hook } });
  const lines: string[] = [];
  const { daemon } = await startDaemon(config, (line) => lines.push(line));
  open.later(() => daemon.close());
  const all = await redis.keys(`${keys.root}:*`);
  await redis.del(...all);
  await eventually(
    'the version is back',
    async () => (await redis.get(keys.schema)) === String(SCHEMA_VERSION),
  );
  await eventually('the config is back', async () => (await redis.exists(keys.config)) === 1);
  expect(lines.some((line) => line.includes('schema.changed'))).toBe(false);
});

describe('migrating', () => {
  const log = pino({ level: 'silent' });
  const signal = new AbortController().signal;

  test('is done by one process while the others wait, and goes on after a crash', async () => {
    const { redis, keys } = connected();
    const waiting = connected().redis;
    const ran: string[] = [];
    const migration = (name: string, end: () => Promise<void>): Migration => ({
      to: 1,
      run: async ({ proceed }) => {
        ran.push(`${name} begins`);
        await proceed();
        await end();
        ran.push(`${name} ends`);
      },
    });
    const crash = async (): Promise<void> => {
      throw new Error('crash');
    };
    const crashing = migrate({ redis, keys, migrations: [migration('one', crash)], log, signal });
    await expect(crashing).rejects.toThrow('crash');
    expect(await redis.get(keys.schema)).toBe(null);

    const gate = Promise.withResolvers<void>();
    const second = migrate({ redis, keys, migrations: [migration('two', () => gate.promise)], log, signal });
    await eventually('the second is at work', () => ran.includes('two begins'));
    const third = migrate({ redis: waiting, keys, migrations: [migration('three', crash)], log, signal });
    gate.resolve();
    await Promise.all([second, third]);
    expect(ran).toEqual(['one begins', 'two begins', 'two ends']);
    expect(await new SchemaVersion(redis, keys).read()).toBe(SCHEMA_VERSION);
    await migrate({ redis, keys, migrations: [migration('four', crash)], log, signal });
  });

  test('the schedule of version 0 hands every subject over, in batches, and leaves nothing of it', async () => {
    const { redis, keys } = connected();
    const root = keys.root;
    const subjects = Array.from({ length: 1_201 }, (_, at) => `intent:${hashOf(at)}`);
    await redis.zadd(`${root}:due`, ...subjects.flatMap((subject, at) => [at, subject]), 5, 'of no kind');
    await redis.hset(`${root}:seen`, { [subjects[0] ?? '']: '1' });
    await redis.hset(`${root}:starts`, { [subjects[0] ?? '']: '2' });
    await redis.hset(`${root}:own`, { [subjects[0] ?? '']: '2' });
    await redis.sadd(`${root}:nudged`, subjects[0] ?? '');
    for (const surface of ['status', 'gateway', 'quotes']) {
      await redis.hset(`${root}:demand:${surface}`, { [subjects[0] ?? '']: '0.1' });
      for (const name of ['demand-total', 'price', 'turn'])
        await redis.set(`${root}:${name}:${surface}`, '1');
      await redis.hset(`${root}:asked:${surface}`, { served: '1' });
    }
    const queue = new Queue('status', { connection: redis, prefix: keys.queues });
    const jobs = subjects.map((subject) => ({
      name: 'poll',
      data: { do: 'subject', subject },
      opts: { jobId: `poll-${randomUUID()}`, delay: 3_600_000 },
    }));
    await queue.addBulk(jobs);
    await queue.close();
    const kept = [keys.subject(asSubjectId(subjects[0] ?? '')), keys.subscriptions, keys.wanted];
    for (const key of kept) await redis.hset(key, 'version', '1');

    const batches: SubjectId[][] = [];
    let isCut = false;
    const track = async (batch: readonly SubjectId[]): Promise<void> => {
      if (batches.length === 1 && !isCut) {
        isCut = true;
        throw new Error('crash');
      }
      batches.push([...batch]);
    };
    const parts = { redis, keys, migrations: [scheduleMigration(track)], log, signal };
    await expect(migrate(parts)).rejects.toThrow('crash');
    expect(await redis.get(keys.schema)).toBe(null);
    await migrate(parts);
    expect(batches.flat().toSorted()).toEqual(subjects.toSorted());
    expect(Math.max(...batches.map((batch) => batch.length))).toBeLessThanOrEqual(500);
    const left = await redis.keys(`${root}:*`);
    expect(left.toSorted()).toEqual([...kept, keys.schema, keys.schemaFence].toSorted());
  });
});
