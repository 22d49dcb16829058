import { expect, test } from 'vitest';
import { redisTimeMs } from '../../src/store/commands.ts';
import { deliveryStage, happen, hourOfEvents } from '../support/delivery-stage.ts';
import { type Came, Hook } from '../support/hook.ts';
import { appendEvents, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const open = opening();

const ORDERED = {
  ordering: 'subject',
  concurrency: 8,
  timeout: '2m',
  retries: { delays: ['300ms', '1ms'], jitter: 0 },
};

function sequencesOf(came: readonly Came[], subject: string): number[] {
  return came
    .filter(({ event }) => event.data.subject.id === subject)
    .map(({ event }) => event.data.sequence);
}

test('the events of a transfer wait for the one before them, through its retries, and those of others do not', async () => {
  const slow = `intent:${hashOf(1_000)}`;
  const others = Promise.withResolvers<void>();
  let refused = 0;
  const hook: Hook = await open.started(
    new Hook(async ({ event }) => {
      // 45 events of the others, and the one that is held.
      if (new Set(hook.ids).size === 46) others.resolve();
      if (event.data.subject.id !== slow || event.data.sequence !== 1) return 204;
      await others.promise;
      refused += 1;
      return refused <= 2 ? 503 : 204;
    }),
  );
  const stage = await deliveryStage(open, { hook: { hook, more: ORDERED } });
  await stage.start();
  const made = await happen(stage, 50, 10);
  await stage.drained('hook');

  expect(sequencesOf(hook.came, slow)).toEqual([1, 1, 1, 2, 3, 4, 5]);
  for (const subject of new Set(made.map((event) => event.subject))) {
    if (subject !== slow) expect(sequencesOf(hook.came, subject)).toEqual([1, 2, 3, 4, 5]);
  }
});

test('a dead letter releases the events behind it, and types that are filtered out make no gap that blocks', async () => {
  const hook = await open.started(new Hook(({ event }) => (event.data.sequence === 1 ? 500 : 204)));
  const more = {
    ...ORDERED,
    events: ['*', '!intent.updated'],
    retries: { delays: ['1ms', '1ms'], jitter: 0 },
  };
  const stage = await deliveryStage(open, { hook: { hook, more } });
  await stage.start();
  const made = hourOfEvents(6, { fromMs: (await redisTimeMs(stage.redis)) + 1_000, transfers: 1 }).map(
    (event) =>
      event.sequence % 2 === 0 && event.sequence < 6 ? { ...event, type: 'intent.updated' } : event,
  );
  await appendEvents(stage.redis, stage.keys, made);
  await stage.drained('hook');
  expect(hook.came.map(({ event }) => event.data.sequence)).toEqual([1, 1, 1, 3, 5, 6]);
  const [first] = made;
  expect(await stage.backlog.dead('hook', { sinceMs: 0, count: 10 })).toEqual(
    first === undefined ? [] : [madeEventId(first)],
  );
});

test('without ordering, one that fails is overtaken', async () => {
  // The first is refused when the second has come: it waits for none before it.
  const hook: Hook = await open.started(
    new Hook(async ({ event }) => {
      if (event.data.sequence === 2) return 204;
      await hook.until((came) => came.some(({ event: { data } }) => data.sequence === 2));
      return 500;
    }),
  );
  const more = { retries: { delays: ['300ms'], jitter: 0 } };
  const stage = await deliveryStage(open, { hook: { hook, more } });
  await stage.start();
  const _made = await happen(stage, 2, 1);
  await stage.drained('hook');
  const sequences = hook.came.map(({ event }) => event.data.sequence);
  // The first two are under way at the same time.
  expect([sequences.slice(0, 2).toSorted(), sequences.slice(2)]).toEqual([[1, 2], [1]]);
});
