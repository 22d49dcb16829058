import { expect, inject, test } from 'vitest';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { startDaemon, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type Came, Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';

const { later, started } = opening();

/** Number of fills to learn from, and number of later pending transfers to compare with their expected times. */
const LEARNED = 300;
const HELD = 300;

/** Tolerance of the reported share in time: the share itself has an error of 2 in 100 for this number of transfers. */
const TOLERANCE = 0.08;

test('the promised share of transfers is filled by the expected time of their events', async () => {
  const sandbox = await started(new Sandbox({ seed: 17, wallets: 10, transfersPerSecond: 8, timeScale: 4 }));
  const hook = await started(new Hook());
  const { daemon } = await startDaemon({
    baseUrl: sandbox.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url } },
    subscriptions: [{ name: 's', wallets: sandbox.subjects().wallets, receivers: ['hook'] }],
  });
  later(() => daemon.close());
  const filledAt = (): Map<string, number> =>
    new Map(sandbox.transitions().flatMap(({ subject, to, at }) => (to === 'filled' ? [[subject, at]] : [])));
  await eventually('enough was filled to learn from', () => filledAt().size >= LEARNED, 400_000);
  const isExpected = ({ event }: Came): boolean => event.data.expectedBy !== undefined;
  await hook.until((came) => came.some(isExpected));
  const from = hook.came.length;
  const pending = () =>
    hook.came
      .slice(from)
      // No time is named for a transfer seen so late that it is probably never filled.
      .filter(isExpected)
      .map(({ event }) => event)
      .filter(({ type, data }) => type === 'intent.pending' && data.previousStatus === null);
  await hook.until(() => pending().length >= HELD);
  sandbox.setPace(0);

  const reported = pending().map(({ timestamp, data: { subject, expectedBy } }) => {
    if (expectedBy === undefined) throw new Error(`found no expected time of ${subject.id}, expected one`);
    const { at, medianAt, probability } = expectedBy;
    expect(Date.parse(medianAt)).toBeGreaterThanOrEqual(Date.parse(timestamp));
    return { subject: subject.id, atMs: Date.parse(at), medianMs: Date.parse(medianAt), probability };
  });
  const lastMs = Math.max(...reported.map(({ atMs }) => atMs));
  await eventually('the last expected time has passed', () => Date.now() > lastMs + 1_000, 300_000);
  const filled = filledAt();
  const filledBy = (key: 'atMs' | 'medianMs'): number =>
    reported.filter((one) => (filled.get(one.subject) ?? Number.POSITIVE_INFINITY) <= one[key]).length;
  const ever = reported.filter(({ subject }) => filled.has(subject)).length;
  const found = {
    held: reported.length,
    probability: reported.reduce((sum, { probability }) => sum + probability, 0) / reported.length,
    inTime: filledBy('atMs') / reported.length,
    ofFilled: filledBy('atMs') / ever,
    byMedian: filledBy('medianMs') / ever,
  };
  console.info(`expected times: ${JSON.stringify(found)}`);
  expect(Math.abs(found.inTime - found.probability)).toBeLessThan(TOLERANCE);
  expect(Math.abs(found.ofFilled - 0.9)).toBeLessThan(TOLERANCE);
  expect(Math.abs(found.byMedian - 0.5)).toBeLessThan(2 * TOLERANCE);
}, 1_500_000);
