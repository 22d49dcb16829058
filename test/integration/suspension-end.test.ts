import { expect, test } from 'vitest';
import { runCommand } from '../support/command.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import {
  eventOf,
  ONE,
  REST,
  request,
  shown,
  suspensionStage,
  TREASURY,
  TWO,
  WALLET,
} from '../support/suspension-stage.ts';

const open = opening();

test('at the end of the span the waiting events are named, and can be sent again', async () => {
  const { backend, desk, reload, change, url, upstream } = await suspensionStage(open);
  await change(ONE, 'pending');
  await backend.until((came) => came.length === 1);
  await reload([REST]);
  await change(ONE, 'filled');
  await change(TWO, 'pending');
  const env = { INTENTWATCH_URL: url() };
  const { out: listed } = await runCommand(['suspended', '--json'], env);
  expect(JSON.parse(listed).suspended).toMatchObject([
    { subject: `wallet:${WALLET}`, subscription: 'treasury', state: 'suspended', events: 2 },
  ]);
  const gauges = await (await fetch(`${url()}/metrics`)).text();
  expect(gauges).toMatch(/^intentwatch_suspended_subjects 1$/m);
  expect(gauges).toMatch(/^intentwatch_suspended_events 2$/m);
  // Changed while it is out of the config: the span of the running config is over.
  await reload([REST], { removal: { graceSpan: '0s' } });
  await desk.until((came) => came.length >= 1);
  const ended = eventOf(desk, 'intentwatch.suspension_ended');
  expect(ended?.data.record).toMatchObject({
    reason: 'span-over',
    subjects: 1,
    subscriptions: ['treasury'],
    events: 2,
  });
  expect(ended?.data.record.eventIds).toHaveLength(2);
  await eventually('events without a receiver are listed', async () => {
    const { unmatched } = await request(`${url()}/api/v1/unmatched`);
    return Array.isArray(unmatched) && unmatched.length === 2;
  });
  const first = await request(`${url()}/api/v1/suspended/dropped?limit=1`);
  expect([first, await request(`${url()}/api/v1/suspended/dropped?cursor=${first.next}`)]).toMatchObject([
    {
      dropped: [
        {
          type: 'intent.pending',
          subject: `intent:${TWO}`,
          subscription: 'treasury',
          named: `wallet:${WALLET}`,
        },
      ],
    },
    { dropped: [{ type: 'intent.filled', subject: `intent:${ONE}` }], next: null },
  ]);
  await upstream.past();
  // It begins anew: it gets later events, and on demand the dropped ones.
  await reload([REST, TREASURY], { removal: { graceSpan: '0s' } });
  await change(TWO, 'filled');
  await backend.until((came) => came.length >= 2);
  expect(shown(backend, 1)).toEqual([['intent.filled', `intent:${TWO}`, false]]);
  const { code, err } = await runCommand(['resend', `intent:${ONE}`, '--to', 'backend'], env);
  expect({ code, err }).toMatchObject({ code: 0 });
  expect(shown(backend, 2)).toEqual([
    ['intent.pending', `intent:${ONE}`, false],
    ['intent.filled', `intent:${ONE}`, true],
  ]);
});

test('a suspension that is removed by hand ends at once', async () => {
  const { backend, desk, reload, change, url, upstream } = await suspensionStage(open);
  await change(ONE, 'pending');
  await backend.until((came) => came.length === 1);
  const env = { INTENTWATCH_URL: url() };
  const inConfig = await runCommand(['remove', WALLET], env);
  expect(inConfig).toMatchObject({ code: 1, err: expect.stringContaining('found nothing suspended') });
  await reload([REST]);
  await change(ONE, 'filled');
  const { out } = await runCommand(['remove', WALLET.toUpperCase().replace('0X', '0x')], env);
  expect(out).toBe('subjects removed: 1, events dropped: 1');
  await desk.until((came) => came.length >= 1);
  expect(eventOf(desk, 'intentwatch.suspension_ended')?.data.record).toMatchObject({
    reason: 'removed',
    events: 1,
  });
  await upstream.past();
  await reload([REST, TREASURY]);
  await change(ONE, 'settled');
  await backend.until((came) => came.length >= 2);
  expect(shown(backend, 1)).toEqual([['intent.settled', `intent:${ONE}`, false]]);
});

test('at the end of the span no event is named that its receiver got by another subscription', async () => {
  const { backend, desk, reload, change, url } = await suspensionStage(open);
  const direct = { name: 'direct', receivers: ['backend'], intents: [ONE] };
  await reload([TREASURY, direct]);
  await change(ONE, 'pending');
  await backend.until((came) => came.length === 1);
  await reload([direct, REST]);
  await change(ONE, 'filled');
  await change(TWO, 'pending');
  await backend.until((came) => came.length === 2);
  const env = { INTENTWATCH_URL: url() };
  await eventually('both wait for the wallet', async () => {
    const { out } = await runCommand(['suspended', '--json'], env);
    return JSON.parse(out).suspended[0].events === 2;
  });
  await reload([direct, REST], { removal: { graceSpan: '0s' } });
  await desk.until((came) => came.length >= 1);
  const ended = eventOf(desk, 'intentwatch.suspension_ended');
  expect(ended?.data.record).toMatchObject({ reason: 'span-over', subjects: 1, events: 1 });
  const { dropped } = await request(`${url()}/api/v1/suspended/dropped`);
  expect(dropped).toMatchObject([{ type: 'intent.pending', subject: `intent:${TWO}` }]);
  const gauges = await (await fetch(`${url()}/metrics`)).text();
  expect(gauges).toMatch(/^intentwatch_suspended_events_dropped_total\{reason="span-over"\} 1$/m);
  expect(shown(backend).map(([type, subject]) => [type, subject])).toEqual([
    ['intent.pending', `intent:${ONE}`],
    ['intent.filled', `intent:${ONE}`],
  ]);
});
