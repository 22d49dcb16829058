import { expect, test } from 'vitest';
import { opening } from '../support/opening.ts';
import {
  eventOf,
  ONE,
  OTHER,
  REST,
  shown,
  suspensionStage,
  TREASURY,
  TWO,
  WALLET,
} from '../support/suspension-stage.ts';

const open = opening();

const BOTH = { ...TREASURY, receivers: ['backend', 'desk'], wallets: [WALLET, OTHER] };

/** The subscription stays, with another wallet; its former subjects are suspended. */
const WITHOUT = { ...BOTH, wallets: [OTHER] };

// Events of different transfers are sent at once: they arrive in any order.

test('events for a receiver that is removed meanwhile come when both are back', async () => {
  const { backend, desk, reload, restart, change, upstream } = await suspensionStage(open);
  await reload([BOTH]);
  await change(ONE, 'pending');
  await Promise.all([backend.until((came) => came.length === 1), desk.until((came) => came.length === 1)]);
  await reload([WITHOUT]);
  await change(ONE, 'filled');
  await reload([{ ...WITHOUT, receivers: ['desk'] }], {}, ['desk']);
  await change(TWO, 'pending');
  await upstream.past();
  await restart();
  await reload([{ ...BOTH, receivers: ['desk'] }], {}, ['desk']);
  await desk.until((came) => came.length >= 3);
  await change(TWO, 'filled');
  await desk.until((came) => came.length >= 4);
  expect(backend.came).toHaveLength(1);
  await reload([BOTH]);
  await backend.until((came) => came.length >= 4);
  expect(shown(desk, 1).sort()).toEqual([
    ['intent.filled', `intent:${ONE}`, true],
    ['intent.filled', `intent:${TWO}`, false],
    ['intent.pending', `intent:${TWO}`, true],
  ]);
  // Events that the other receiver's subscription brought come before the waiting ones.
  expect(
    shown(backend, 1)
      .map((one) => one.slice(0, 2))
      .sort(),
  ).toEqual([
    ['intent.filled', `intent:${ONE}`],
    ['intent.filled', `intent:${TWO}`],
    ['intent.pending', `intent:${TWO}`],
  ]);
});

test('events for a receiver that its subscription gives up come by another one', async () => {
  const { backend, desk, reload, change, upstream } = await suspensionStage(open);
  await reload([BOTH]);
  await change(ONE, 'pending');
  await backend.until((came) => came.length === 1);
  await reload([WITHOUT]);
  await change(ONE, 'filled');
  await reload([{ ...WITHOUT, receivers: ['desk'] }]);
  await change(TWO, 'pending');
  await upstream.past();
  await reload([
    { ...BOTH, receivers: ['desk'] },
    { ...TREASURY, name: 'other' },
  ]);
  await Promise.all([backend.until((came) => came.length >= 3), desk.until((came) => came.length >= 3)]);
  for (const hook of [backend, desk])
    expect(shown(hook, 1).sort()).toEqual([
      ['intent.filled', `intent:${ONE}`, true],
      ['intent.pending', `intent:${TWO}`, true],
    ]);
});

test('waiting events stay for their receiver alone where the subscription gets another, and the subject another subscription', async () => {
  const { backend, desk, reload, change, upstream } = await suspensionStage(open);
  await reload([{ ...BOTH, receivers: ['desk'] }]);
  await change(ONE, 'pending');
  await desk.until((came) => came.length === 1);
  await reload([{ ...WITHOUT, receivers: ['desk'] }]);
  await change(ONE, 'filled');
  await change(ONE, 'settled');
  await upstream.past();
  await reload([WITHOUT, { ...TREASURY, name: 'other', receivers: ['backend'] }]);
  await change(TWO, 'pending');
  await upstream.past();
  await reload([BOTH]);
  await desk.until((came) => came.length >= 4);
  expect(shown(desk, 1).sort()).toEqual([
    ['intent.filled', `intent:${ONE}`, true],
    ['intent.pending', `intent:${TWO}`, true],
    ['intent.settled', `intent:${ONE}`, true],
  ]);
  expect(shown(backend, 0).map(([, subject]) => subject)).not.toContain(`intent:${ONE}`);
});

test('events for a receiver that is given up as its subject is removed, or comes back, are named at the end', async () => {
  const { backend, desk, reload, change } = await suspensionStage(open);
  await reload([BOTH, REST]);
  await change(ONE, 'pending');
  await backend.until((came) => came.length === 1);
  await reload([WITHOUT, REST]);
  await change(ONE, 'filled');
  await reload([{ ...BOTH, receivers: ['desk'] }, REST]);
  await desk.until((came) => came.length >= 2);
  expect(shown(desk, 1)).toEqual([['intent.filled', `intent:${ONE}`, true]]);
  const [, { event: filled } = { event: null }] = desk.came;
  await reload([{ ...BOTH, receivers: ['desk'] }, REST], { removal: { graceSpan: '0s' } });
  await desk.until((came) => came.length >= 3);
  expect(eventOf(desk, 'intentwatch.suspension_ended')?.data.record).toMatchObject({
    reason: 'span-over',
    subscriptions: ['treasury'],
    eventIds: [filled?.id],
  });
  expect(backend.came).toHaveLength(1);
});

test('events that waited for one receiver do not come to another that joins the subscription of its return', async () => {
  const { backend, desk, audit, reload, change, upstream } = await suspensionStage(open);
  const to = (name: string, ...receivers: string[]) => ({ name, receivers, wallets: [OTHER] });
  const all = ['backend', 'desk', 'audit'];
  await reload([to('first', 'desk'), to('second', 'backend')], {}, all);
  await reload([to('first', 'desk', 'backend')], {}, all);
  // The wallet goes on for one receiver under another name, and waits for the other one.
  await reload([to('other', 'desk')], {}, all);
  await change(ONE, 'pending', OTHER);
  await desk.until((came) => came.length === 1);
  await upstream.past();
  await reload([to('other', 'desk', 'backend', 'audit')], {}, all);
  await backend.until((came) => came.length >= 1);
  expect(shown(backend)).toEqual([['intent.pending', `intent:${ONE}`, true]]);
  await change(ONE, 'filled', OTHER);
  await Promise.all([
    backend.until((came) => came.length >= 2),
    desk.until((came) => came.length >= 2),
    audit.until((came) => came.some(({ event: { type } }) => type === 'intent.filled')),
  ]);
  expect(shown(audit)).toEqual([['intent.filled', `intent:${ONE}`, false]]);
});
