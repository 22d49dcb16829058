import { expect, test } from 'vitest';
import type { Attempt } from '../../src/store/deliveries.ts';
import { deliveryStage, ROOT } from '../support/delivery-stage.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';

const open = opening();

const DELIVERED: Attempt = {
  atMs: 1,
  outcome: 'delivered',
  httpStatus: 204,
  smtpCode: null,
  durationMs: 1,
  reason: '204 No Content',
  answer: '',
  nextAtMs: null,
};

test('an attempt that ends after Redis was emptied does not keep its event, told anew, from the receiver', async () => {
  const { deliveries, lease } = await deliveryStage(open, { hook: { hook: await open.started(new Hook()) } });
  await deliveries.record('hook', {
    ids: ['evt_1'],
    attempt: DELIVERED,
    outcome: 'delivered',
    nextAtMs: null,
    counts: true,
    answer: '',
    restMs: null,
    disableAfterMs: 1_000,
    process: 'p',
    nowMs: 2,
  });
  expect(await deliveries.fact('hook', 'evt_1')).toBeNull();
  expect(
    await deliveries.open((await lease.hold()) ?? '', {
      receiver: 'hook',
      deliveries: [{ id: 'evt_1', entry: '1-0', roots: [ROOT], subject: null }],
      replay: null,
      cursor: null,
      process: 'p',
    }),
  ).toEqual(['opened']);
});
