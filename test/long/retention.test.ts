import { describe, expect, onTestFinished, test } from 'vitest';
import { asSubjectId } from '../../src/domain/subjects/subject.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { AgedStage, DAY_MS } from '../support/aged-stage.ts';
import { firstEpoch } from '../support/epoch.ts';
import { eventually } from '../support/eventually.ts';
import type { Hook } from '../support/hook.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const GCC = needs(PARTS.gcc);

const WALLET = `0x${'a1'.repeat(20)}`;
const NEW = hashOf(900);
/** Under way for ever: its responses report the time. */
const OPEN = hashOf(800);

async function settled(stage: AgedStage, count: number): Promise<string[]> {
  const hashes = Array.from({ length: count }, (_, index) => hashOf(index + 1));
  for (const hash of hashes) stage.upstream.set(hash, 'settled');
  stage.upstream.set(OPEN, 'pending');
  await stage.write({ name: 'treasury', wallets: [WALLET], intents: [OPEN], history: 'emit' });
  await stage.start();
  await stage.came('intent.settled', count);
  await stage.drained();
  return hashes;
}

/** Has a new transfer reported: a repeated report would be in the log before it. */
async function reportsNew(stage: AgedStage, hash = NEW): Promise<void> {
  stage.upstream.set(hash, 'pending');
  await stage.backend.until((came) => came.some(({ event }) => event.data.subject.id === `intent:${hash}`));
  // All records of the same page are committed and delivered by the time of the next ones.
  await stage.upstream.answers(5);
}

async function isCompact({ redis, keys }: AgedStage, subject: string): Promise<boolean> {
  const subjects = new SubjectStore(redis, keys, { epoch: firstEpoch(redis, keys) });
  const entry = await subjects.peek(asSubjectId(subject));
  return entry?.snapshot?.compact === true;
}

async function allAreCompact(stage: AgedStage, hashes: readonly string[]): Promise<void> {
  await eventually('ended subjects are compact', async () => {
    const found = await Promise.all(hashes.map((hash) => isCompact(stage, `intent:${hash}`)));
    return found.every(Boolean);
  });
}

describe.skipIf(GCC.skip)(`transfers that ended longer ago than the retention${GCC.note}`, () => {
  test('are not reported again after the process was stopped for 31 days', async () => {
    const stage = await AgedStage.of(onTestFinished);
    const hashes = await settled(stage, 10);
    await stage.kill();
    stage.pass(31);
    await stage.start();
    await reportsNew(stage);
    expect(stage.of('intent.settled')).toHaveLength(hashes.length);
  });

  test('are not reported again by an upstream that failed for 31 days, and go on from their last state', async () => {
    const stage = await AgedStage.of(onTestFinished);
    const hashes = await settled(stage, 12);
    stage.upstream.isFailing = true;
    await stage.upstream.answers(1);
    stage.pass(31);
    await allAreCompact(stage, hashes);
    const moved = hashes[0] ?? '';
    stage.upstream.isFailing = false;
    stage.upstream.set(moved, 'refunded');
    const [refunded] = await stage.came('intent.refunded', 1);
    expect(refunded?.data).toMatchObject({ sequence: 2, previousStatus: 'settled' });
    await reportsNew(stage);
    expect(stage.of('intent.settled')).toHaveLength(hashes.length);
    expect(stage.of('intent.refunded')).toHaveLength(1);
    expect(await isCompact(stage, `intent:${hashes[1]}`)).toBe(false);
  });

  test('are not reported again where a subscription is renamed 31 days after its quotes ended', async () => {
    const stage = await AgedStage.of(onTestFinished);
    const quotes = Array.from({ length: 5 }, (_, index) => `00000000-0000-4000-8000-00000000000${index}`);
    const hashes = quotes.map((_, index) => hashOf(index + 1));
    for (const [index, quote] of quotes.entries()) {
      stage.upstream.set(hashes[index] ?? '', 'settled');
      stage.upstream.setQuote(quote, 'submitted', { intentHashes: [hashes[index] ?? ''] });
    }
    stage.upstream.set(OPEN, 'pending');
    await stage.write({ name: 'orders', quotes, intents: [OPEN] });
    await stage.start();
    await stage.came('intent.settled', 5);
    await stage.came('quote.submitted', 5);
    stage.pass(31);
    await eventually('the quotes are not polled any more', async () => {
      return (await stage.redis.hlen(`${stage.keys.plan('status')}:items`)) === 1;
    });
    stage.pass(31);
    await stage.kill();
    await stage.start();
    await allAreCompact(stage, hashes);
    // For a new receiver the quotes and their intents are polled.
    await stage.write({
      name: 'shop',
      quotes,
      intents: [OPEN, NEW],
      receivers: ['backend', 'operator', 'late'],
    });
    await stage.kill();
    await stage.start();
    await reportsNew(stage);
    await stage.late.until(({ length }) => length >= 5);
    expect(stage.of('intent.settled')).toHaveLength(5);
    expect(stage.of('quote.submitted')).toHaveLength(5);
    const ids = (hook: Hook): Set<string> =>
      new Set(hook.came.flatMap(({ event }) => (event.type === 'intent.settled' ? [event.id] : [])));
    expect(ids(stage.late)).toEqual(ids(stage.backend));
  });
});

describe.skipIf(GCC.skip)(`a clock that is 31 days ahead for 12 s${GCC.note}`, () => {
  test('has nothing reported again, and drops no open delivery', async () => {
    const stage = await AgedStage.of(onTestFinished);
    const hashes = await settled(stage, 15);
    stage.backend.answer = () => 503;
    const open = Array.from({ length: 5 }, (_, index) => hashOf(100 + index));
    for (const hash of open) stage.upstream.set(hash, 'pending');
    await stage.came('intent.pending', 6);
    await eventually('a failure is noted before the clock jumps', async () => {
      return (await stage.redis.hexists(stage.keys.receiver('backend'), 'since')) === 1;
    });
    const from = performance.now();
    stage.clock.shift(31 * DAY_MS);
    while (performance.now() - from < 12_000) await stage.upstream.answers(1);
    stage.clock.shift(0);
    stage.backend.answer = () => 204;
    await reportsNew(stage);
    const delivered = new Set<string>();
    stage.backend.answer = ({ event }) => {
      delivered.add(event.data.subject.id);
      return 204;
    };
    await eventually('open events are delivered', async () => {
      return (await stage.redis.zcard(stage.keys.pending('backend'))) === 0;
    });
    expect(stage.of('intent.settled')).toHaveLength(hashes.length);
    expect(stage.operator.came.map(({ event }) => event.type)).not.toContain('receiver.events_dropped');
    expect(new Set(stage.of('intent.pending').map(({ data }) => data.subject.id)).size).toBe(7);
    expect(new Set(stage.of('intent.pending').map(({ id }) => id)).size).toBe(7);
  });
});
