import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Event } from '../../src/domain/events/event.ts';
import { asSubjectId } from '../../src/domain/subjects/subject.ts';
import { redisTimeMs, SCHEMA_VERSION } from '../../src/store/commands.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { Quarantine } from '../../src/store/undelivered.ts';
import { configYaml, startDaemon } from '../support/daemon.ts';
import { CLAIM_KEY, type DeliveryStage, deliveryStage } from '../support/delivery-stage.ts';
import { firstEpoch } from '../support/epoch.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { appendEvents, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { COMPILED } from '../support/program.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const open = opening();
const MAIN = join(import.meta.dirname, '../../src/main.ts');
const SUBJECT = `intent:${hashOf(5)}`;

const WHOLE: Event = {
  id: `evt_${'ab'.repeat(20)}`,
  type: 'intent.refunded',
  timestamp: '2026-11-20T10:00:00.123Z',
  data: {
    subject: { kind: 'intent', id: SUBJECT },
    sequence: 7,
    epoch: 1,
    status: 'refunded',
    previousStatus: 'pending',
    changes: ['status', 'steps[0].status'],
    record: { id: SUBJECT, type: 'intent', status: 'refunded', steps: [{ status: 'DONE' }], more: null },
    skipped: true,
    regression: true,
    elapsedSeconds: 42,
    upstreamUpdatedAt: 1_700_000_000,
    detectionDelaySeconds: 1.5,
  },
};

/** Members that matching adds to the event of a receiver of the stage. */
const SUBSCRIBERS = { wallets: [], subscriptions: ['s'], metadata: {} };

type Running = { stage: DeliveryStage; hook: Hook; lines: { msg: string; reason?: string }[] };

/** A daemon with one receiver, and the lines of its log. */
async function running(): Promise<Running> {
  const hook = await open.started(new Hook());
  const stage = await deliveryStage(open, { hook: { hook } });
  const lines: Running['lines'] = [];
  const { daemon } = await startDaemon(stage.config, (line) => lines.push(JSON.parse(line)));
  open.later(() => daemon.close());
  return { stage, hook, lines };
}

async function add({ stage }: Running, fields: Record<string, string>): Promise<string> {
  return (await stage.redis.xadd(stage.keys.events, '*', ...Object.entries(fields).flat())) ?? '';
}

/** Appends a readable event, as a sign that the relay has reached this place. */
async function addReadable({ stage }: Running, sequence: number): Promise<string> {
  const made = {
    subject: SUBJECT,
    sequence,
    epoch: 1,
    key: CLAIM_KEY,
    atMs: (await redisTimeMs(stage.redis)) + 60_000 + sequence,
  };
  await appendEvents(stage.redis, stage.keys, [made]);
  return madeEventId(made);
}

async function came({ hook }: Running, id: string): Promise<unknown> {
  const all = await hook.until((webhooks) => webhooks.some(({ event }) => event.id === id));
  return all.find(({ event }) => event.id === id)?.event;
}

async function intentwatch({ stage }: Running, ...args: string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-test-'));
  onTestFinished(() => rm(folder, { recursive: true, maxRetries: 5 }));
  const file = join(folder, 'intentwatch.yaml');
  await writeFile(file, configYaml(stage.config));
  const env = { ...process.env, ...COMPILED };
  return (await promisify(execFile)(process.execPath, [MAIN, ...args, '--config', file], { env })).stdout;
}

test('an event with every member set reaches a receiver as it was committed', async () => {
  const run = await running();
  const { redis, keys } = run.stage;
  const subjects = new SubjectStore(redis, keys, { epoch: firstEpoch(redis, keys) });
  await subjects.commit({
    subject: asSubjectId(SUBJECT),
    asOf: '0',
    token: WHOLE.id,
    claims: [],
    event: { event: WHOLE, updatedAt: null, first: true, claimKeys: [CLAIM_KEY] },
  });
  expect(await came(run, WHOLE.id)).toEqual({ ...WHOLE, data: { ...WHOLE.data, ...SUBSCRIBERS } });
  const [[, fields = []] = ['']] = await redis.xrange(keys.events, '-', '+');
  expect(fields[fields.indexOf('v') + 1]).toBe(String(SCHEMA_VERSION));
});

