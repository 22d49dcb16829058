import type { Worker } from 'node:worker_threads';
import { expect, inject, test } from 'vitest';
import { configYaml, type TestConfig, testPrefix } from '../support/daemon.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { reloadable } from '../support/reloadable.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

/** The loop turns of this process during the work of each thread that an act started: from its start to its answer. */
async function turnsBesideThreads(act: () => Promise<unknown>): Promise<number[]> {
  const threads: { turns: number; isDone: boolean }[] = [];
  const note = (thread: Worker): void => {
    const one = { turns: 0, isDone: false };
    threads.push(one);
    const turn = (): void => {
      if (one.isDone) return;
      one.turns += 1;
      setImmediate(turn);
    };
    thread.once('online', turn);
    thread.once('message', () => {
      one.isDone = true;
    });
  };
  process.on('worker', note);
  await act().finally(() => process.off('worker', note));
  return threads.map(({ turns }) => turns);
}

/** More than the turns of a loop that is blocked meanwhile. */
const FEW_TURNS = 10;

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
  // The second key of each pair is a duplicate; a simple check compares each with all before it.
  const keys = Array.from({ length: 5_000 }, (_, index) => `  k${index}: 1\n  k${index}: 2\n`);
  await write(`${configYaml(config)}\nextra:\n${keys.join('')}`);
  const turns = await turnsBesideThreads(async () =>
    expect(await daemon.reload()).toMatchObject({
      ok: false,
      error: expect.stringContaining('found a key again, expected each key once'),
    }),
  );
  expect(turns).toEqual([expect.toSatisfy((count: number) => count > FEW_TURNS)]);
});
