import { setTimeout as wait } from 'node:timers/promises';
import { expect, inject, test } from 'vitest';
import { z } from 'zod';
import { intentId } from '../../src/domain/subjects/subject.ts';
import { trackedKey } from '../../src/domain/subjects/subscription.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import type { ChildDaemon } from '../support/child-daemon.ts';
import { type TestConfig, testPrefix } from '../support/daemon.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started, child } = opening();

const SUBJECTS = 10_000;
const PER_SECOND = 200;
const KILLS = 6;

const DEFINITION = z.object({
  metadata: z.object({ order: z.string() }),
  removedAtMs: z.number().nullable(),
});

const ANSWER = z.object({ subject: z.string(), created: z.boolean() });

function urlOf(daemon: ChildDaemon): string {
  return z.string().parse(daemon.lines.findLast(({ msg }) => msg === 'server.listening')?.url);
}

test('10,000 tracked at 200 a second while daemons are killed: none is lost, none is there twice', async () => {
  const upstream = await started(
    new ScriptedUpstream(({ query }) => ({
      records: [intentRecord(query.intentHash ?? '', 'unknown', null)],
    })),
  );
  const hook = await started(new Hook());
  const config: TestConfig = {
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: { backend: { url: hook.url } },
    subscriptions: [{ name: 'orders', receivers: ['backend'], intents: [hashOf(SUBJECTS + 1)] }],
  };
  const daemons = [child(config), child(config)];
  for (const daemon of daemons) await daemon.start();

  const created = new Map<string, number>();
  const answered = new Set<string>();
  let failed = 0;
  /** Sends the request to one daemon after the other until one answers: repeated requests have no effect. */
  const track = async (index: number): Promise<void> => {
    for (let tries = 0; ; tries += 1) {
      const daemon = daemons[(index + tries) % daemons.length];
      try {
        if (daemon === undefined) throw new Error('there is no daemon');
        const answer = await fetch(`${urlOf(daemon)}/api/v1/subjects`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({
            kind: 'intent',
            id: hashOf(index),
            metadata: { order: String(index) },
            receivers: ['backend'],
          }),
        });
        if (answer.status !== 200 && answer.status !== 201) throw new Error(`answered ${answer.status}`);
        const { subject, created: isNew } = ANSWER.parse(await answer.json());
        answered.add(subject);
        if (isNew) created.set(subject, (created.get(subject) ?? 0) + 1);
        return;
      } catch {
        failed += 1;
        await wait(100);
      }
    }
  };

  const beganAt = performance.now();
  const requests: Promise<void>[] = [];
  let killing: Promise<void> = Promise.resolve();
  for (let index = 0; index < SUBJECTS; index += 1) {
    requests.push(track(index));
    if (index > 0 && index % Math.floor(SUBJECTS / (KILLS + 1)) === 0) {
      const daemon = daemons[index % 2];
      killing = killing.then(async () => {
        await daemon?.kill();
        await daemon?.start();
      });
    }
    const dueMs = ((index + 1) * 1_000) / PER_SECOND - (performance.now() - beganAt);
    if (dueMs > 0) await wait(dueMs);
  }
  await Promise.all(requests);
  await killing;
  const perSecond = (SUBJECTS * 1_000) / (performance.now() - beganAt);
  console.log(`${Math.round(perSecond)} a second; ${failed} requests failed and were made again`);

  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(config.prefix);
  expect(answered.size).toBe(SUBJECTS);
  // An answer may be lost with its daemon: then no client learns that it was new.
  expect([...created.values()].filter((times) => times > 1)).toEqual([]);
  expect(await redis.hlen(keys.wanted)).toBe(SUBJECTS + 1);
  const definitions = await redis.hgetall(keys.tracked);
  const planned = new Set(await redis.hkeys(`${keys.plan('status')}:items`));
  expect(Object.keys(definitions)).toHaveLength(SUBJECTS);
  const subjects = Array.from({ length: SUBJECTS }, (_, index) => intentId(hashOf(index)));
  const pipeline = redis.pipeline();
  for (const subject of subjects) pipeline.hkeys(keys.claims(subject));
  const claims = (await pipeline.exec()) ?? [];
  const wrong = subjects.filter((subject, index) => {
    const { metadata, removedAtMs } = DEFINITION.parse(JSON.parse(definitions[subject] ?? '{}'));
    const isDefined = metadata.order === String(index) && removedAtMs === null;
    return !isDefined || String(claims[index]?.[1]) !== trackedKey(subject) || !planned.has(subject);
  });
  expect(wrong).toEqual([]);
}, 1_500_000);
