import { describe, expect, test } from 'vitest';
import { ADMIN_TOKEN } from '../support/api-stage.ts';
import { ClocksStage, HOUR_MS } from '../support/clocks-stage.ts';
import { runCommand } from '../support/command.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';

const { later } = opening();
const GCC = needs(PARTS.gcc);

describe.skipIf(GCC.skip)(`the clock of Redis is an hour ahead, then right${GCC.note}`, () => {
  test('no transfer is overdue by it', async () => {
    const stage = await ClocksStage.of(later);
    await stage.start({ history: 'emit', overdueAfter: '30m' });
    const hashes = stage.add(19, { status: 'pending', atMs: () => Date.now() });
    await stage.subjects('intent.pending', 19);
    stage.clock.shift(HOUR_MS);
    // Their times are due: each is polled once.
    await Promise.all(hashes.map((hash) => stage.awaitRequests(({ intentHash }) => intentHash === hash)));
    await eventually('it is noticed, or acted upon', async () =>
      (await stage.events()).some(({ type }) => /overdue|jumped/.test(type)),
    );
    stage.clock.shift(0);
    await stage.awaitRequests(({ wallet }) => wallet !== undefined);
    const types = (await stage.events()).map(({ type }) => type);
    expect(types.filter((type) => type === 'intent.overdue')).toEqual([]);
    expect(types.filter((type) => type.startsWith('intentwatch.'))).toEqual(['intentwatch.clock_jumped']);
  });

  test('events reported meanwhile are sent once more by a resend of that time', async () => {
    const stage = await ClocksStage.of(later);
    const { url } = await stage.start({ history: 'emit' });
    await stage.awaitRequests(({ wallet }) => wallet !== undefined);
    stage.clock.shift(HOUR_MS);
    stage.add(20, { status: 'pending', atMs: () => Date.now() });
    await stage.subjects('intent.pending', 20);
    stage.clock.shift(0);
    await stage.hook.until((came) => new Set(came.map(({ event }) => event.id)).size >= 20);
    const run = (...args: string[]) =>
      runCommand(['resend', '--to', 'hook', ...args], {
        INTENTWATCH_URL: url,
        INTENTWATCH_TOKEN: ADMIN_TOKEN,
      });
    const resent = await run('--since', '75s', '--type', 'intent.*');
    expect(resent.out).toContain('20 events sent once more: 20 delivered');
    const nothing = await run('--since', '75s', '--type', 'vault.*');
    expect(nothing.out).toMatch(
      /no event was selected for hook: the log holds events from 20\S+Z to 20\S+Z; see --since/,
    );
  });
});

describe.skipIf(GCC.skip)(
  `one answer with a Date six hours off, the first for a new wallet${GCC.note}`,
  () => {
    test('ahead: every new transfer is reported', async () => {
      const stage = await ClocksStage.of(later);
      stage.aheadMs = (answer) => (answer === 0 ? 6 * HOUR_MS : 0);
      stage.add(20, { status: 'filled', atMs: (index) => Date.now() - (index + 1) * 600_000 });
      await stage.start();
      await stage.awaitRequests(({ wallet }) => wallet !== undefined);
      stage.add(20, { status: 'pending', atMs: () => Date.now() + 1_000 });
      await stage.subjects('intent.pending', 20);
      expect((await stage.events()).filter(({ type }) => type === 'intent.filled')).toEqual([]);
    });

    test('behind: no old transfer is reported', async () => {
      const stage = await ClocksStage.of(later);
      stage.aheadMs = (answer) => (answer === 0 ? -6 * HOUR_MS : 0);
      stage.add(40, { status: 'filled', atMs: (index) => Date.now() - (index + 1) * 1_200_000 });
      await stage.start();
      await stage.awaitRequests(({ wallet }) => wallet !== undefined);
      stage.add(3, { status: 'pending', atMs: () => Date.now() + 1_000 });
      await stage.subjects('intent.pending', 3);
      expect((await stage.events()).filter(({ type }) => type === 'intent.filled')).toEqual([]);
    });

    test.each([
      ['ahead', 6 * HOUR_MS],
      ['behind', -6 * HOUR_MS],
    ])('an upstream that is six hours %s in all its times is believed', async (_, aheadMs) => {
      const stage = await ClocksStage.of(later);
      stage.aheadMs = () => aheadMs;
      stage.add(20, { status: 'filled', atMs: (index) => Date.now() + aheadMs - (index + 1) * 600_000 });
      await stage.start();
      await stage.awaitRequests(({ wallet }) => wallet !== undefined);
      stage.add(20, { status: 'pending', atMs: () => Date.now() + aheadMs + 1_000 });
      await stage.subjects('intent.pending', 20);
      expect((await stage.events()).filter(({ type }) => type === 'intent.filled')).toEqual([]);
    });
  },
);
