import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { redisTimeMs } from '../../src/store/connection.ts';
import { configYaml, type TestConfig } from '../support/daemon.ts';
import { type DeliveryStage, deliveryStage, hourOfEvents, ROOT } from '../support/delivery-stage.ts';
import { Hook } from '../support/hook.ts';
import { appendEvents, type MadeEvent, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { freePort } from '../support/port.ts';
import { Program } from '../support/program.ts';

const open = opening();

const MAIN = new URL('../../src/main.ts', import.meta.url).pathname;
const NO_RETRIES = { retries: { delays: [] }, concurrency: 1 };

/** Writes a config file, gone after the test. */
async function configFile(yaml: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-commands-'));
  open.later(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const file = join(folder, 'intentwatch.yaml');
  await writeFile(file, yaml);
  return file;
}

/** Runs a command to its end. */
async function run(...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
  const program = await Program.start(MAIN, args);
  const { code } = await program.ending();
  return { code, out: program.stdout.join('\n'), err: program.stderr.join('\n') };
}

async function happen({ redis, keys }: DeliveryStage, count: number): Promise<MadeEvent[]> {
  const made = hourOfEvents(count, { fromMs: await redisTimeMs(redis), transfers: count });
  await appendEvents(redis, keys, made);
  return made;
}

/** A daemon with one receiver, and its config as a file. */
async function running(hook: Hook, more: object = {}) {
  const stage = await deliveryStage(open, { hook: { hook, more } });
  await stage.start();
  return { stage, file: await configFile(configYaml(stage.config)) };
}

describe('receivers', () => {
  test('shows state, backlog, dead letters, last success and error, and disables and enables', async () => {
    const hook = await open.started(new Hook());
    const { stage, file } = await running(hook, NO_RETRIES);
    await happen(stage, 1);
    await stage.drained('hook');
    const first = await run('receivers', '--config', file);
    expect(first.out).toMatch(
      /^NAME +TYPE +STATE +BACKLOG +OLDEST +NEXT ATTEMPT +DEAD +LAST SUCCESS +LAST ERROR$/m,
    );
    expect(first.out).toMatch(/^hook +webhook +ok +0 +0 +\d{4}-\d\d-\d\dT\S+Z +never$/m);

    expect(await run('receivers', 'disable', 'hook', '--config', file)).toEqual({
      code: 0,
      out: 'hook is disabled; its events are kept',
      err: '',
    });
    const again = await run('receivers', 'disable', 'hook', '--config', file);
    expect(again.out).toBe('hook was disabled already');
    const [last] = (await stage.redis.xrevrange(stage.keys.events, '+', '-', 'COUNT', 1)).map(([id]) => id);
    const fromMs = Number(last?.split('-')[0]) + 1;
    await appendEvents(
      stage.redis,
      stage.keys,
      hourOfEvents(3, { fromMs, transfers: 3 }).map((event) => ({ ...event, sequence: 2 })),
    );
    const held = await run('receivers', '--config', file);
    expect(held.out).toMatch(/^hook +webhook +disabled by the operator at \S+Z +3 +\S+Z +0 /m);

    const enabled = await run('receivers', 'enable', 'hook', '--config', file);
    expect(enabled).toMatchObject({ code: 0, err: '' });
    expect(enabled.out).toBe(
      'hook is enabled: it gets 0 held deliveries and 0 dead letters, then what came since',
    );
    await hook.until((came) => came.length === 4);
    expect((await run('receivers', 'enable', 'hook', '--config', file)).out).toBe('hook was not disabled');
  });

  test('names the receivers there are when it does not know one', async () => {
    const { file } = await running(await open.started(new Hook()));
    expect(await run('receivers', 'enable', 'hock', '--config', file)).toEqual({
      code: 1,
      out: '',
      err: 'intentwatch: found the receiver "hock", expected one of hook',
    });
  });

  test('says that an enabling waits while no daemon relays', async () => {
    const stage = await deliveryStage(open, { hook: { hook: await open.started(new Hook()) } });
    const { daemon } = await stage.start();
    await daemon.close();
    await stage.states.disable('hook');
    const file = await configFile(configYaml(stage.config));
    const enabled = await run('receivers', 'enable', 'hook', '--config', file);
    expect(enabled.out).toContain('no daemon relays now, one will take it up when it runs');
    expect(await stage.states.condition('hook')).toMatchObject({ state: 'enabling' });
  });
});

describe('dead-letters', () => {
  test('lists what ended without success, and retries one or all of it', async () => {
    const hook = await open.started(new Hook(() => 500));
    const { stage, file } = await running(hook, NO_RETRIES);
    const made = await happen(stage, 3);
    await stage.drained('hook');
    const listed = await run('dead-letters', '--config', file);
    const lines = listed.out.split('\n').slice(1);
    expect(lines.map((line) => line.split(/ {2,}/).toSpliced(5, 1))).toEqual(
      made.map((event) => [
        'hook',
        madeEventId(event),
        'intent.filled',
        event.subject,
        '1',
        '500 Internal Server Error',
      ]),
    );
    hook.answer = () => 204;
    const [one] = made;
    const retried = await run('dead-letters', 'retry', 'hook', one ? madeEventId(one) : '', '--config', file);
    expect(retried.out).toBe('1 of 3 dead letters of hook are delivered again');
    await stage.drained('hook');
    expect(hook.ids.slice(3)).toEqual([one ? madeEventId(one) : '']);

    const rest = await run('dead-letters', 'retry', 'hook', '--all', '--config', file);
    expect(rest.out).toBe('2 of 2 dead letters of hook are delivered again');
    await stage.drained('hook');
    expect(hook.ids.slice(4)).toEqual(made.slice(1).map(madeEventId));
    expect((await run('dead-letters', 'hook', '--config', file)).out).toBe('no dead letters');
  });

  test('are found and retried by time, type and status, with what each attempt was answered', async () => {
    const hook = await open.started(new Hook(({ event }) => (event.data.sequence === 1 ? 400 : 500)));
    const { stage, file } = await running(hook, NO_RETRIES);
    const fromMs = await redisTimeMs(stage.redis);
    const made = [
      { subject: 'intent:0x1', sequence: 1, type: 'intent.filled', atMs: fromMs },
      { subject: 'intent:0x2', sequence: 2, type: 'intent.settled', atMs: fromMs + 60_000 },
      { subject: 'intent:0x3', sequence: 1, type: 'intent.settled', atMs: fromMs + 120_000 },
    ].map((event) => ({ ...event, root: ROOT }));
    await appendEvents(stage.redis, stage.keys, made);
    await stage.drained('hook');
    const found = async (...filters: string[]): Promise<string[]> => {
      const { out } = await run('dead-letters', 'hook', ...filters, '--config', file);
      return made.filter((event) => out.includes(madeEventId(event))).map(({ subject }) => subject.slice(-1));
    };
    expect(await found('--status', '400')).toEqual(['1', '3']);
    expect(await found('--type', 'intent.settled')).toEqual(['2', '3']);
    expect(await found('--since', new Date(fromMs + 60_000).toISOString())).toEqual(['2', '3']);
    expect(await found('--until', new Date(fromMs + 60_000).toISOString(), '--status', '500')).toEqual([]);
    const attempts = await run('dead-letters', 'hook', '--attempts', '--status', '500', '--config', file);
    expect(attempts.out.split('\n')).toHaveLength(2);
    expect(attempts.out).toMatch(/^RECEIVER +EVENT +TYPE +AT +TOOK +REASON +ANSWER$/m);
    hook.answer = () => 204;
    const retried = await run('dead-letters', 'retry', 'hook', '--status', '400', '--config', file);
    expect(retried.out).toBe('2 of 3 dead letters of hook are delivered again');
    await stage.drained('hook');
    expect((await stage.deliveries.counts('hook')).dead).toBe(1);
  });

  test('does nothing when one of the events is no dead letter, and wants events or --all', async () => {
    const { stage, file } = await running(await open.started(new Hook(() => 500)), NO_RETRIES);
    const [one] = await happen(stage, 1);
    await stage.drained('hook');
    const id = one ? madeEventId(one) : '';
    expect(await run('dead-letters', 'retry', 'hook', id, 'evt_1', '--config', file)).toMatchObject({
      code: 1,
      err: 'intentwatch: found evt_1, expected dead letters of hook (nothing was done)',
    });
    expect((await stage.deliveries.counts('hook')).dead).toBe(1);
    expect(await run('dead-letters', 'retry', 'hook', '--config', file)).toMatchObject({
      code: 1,
      err: 'intentwatch: found none of events, --all and filters, expected one',
    });
  });
});

describe('replay', () => {
  test('tells how far it is and what became of it', async () => {
    const hook = await open.started(new Hook());
    const { stage, file } = await running(hook);
    const made = await happen(stage, 20);
    await stage.drained('hook');
    const [since, until] = [made[5], made[15]].map((event) => new Date(event?.atMs ?? 0).toISOString());
    const args = ['replay', 'hook', '--since', since ?? '', '--until', until ?? '', '--config', file];
    const { code, out } = await run(...args);
    expect(code).toBe(0);
    expect(out).toMatch(/^replay [0-9a-f]{16}: events of \S+Z to \S+Z to hook$/m);
    expect(out).toMatch(/^10 events sent once more: 10 delivered, 0 dead letters$/m);
    expect(hook.ids.slice(20).toSorted()).toEqual(made.slice(5, 15).map(madeEventId).toSorted());
  });

  test('refuses times that are none, a range that is none, and a receiver that is disabled', async () => {
    const { stage, file } = await running(await open.started(new Hook()));
    const config = ['--config', file];
    const yesterday = await run('replay', 'hook', '--since', 'yesterday', ...config);
    expect(yesterday).toMatchObject({ code: 1 });
    expect(yesterday.err).toContain(
      'expected a time with its zone like 2026-11-20T10:00:00Z, or a span like 2h',
    );
    expect(await run('replay', 'hook', '--since', '1h', '--until', '2h', ...config)).toMatchObject({
      code: 1,
      err: 'intentwatch: found a since that is not before until, expected it to be',
    });
    await stage.states.disable('hook');
    expect(await run('replay', 'hook', '--since', '1h', ...config)).toMatchObject({
      code: 1,
      err: 'intentwatch: hook is disabled; enable it first: intentwatch receivers enable hook',
    });
    expect(await stage.replays.open()).toEqual([]);
  });
});

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

describe('where Redis is', () => {
  test('a command reaches the embedded Redis of the running daemon, and says 75 when none runs', async () => {
    const hook = await open.started(new Hook());
    const { config } = await deliveryStage(open, { hook: { hook } });
    const file = await configFile(embedded(config));
    const without = await run('receivers', '--config', file);
    expect(without).toMatchObject({ code: 75, out: '' });
    expect(without.err).toMatch(
      /no daemon runs on dataDir \S+data, and the embedded Redis runs only with it/,
    );

    const daemon = await Program.start(MAIN, ['start', '--config', file]);
    open.later(async () => {
      await daemon.end('SIGTERM');
    });
    await daemon.line(/"msg":"daemon.started"/);
    const shown = await run('receivers', '--config', file);
    expect(shown).toMatchObject({ code: 0, err: '' });
    expect(shown.out).toMatch(/^hook +webhook +ok +0 +0 +never +never$/m);
  });

  test('a Redis that does not answer is 75', async () => {
    const { config } = await deliveryStage(open, { hook: { hook: await open.started(new Hook()) } });
    const redisUrl = `redis://127.0.0.1:${await freePort()}`;
    const { code, err } = await run(
      'receivers',
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
