import { expect, test } from 'vitest';
import { opening } from '../support/opening.ts';
import {
  ONE,
  OTHER,
  REST,
  request,
  shown,
  suspensionStage,
  THREE,
  TREASURY,
  TWO,
  WALLET,
} from '../support/suspension-stage.ts';

const open = opening();

test('changes during the suspension of a subscription wait, and come in order when it is back', async () => {
  const { backend, desk, reload, restart, change, upstream, url } = await suspensionStage(open);
  await change(ONE, 'pending');
  await backend.until((came) => came.length === 1);
  await reload([REST]);
  await change(ONE, 'filled');
  await change(TWO, 'pending');
  // An upstream that fails for a while, and a restart.
  upstream.isAway = true;
  await restart();
  upstream.isAway = false;
  await change(ONE, 'settled');
  await change(THREE, 'pending', OTHER);
  await desk.until((came) => came.length === 1);
  expect(backend.came).toHaveLength(1);
  const pulled = await request(`${url()}/api/v1/events?subject=intent:${TWO}`);
  expect(pulled).toMatchObject({
    events: [{ data: { subscriptions: ['treasury'], metadata: { desk: 'one' } } }],
  });
  await reload([REST, TREASURY]);
  await reload([REST]);
  await change(TWO, 'filled');
  await reload([REST, TREASURY]);
  await backend.until((came) => came.length >= 5);
  expect(shown(backend, 1)).toEqual([
    ['intent.filled', `intent:${ONE}`, true],
    ['intent.pending', `intent:${TWO}`, true],
    ['intent.settled', `intent:${ONE}`, true],
    ['intent.filled', `intent:${TWO}`, true],
  ]);
  expect(backend.came[1]?.event.data).toMatchObject({
    subscriptions: ['treasury'],
    metadata: { desk: 'one' },
  });
  await change(TWO, 'settled');
  await backend.until((came) => came.length >= 6);
  expect(shown(backend, 5)).toEqual([['intent.settled', `intent:${TWO}`, false]]);
  expect(shown(desk)).toEqual([['intent.pending', `intent:${THREE}`, false]]);
});

test('a subscription that comes back under another name gets all its waiting events, as do its receivers', async () => {
  const { backend, desk, reload, change, upstream } = await suspensionStage(open);
  await change(ONE, 'pending');
  await backend.until((came) => came.length === 1);
  await reload([REST], {}, ['desk']);
  await change(ONE, 'filled');
  await change(TWO, 'pending');
  await upstream.past();
  const renamed = { ...TREASURY, name: 'renamed', receivers: ['backend', 'desk'] };
  await reload([REST, renamed]);
  await backend.until((came) => came.length >= 3);
  expect(shown(backend, 1)).toEqual([
    ['intent.filled', `intent:${ONE}`, true],
    ['intent.pending', `intent:${TWO}`, true],
  ]);
  expect(backend.came[2]?.event.data.subscriptions).toEqual(['renamed']);
  await change(TWO, 'filled');
  await backend.until((came) => came.length >= 4);
  await desk.until((came) => came.length >= 1);
  expect(shown(backend, 3)).toEqual([['intent.filled', `intent:${TWO}`, false]]);
  // It is new to the wallet, and begins at the reload.
  expect(shown(desk)).toEqual([['intent.filled', `intent:${TWO}`, false]]);
});

test('of two subscriptions with one wallet, the events of one do not wait for the other', async () => {
  const { backend, desk, reload, change, upstream } = await suspensionStage(open);
  const both = { name: 'both', receivers: ['desk'], wallets: [WALLET] };
  await reload([TREASURY, both]);
  await change(ONE, 'pending');
  await Promise.all([backend.until((came) => came.length === 1), desk.until((came) => came.length === 1)]);
  await reload([both]);
  await change(ONE, 'filled');
  await desk.until((came) => came.length === 2);
  expect(backend.came).toHaveLength(1);
  await upstream.past();
  await reload([TREASURY, both]);
  await backend.until((came) => came.length >= 2);
  expect(shown(backend, 1)).toEqual([['intent.filled', `intent:${ONE}`, true]]);
  await change(ONE, 'settled');
  await Promise.all([backend.until((came) => came.length >= 3), desk.until((came) => came.length >= 3)]);
  expect(shown(desk).map(([type]) => type)).toEqual(['intent.pending', 'intent.filled', 'intent.settled']);
  expect(shown(backend).map(([type]) => type)).toEqual(['intent.pending', 'intent.filled', 'intent.settled']);
});
