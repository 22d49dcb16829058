import { expect, inject, onTestFinished, test } from 'vitest';
import { intentId } from '../../src/domain/subjects/subject.ts';
import { connect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { PlanStore } from '../../src/store/plan.ts';
import { testPrefix } from '../support/daemon.ts';
import { hashOf } from '../support/scripted-upstream.ts';

test('of many polls that are requested, the first that may be made now are, and the others the next time', async () => {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  onTestFinished(() => redis.disconnect());
  const keys = new Keys(testPrefix());
  const plan = new PlanStore(redis, keys);
  const subjects = [1, 2, 3, 4, 5, 6].map((number) => intentId(hashOf(number)));
  const first = subjects[0] ?? '';
  await plan.track(subjects, 60_000);
  const requested = async (): Promise<string[]> =>
    redis.zrange(`${keys.plan('status')}:requested`, '0', '-1');
  // The first one failed again and again: it waits for its own time, and takes no place of another.
  await redis.zrem(`${keys.plan('status')}:resting`, first);
  await redis.zadd(`${keys.plan('status')}:failing`, Date.now() + 300_000, first);
  await plan.recheck(subjects, 2);
  expect(await requested()).toEqual(subjects.slice(1, 3));
  await plan.recheck(subjects, 2);
  expect(new Set(await requested())).toEqual(new Set(subjects.slice(1, 5)));
});
