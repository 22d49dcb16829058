import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { type Ran, runCommand } from '../support/command.ts';
import { configYaml, type TestConfig } from '../support/daemon.ts';
import { deliveryStage } from '../support/delivery-stage.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { freePort } from '../support/port.ts';
import { Program } from '../support/program.ts';

const open = opening();

const MAIN = new URL('../../src/main.ts', import.meta.url).pathname;
const _NO_RETRIES = { retries: { delays: [] }, concurrency: 1 };

async function configFile(yaml: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-commands-'));
  open.later(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const file = join(folder, 'intentwatch.yaml');
  await writeFile(file, yaml);
  return file;
}

async function run(...args: string[]): Promise<Ran> {
  return runCommand(args);
}

describe('test', () => {
  test('sends one signed event and shows the answer, without a daemon', async () => {
    const hook = await open.started(new Hook());
    const { config } = await deliveryStage(open, { hook: { hook } });
    const yaml = configYaml({ ...config, redisUrl: 'redis://127.0.0.1:1' });
    const { code, out } = await run('test', 'hook', '--config', await configFile(yaml));
    expect(code).toBe(0);
    expect(out).toMatch(
      /^hook: delivered after \d+ ms: 204 No Content\nevent: {2}evt_[0-9a-f]{40}, intentwatch.test$/,
    );
    const [came] = hook.came;
    expect(came?.event).toMatchObject({ type: 'intentwatch.test', data: { record: { receiver: 'hook' } } });
    const headers = {
      'webhook-id': String(came?.headers['webhook-id']),
      'webhook-timestamp': String(came?.headers['webhook-timestamp']),
      'webhook-signature': String(came?.headers['webhook-signature']),
    };
    const secret = parse(yaml).receivers[0].secrets[0];
    expect(new Webhook(secret).verify(came?.body ?? '', headers)).toMatchObject({ type: 'intentwatch.test' });

    hook.answer = () => 418;
    const refused = await run('test', 'hook', '--config', await configFile(yaml));
    expect(refused.code).toBe(1);
    expect(refused.out).toContain('hook: failed after');
    expect(refused.out).toContain("418 I'm a Teapot");
  });
});

describe('the location of Redis', () => {
  test('a command reaches the embedded Redis of the running daemon, and ends with 75 when none runs', async () => {
    const hook = await open.started(new Hook());
    const { config } = await deliveryStage(open, { hook: { hook } });
    const file = await configFile(embedded(config));
    const without = await run('quarantine', '--config', file);
    expect(without).toMatchObject({ code: 75, out: '' });
    expect(without.err).toMatch(
      /no daemon runs on dataDir \S+data, and the embedded Redis runs only with it/,
    );

    const daemon = await Program.start(MAIN, ['start', '--config', file]);
    open.later(async () => {
      await daemon.end('SIGTERM');
    });
    await daemon.line(/"msg":"daemon.started"/);
    const shown = await run('quarantine', '--config', file);
    expect(shown).toEqual({ code: 0, out: 'nothing is quarantined', err: '' });
  });

  test('a Redis that does not answer is 75', async () => {
    const { config } = await deliveryStage(open, { hook: { hook: await open.started(new Hook()) } });
    const redisUrl = `redis://127.0.0.1:${await freePort()}`;
    const { code, err } = await run(
      'quarantine',
      '--config',
      await configFile(configYaml({ ...config, redisUrl })),
    );
    expect(code).toBe(75);
    expect(err).toMatch(/^intentwatch: Redis cannot be reached: connect ECONNREFUSED/);
  });
});

function embedded(config: TestConfig): string {
  const { redis: _, ...sections } = parse(configYaml(config));
  return stringify({ ...sections, dataDir: './data' });
}
