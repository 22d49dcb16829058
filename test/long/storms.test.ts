import { describe, expect, inject, test } from 'vitest';
import { account } from '../../demo/account.ts';
import type { Fault } from '../../sandbox/faults/fault.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { HeldUp } from '../support/held-up.ts';
import { logEntries } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { slackOf } from '../support/slow-machine.ts';
import { endsOf, lastReported } from '../support/statuses.ts';

const { later, started } = opening();

const DAEMONS = 2;
const REQUESTS_PER_SECOND = 50;

/** Greatest number of requests that may end in a pause: the one that begins it, and those in flight. */
const PER_PAUSE = 2 * DAEMONS;

/** The status endpoint alone: the daemons poll it again and again. */
const PAGES = { path: '/v1/intents/status', rate: 1 };

const STORMS: readonly { name: string; fault: Fault }[] = [
  {
    name: 'with Retry-After',
    fault: { type: 'error', code: 'rate-limit-exceeded', retryAfterSeconds: 2, ...PAGES },
  },
  { name: 'without Retry-After', fault: { type: 'error', code: 'rate-limit-exceeded', ...PAGES } },
  { name: 'of a gateway, without code', fault: { type: 'bare-error', status: 429, ...PAGES } },
];

/** A pause as a daemon reported it, Unix ms. */
type Pause = { from: number; to: number };

describe('a storm of 429', () => {
  test.for(STORMS)('$name pauses all daemons, loses nothing, and ends in full speed', async ({ fault }, {
    onTestFinished,
  }) => {
    const sandbox = await started(
      new Sandbox({ seed: 9, wallets: 40, transfersPerSecond: 0, timeScale: 60 }),
    );
    const hook = await started(new TestReceiver());
    const pauses: Pause[] = [];
    const config = {
      baseUrl: sandbox.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', wallets: sandbox.subjects().wallets, receivers: ['hook'] }],
      more: {
        upstream: { baseUrl: sandbox.url, apiKey: sandbox.apiKey, requestsPerSecond: REQUESTS_PER_SECOND },
      },
    };
    for (let index = 0; index < DAEMONS; index++) {
      const { daemon, signals } = await startDaemon(config);
      later(() => daemon.close());
      signals.on('upstream.paused', ({ seconds }) => {
        pauses.push({ from: Date.now(), to: Date.now() + seconds * 1_000 });
      });
    }
    const watchedSince = Math.ceil(Date.now() / 1_000);
    const perSecond = (): number => sandbox.requests(Date.now() - 1_000).length;
    sandbox.setPace(10);
    await hook.until((events) => events.length >= 20);
    let usual = 0;
    await eventually('requests flow', () => {
      usual = Math.max(usual, perSecond());
      return usual >= REQUESTS_PER_SECOND / 2;
    });

    const machine = await started(new HeldUp(inject('redisUrl')));
    const control = `${sandbox.controlUrl}/faults`;
    const headers = { 'content-type': 'application/json' };
    await fetch(control, { method: 'POST', headers, body: JSON.stringify(fault) });
    onTestFinished(async () => void (await fetch(control, { method: 'DELETE' }).catch(() => undefined)));
    const refusals = (): number => sandbox.requests().filter(({ status }) => status === 429).length;
    // Pauses that do not hold merge into one: then there are too many refusals.
    const perPause = (): number => PER_PAUSE + (REQUESTS_PER_SECOND * lateMs(machine)) / 1_000;
    const isOver = (): boolean => spans(pauses).length >= 3 || refusals() > 3 * perPause();
    await eventually('three pauses', isOver);
    await fetch(control, { method: 'DELETE' });
    const calmMs = Math.max(...pauses.map(({ to }) => to));

    // Polls that a daemon had claimed when another was paused may still be in flight.
    expect(refusals()).toBeGreaterThanOrEqual(3);
    // The pause of the last refusals may not have been reported yet.
    expect(refusals()).toBeLessThanOrEqual((spans(pauses).length + 1) * perPause());
    for (const { from, to } of spans(pauses)) {
      const within = sandbox
        .requests(from)
        .filter(({ at }) => at > from + ON_ITS_WAY_MS + lateMs(machine) && at < to - GRACE_MS);
      expect(within).toEqual([]);
    }

    await eventually('full speed again', () => Date.now() > calmMs && perSecond() >= 0.8 * usual, 400_000);
    sandbox.setPace(0);
    await eventually('all transfers have ended', () => sandbox.pace().livingTransfers === 0, 400_000);
    const ends = endsOf(sandbox.transitions(), watchedSince * 1_000);
    await hook.until((events) => {
      const reported = lastReported(events);
      return [...ends].every(([subject, status]) => reported.get(subject) === status);
    });
    const redis = connect({ kind: 'server', url: inject('redisUrl') });
    later(() => disconnect(redis));
    const [entries, showings] = [await logEntries(redis, new Keys(config.prefix)), sandbox.showings()];
    const sums = account({
      transitions: sandbox.transitions(),
      showings,
      events: hook.events,
      isWatched: (subject) => subject.startsWith('intent:'),
      rules: { historyBefore: watchedSince, slackMs: Math.max(5_000, slackOf({ entries, showings })) },
    });
    expect([...sums.problems, ...sums.unsettled]).toEqual([]);
    expect(sums.shown).toBeGreaterThan(0);
  });
});

/** Polls that a daemon had claimed when the other was paused reach the upstream within this. */
const ON_ITS_WAY_MS = 500;

/** The delay of this machine: from a claim to its request, and from a refusal to the pause. */
const lateMs = ({ mostMs }: HeldUp): number => 4 * mostMs;

/** Signals reach this test slightly late. */
const GRACE_MS = 250;

/** Merges overlapping pauses; a pause that is reported slightly late does not overlap the next. */
function spans(pauses: readonly Pause[]): Pause[] {
  const found: Pause[] = [];
  for (const { from, to } of pauses.toSorted((a, b) => a.from - b.from)) {
    const last = found.at(-1);
    if (last !== undefined && from <= last.to - GRACE_MS) last.to = Math.max(last.to, to);
    else found.push({ from, to });
  }
  return found;
}
