import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { configYaml, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import type { Program } from '../support/program.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';
import { ShiftedClock } from '../support/shifted-clock.ts';
import { Stage } from '../support/stage.ts';

const { later, started } = opening();
const GCC = needs(PARTS.gcc);

const MAIN = join(import.meta.dirname, '../../src/main.ts');
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/**
 * The shipped program with a clock that the test sets, and an upstream with one pending transfer. All clocks are `baseMs` ahead
 * of the real one. Its Redis is embedded and has that clock too, or has the right clock.
 */
async function stage(given: { baseMs: number; pendingForMs: number; redis: 'embedded' | 'right' }) {
  const { baseMs, pendingForMs } = given;
  const clock = new ShiftedClock();
  later(async () => clock.close());
  const aheadBy = (ms: number): void => clock.shift(baseMs + ms);
  aheadBy(0);
  const updatedAt = Math.floor((Date.now() + baseMs - pendingForMs) / 1_000);
  const results = [intentRecord(hashOf(1), 'pending', updatedAt)];
  const upstream = await started(
    new ScriptedUpstream(() => ({
      status: 200,
      body: JSON.stringify({ results, nextCursor: null }),
      headers: { date: new Date(Date.now() + baseMs).toUTCString() },
    })),
  );
  const hook = await started(new Hook());
  const programs = new Stage(onTestFinished);
  const folder = await programs.folder();
  const redis = given.redis === 'right' ? await programs.redis() : null;
  const file = join(folder, 'intentwatch.yaml');
  const config = {
    baseUrl: upstream.url,
    redisUrl: redis?.url ?? '',
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url, more: { events: ['intent.*', 'intentwatch.*'] } } },
    subscriptions: [{ name: 'all', intents: [hashOf(1)], receivers: ['hook'], overdueAfter: '30m' }],
    more: {
      dataDir: join(folder, 'data'),
      ...(redis === null ? { redis: {}, books: { closeAfter: '45m' } } : {}),
    },
  };
  await writeFile(file, configYaml(config));
  return { aheadBy, upstream, hook, programs, file, env: clock.env };
}

function logged({ stdout }: Program, name: string): string[] {
  return stdout.filter((line) => line.includes(`"msg":"${name}"`));
}

describe.skipIf(GCC.skip)(`the shipped program, its clock an hour ahead for seconds${GCC.note}`, () => {
  test('with that of Redis: no day is closed, and nothing is overdue', async () => {
    // A minute before the end of a day, which is closed 45 min after it.
    const baseMs = DAY_MS - (Date.now() % DAY_MS) - 60_000;
    const { aheadBy, hook, programs, file, env } = await stage({
      baseMs,
      pendingForMs: 0,
      redis: 'embedded',
    });
    const daemon = await programs.program(MAIN, ['start', '--config', file], env);
    const types = (): string[] => hook.came.map(({ event }) => event.type);
    await hook.until(() => types().includes('intent.pending'));
    aheadBy(HOUR_MS);
    await eventually('it is noticed, or acted upon', () => {
      return types().includes('intentwatch.clock_jumped') || logged(daemon, 'books.closed').length > 0;
    });
    aheadBy(0);
    await eventually(
      'the clocks agree again, or nobody compares them',
      () => logged(daemon, 'clocks.moved').length !== 1,
    );
    expect(logged(daemon, 'books.closed')).toEqual([]);
    expect(types()).toEqual(['intent.pending', 'intentwatch.clock_jumped']);
  });

  test('alone: reminders wait until it is right again', async () => {
    const { aheadBy, hook, upstream, programs, file, env } = await stage({
      baseMs: 0,
      pendingForMs: HOUR_MS,
      redis: 'right',
    });
    aheadBy(HOUR_MS);
    await programs.program(MAIN, ['start', '--config', file], env);
    await hook.until((came) => came.length >= 1);
    await upstream.awaitRequest(({ query }) => query.intentHash !== undefined);
    expect(hook.came.map(({ event }) => event.type)).toEqual(['intent.pending']);
    aheadBy(0);
    await hook.until((came) => came.length >= 2);
    expect(hook.came.map(({ event }) => event.type)).toEqual(['intent.pending', 'intent.overdue']);
  });
});