describe('an entry of the log', () => {
  test.each([
    ['an unknown kind', { kind: 'remark', v: '2' }, WHOLE.type],
    ['an unknown type', { kind: 'event', v: '2' }, 'intent.sent-to-the-moon'],
  ])('of %s is delivered with every member that it has', async (_, head, type) => {
    const run = await running();
    const subject = { ...WHOLE.data.subject, chain: 'base' };
    const event = {
      ...WHOLE,
      type,
      cause: { by: 'a later version' },
      data: { ...WHOLE.data, subject, later: [1] },
    };
    await add(run, {
      ...head,
      subject: SUBJECT,
      event: JSON.stringify(event),
      claimKeys: JSON.stringify([CLAIM_KEY]),
    });
    expect(await came(run, WHOLE.id)).toEqual({ ...event, data: { ...event.data, ...SUBSCRIBERS } });
  });

  test.each([
    ['an unknown kind without event', { kind: 'remark', text: 'x' }],
    ['no JSON', { kind: 'event', event: '{"id":', claimKeys: '[]' }],
    [
      'another shape',
      { kind: 'event', v: '1', event: JSON.stringify({ ...WHOLE, data: 7 }), claimKeys: '[]' },
    ],
    [
      'a subscribers entry that names nothing',
      { kind: 'subscribers', event: 'x', entry: 'y', claimKeys: '[]' },
    ],
  ])('that no version can read (%s) is quarantined, once, and delays nothing', async (_, fields) => {
    const run = await running();
    const { redis, keys } = run.stage;
    const entry = await add(run, fields);
    const late = await add(run, {
      kind: 'subscribers',
      event: WHOLE.id,
      entry,
      claimKeys: JSON.stringify([CLAIM_KEY]),
    });
    await came(run, await addReadable(run, 1));
    const stored = await new Quarantine(redis, keys).list();
    expect(stored.map(({ id }) => id)).toEqual([entry, late]);
    expect(stored[0]?.fields).toEqual(Object.entries(fields).flat());
    expect(run.lines.filter(({ msg }) => msg === 'relay.quarantined')).toHaveLength(2);
    const listed = await intentwatch(run, 'quarantine');
    expect(listed).toContain(entry);
    expect(await intentwatch(run, 'quarantine', 'replay')).toContain('0 of 2 entries are back in the log');
  });

  test('that was quarantined is delivered once it can be read', async () => {
    const run = await running();
    const { redis, keys } = run.stage;
    const fields = {
      kind: 'event',
      subject: SUBJECT,
      event: JSON.stringify(WHOLE),
      claimKeys: JSON.stringify([CLAIM_KEY]),
    };
    const id = `${await redisTimeMs(redis)}-1`;
    await new Quarantine(redis, keys).add({ id, fields: Object.entries(fields).flat() });
    expect(await intentwatch(run, 'quarantine')).toContain('can be read');
    expect(await intentwatch(run, 'quarantine', 'replay')).toContain('1 of 1 entries are back in the log');
    expect(await came(run, WHOLE.id)).toMatchObject({ data: { elapsedSeconds: 42 } });
    expect(await intentwatch(run, 'quarantine')).toContain('nothing is quarantined');
  });

  test('that only a newer version can read stops the relay, which releases its lease to one', async () => {
    const run = await running();
    const { lease, redis, keys } = run.stage;
    const before = await addReadable(run, 1);
    await came(run, before);
    const cursor = await eventually('the cursor stays', async () => {
      const now = await lease.cursor('hook');
      return now === (await run.stage.events.newest()) ? now : null;
    });
    const ahead = Number(cursor?.split('-')[0]) + 1;
    const entry = `${ahead}-0`;
    const strange = { kind: 'event', v: String(SCHEMA_VERSION + 1), event: '\u0001packed', claimKeys: '[]' };
    await redis.xadd(keys.events, entry, ...Object.entries(strange).flat());
    await eventually('it is logged', () => run.lines.some(({ msg }) => msg === 'relay.stopped'));
    expect(await lease.cursor('hook')).toBe(cursor);
    expect(await new Quarantine(redis, keys).list()).toEqual([]);

    // Another process can take the lease at once, and continues.
    await eventually('the lease is free, and held for as long as it takes', async () => {
      const token = await lease.hold();
      return token !== null && (await lease.advance(token, ['hook'], { from: cursor, to: entry }));
    });
    await lease.release();
    await came(run, await addReadable(run, 100));
  });
});

test('a delivery whose event cannot be read is a dead letter with the reason; one of a newer version waits for it', async () => {
  const run = await running();
  const { deliveries, lease, redis, keys, events } = run.stage;
  const token = await eventually('the daemon relays', () => redis.get(keys.relayLease));
  const atMs = await redisTimeMs(redis);
  const [old, newer] = [`${atMs - 2_000}-0`, `${atMs - 1_000}-0`];
  // Before they are in the log: the relay is not involved.
  await redis.hset(keys.cursors, 'hook', newer);
  await redis.xadd(keys.events, old, 'kind', 'event', 'event', '{', 'v', '0');
  await redis.xadd(keys.events, newer, 'kind', 'event', 'event', '{', 'v', String(SCHEMA_VERSION + 1));
  const ids = [`evt_${'1'.repeat(40)}`, `evt_${'2'.repeat(40)}`];
  const opened = await deliveries.open(token, {
    receiver: 'hook',
    deliveries: [old, newer].map((entry, index) => ({
      id: ids[index] ?? '',
      entry,
      claimKeys: [CLAIM_KEY],
      subject: null,
    })),
    replay: null,
    cursor: null,
    process: 'test',
  });
  expect(opened?.results).toEqual(['opened', 'opened']);
  const dead = await eventually('the unreadable one is dead', async () => {
    const fact = await deliveries.fact('hook', ids[0] ?? '');
    return fact?.outcome === 'dead' && fact;
  });
  expect(dead.attempts.at(-1)?.reason).toContain('cannot be read');
  expect(await deliveries.fact('hook', ids[1] ?? '')).toMatchObject({ outcome: 'pending', tries: 0 });
  expect(await lease.cursor('hook')).toBe(await events.newest());
});

test("one receiver's foreign cursor holds up no other receiver", async () => {
  const [hook, other] = [await open.started(new Hook()), await open.started(new Hook())];
  const stage = await deliveryStage(open, { hook: { hook }, other: { hook: other } });
  await stage.redis.hset(stage.keys.cursors, 'other', 'nowhere');
  await stage.start();
  const run = { stage, hook, lines: [] };
  const id = await addReadable(run, 1);
  await came(run, id);
  await came({ ...run, hook: other }, id);
});
