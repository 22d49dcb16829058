import { describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { ADMIN_TOKEN, answered, apiStage, READ_TOKEN } from '../support/api-stage.ts';
import { Hook } from '../support/hook.ts';
import { validator } from '../support/openapi.ts';
import { opening } from '../support/opening.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const INTENT = `intent:${hashOf(1)}`;

async function desk() {
  let isMended = false;
  const hooks = {
    backend: await started(new Hook()),
    broken: await started(new Hook(() => (isMended ? 204 : 500))),
    operator: await started(new Hook()),
  };
  const stage = await apiStage(hooks, { later });
  return {
    hooks,
    stage,
    mend: () => {
      isMended = true;
    },
  };
}

describe('a transfer', () => {
  test('is listed by its last event, whatever that changed, with the time of that', async () => {
    const { hooks, stage } = await desk();
    const changed = async (count: number, number: number): Promise<void> => {
      stage.setStatus(hashOf(number), 'pending');
      await hooks.backend.until((came) => came.length === count);
    };
    await changed(1, 1);
    await changed(2, 2);
    stage.setStatus(hashOf(1), 'filled');
    await hooks.backend.until((came) => came.length === 3);
    const before = await follow(stage, '/subjects?kind=intent');
    stage.setStatus(hashOf(2), 'pending', { note: 'other' });
    await hooks.backend.until((came) => came.length === 4);
    const after = z
      .array(z.object({ subject: z.string(), changedAt: z.string() }))
      .parse(await follow(stage, '/subjects?kind=intent'));
    expect(before.map((one) => Object(one).subject)).toEqual([INTENT, `intent:${hashOf(2)}`]);
    expect(after.map(({ subject }) => subject)).toEqual([`intent:${hashOf(2)}`, INTENT]);
    expect(after[0]?.changedAt.localeCompare(after[1]?.changedAt ?? '')).toBe(1);
  });

  test('is found by its metadata, and its timeline shows each receiver, each event and each answer', async () => {
    const { hooks, stage } = await desk();
    stage.setStatus(hashOf(1), 'pending');
    await hooks.backend.until((came) => came.length === 1);
    stage.setStatus(hashOf(1), 'filled');
    await hooks.backend.until((came) => came.length === 2);
    await answered(
      stage,
      { path: '/undelivered?receiver=broken&state=dead' },
      ({ undelivered }) => Object(undelivered).length === 2,
    );
    // A webhook is recorded as delivered after its answer.
    await answered(
      stage,
      { path: '/undelivered?receiver=backend' },
      ({ undelivered }) => Object(undelivered).length === 0,
    );

    const found = await stage.call({ path: '/subjects?metadata=order%3D1042' });
    expect(found.body).toMatchObject({
      subjects: [{ subject: INTENT, status: 'filled', underWay: true, events: 2 }],
    });
    const none = await stage.call({ path: '/subjects?metadata=order%3D1043' });
    expect(none.body.subjects).toEqual([]);
    const unseen = await follow(stage, '/subjects?kind=intent&subscription=order-2');
    expect(unseen.map((one) => Object(one).subject)).toEqual([`intent:${hashOf(2)}`]);

    const { body } = await stage.call({ path: `/subjects/${INTENT}`, token: READ_TOKEN });
    expect(body).toMatchObject({
      timeline: [
        { type: 'intent.filled', sequence: 2 },
        { type: 'intent.pending', sequence: 1 },
      ],
      next: null,
    });
    const events = z.array(z.object({ event: z.string() })).parse(body.timeline);
    const listed = await stage.call({ path: `/subjects/${INTENT}/deliveries`, token: READ_TOKEN });
    expect(listed.body).toEqual({
      deliveries: events.flatMap(({ event }) => [
        expect.objectContaining({ event, receiver: 'backend', state: 'delivered', attempts: 1 }),
        expect.objectContaining({
          event,
          receiver: 'broken',
          state: 'dead',
          attempts: 1,
          lastAttempts: [expect.objectContaining({ httpStatus: 500, outcome: 'failed' })],
        }),
      ]),
      next: null,
    });
  });

  test('that was not delivered is sent again, and the timeline and the list show it', async () => {
    const { hooks, stage, mend } = await desk();
    stage.setStatus(hashOf(1), 'pending');
    await answered(
      stage,
      { path: '/undelivered?state=dead' },
      ({ undelivered }) => Object(undelivered).length === 1,
    );
    mend();
    const retried = await stage.call({ method: 'POST', path: '/receivers/broken/retry', body: {} });
    expect(retried.body).toEqual({ renewed: 1, deadLetters: 1, gone: 0 });
    await hooks.broken.until((came) => came.length === 2);
    await answered(stage, { path: '/undelivered' }, ({ undelivered }) => Object(undelivered).length === 0);

    const resent = await stage.call({ method: 'POST', path: `/subjects/${INTENT}/resend`, body: {} });
    expect(resent.body).toEqual({
      replays: ['backend', 'broken'].map((receiver) => ({ receiver, replay: expect.any(String), events: 1 })),
      leftOut: 0,
    });
    await hooks.broken.until((came) => came.length === 3);
    await hooks.backend.until((came) => came.length === 2);
    expect(new Set([...hooks.broken.ids, ...hooks.backend.ids]).size).toBe(1);
    await answered(stage, { path: `/subjects/${INTENT}/deliveries` }, ({ deliveries }) => {
      const all = z.array(z.object({ state: z.string() })).parse(deliveries);
      return all.length === 4 && all.every(({ state }) => state === 'delivered');
    });
  });
});

test('a resend counts the events of a subject that have expired from the log', async () => {
  const { hooks, stage } = await desk();
  stage.setStatus(hashOf(1), 'pending');
  await hooks.backend.until((came) => came.length === 1);
  stage.setStatus(hashOf(1), 'filled');
  await hooks.backend.until((came) => came.length === 2);
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  await redis.xtrim(new Keys(stage.config.prefix).events, 'MAXLEN', 1);
  const body = { receivers: ['backend'] };
  const resent = await stage.call({ method: 'POST', path: `/subjects/${INTENT}/resend`, body });
  expect(resent.body).toMatchObject({ replays: [{ events: 1 }], leftOut: 1 });
});

describe('a receiver that is paused', () => {
  test('gets nothing until it is resumed, then all of it, once, and the operator is notified of both', async () => {
    const { hooks, stage } = await desk();
    const paused = await stage.call({ method: 'POST', path: '/receivers/backend/pause' });
    expect(paused.body).toMatchObject({ state: 'paused', pausedAt: expect.any(String) });
    stage.setStatus(hashOf(1), 'pending');
    // The other one shows that the relay has passed it.
    await hooks.broken.until((came) => came.length === 1);
    await hooks.operator.until((came) => came.some(({ event }) => event.type === 'receiver.paused'));
    const held = await answered(stage, { path: '/receivers/backend' }, ({ backlog }) => backlog === 1);
    expect(held).toMatchObject({ state: 'paused', backlog: 1, oldestUndeliveredAt: expect.any(String) });
    expect(hooks.backend.came).toEqual([]);
    expect((await stage.call({ method: 'POST', path: '/receivers/backend/enable' })).status).toBe(409);
    const refused = await stage.call({ method: 'POST', path: `/subjects/${INTENT}/resend`, body: {} });
    expect([refused.status, refused.body.detail]).toEqual([
      409,
      expect.stringContaining('backend is paused'),
    ]);
    const metrics = await (await fetch(`${stage.url}/metrics`)).text();
    expect(metrics).toContain('intentwatch_receiver_state{receiver="backend",state="paused"} 1');

    const resumed = await stage.call({ method: 'POST', path: '/receivers/backend/resume' });
    expect(resumed.body).toMatchObject({ state: 'ok', pausedAt: null });
    await hooks.backend.until((came) => came.length === 1);
    await hooks.operator.until((came) => came.some(({ event }) => event.type === 'receiver.resumed'));
    expect(hooks.backend.came).toHaveLength(1);
  });
});

test('the document that is served is OpenAPI, and a client made from it tracks a transfer and reads its timeline', async () => {
  const { hooks, stage } = await desk();
  stage.setStatus(hashOf(1), 'pending');
  await hooks.backend.until((came) => came.length === 1);
  const { body } = await stage.call({ path: '/openapi.json' });
  const { errors, client } = await validator(body, { url: stage.url, token: ADMIN_TOKEN });
  expect(errors).toEqual([]);
  const read = await client('readSubject', { subject: INTENT });
  expect(read).toMatchObject({ subject: INTENT, timeline: [{ type: 'intent.pending' }] });
  const wish = { kind: 'intent', id: hashOf(3), metadata: { order: '7' }, receivers: ['backend'] };
  const tracked = `intent:${hashOf(3)}`;
  expect(await client('trackSubject', {}, wish)).toEqual({ subject: tracked, created: true });
  stage.setStatus(hashOf(3), 'filled');
  await hooks.backend.until((came) => came.length === 2);
  expect(await client('readSubject', { subject: tracked })).toMatchObject({
    subject: tracked,
    metadata: { order: '7' },
    timeline: [{ type: 'intent.filled' }],
  });
});

async function follow(stage: { call: (call: { path: string }) => Promise<{ body: object }> }, path: string) {
  const all: unknown[] = [];
  for (let cursor = ''; ; ) {
    const { body } = await stage.call({ path: `${path}${cursor}` });
    const { subjects, next } = Object(body);
    all.push(...subjects);
    if (next === null) return all;
    cursor = `&cursor=${next}`;
  }
}
