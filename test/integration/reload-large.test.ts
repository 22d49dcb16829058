import { expect, inject, test } from 'vitest';
import { configYaml, type TestConfig, testPrefix } from '../support/daemon.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { reloadable } from '../support/reloadable.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

/** The longest time for which the loop of this process does nothing while something runs, and how long that runs. */
async function longestStall(act: () => Promise<unknown>): Promise<{ stallMs: number; tookMs: number }> {
  const startedAt = performance.now();
  let [stallMs, lastAt, isOver] = [0, startedAt, false];
  const turn = (): void => {
    const at = performance.now();
    stallMs = Math.max(stallMs, at - lastAt);
    lastAt = at;
    if (!isOver) setTimeout(turn, 1);
  };
  turn();
  await act();
  isOver = true;
  turn();
  return { stallMs, tookMs: performance.now() - startedAt };
}

test('goes on with its work while it reads a config that is large and wrong', async () => {
  const upstream = await started(
    new ScriptedUpstream(() => ({ records: [intentRecord(hashOf(1), 'pending', 1_763_638_259)] })),
  );
  const hook = await started(new Hook());
  const config: TestConfig = {
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: { backend: { url: hook.url } },
    subscriptions: [{ name: 'orders', receivers: ['backend'], intents: [hashOf(1)] }],
  };
  const { daemon, write } = await reloadable(config, { later });
  await hook.until((came) => came.length === 1);
  // The second key of each pair is one too many, and each is compared with all before it by who does that simply.
  const keys = Array.from({ length: 5_000 }, (_, index) => `  k${index}: 1\n  k${index}: 2\n`);
  await write(`${configYaml(config)}\nextra:\n${keys.join('')}`);
  const { stallMs, tookMs } = await longestStall(async () =>
    expect(await daemon.reload()).toMatchObject({
      ok: false,
      error: expect.stringContaining('found a key again, expected each key once'),
    }),
  );
  expect(stallMs).toBeLessThan(tookMs / 3);
}, 120_000);
