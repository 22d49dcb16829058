import { describe, expect, type TestContext, test } from 'vitest';
import { account } from '../../demo/account.ts';
import { isOperatorKind } from '../../src/domain/events/event-types.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { DeliveryStore } from '../../src/store/deliveries.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import type { LogEntry } from '../../src/store/log-entry.ts';
import { DEFAULT_CONCURRENCY } from '../support/default-concurrency.ts';
import { eventually } from '../support/eventually.ts';
import { logEntries } from '../support/log-entries.ts';
import type { Program } from '../support/program.ts';
import type { ReceiverProcess } from '../support/receiver-process.ts';
import type { RedisProcess } from '../support/redis-process.ts';
import type { SandboxProcess } from '../support/sandbox-process.ts';
import { slackOf } from '../support/slow-machine.ts';
import { RECEIVER_NAME, Stage } from '../support/stage.ts';
import { lastReported } from '../support/statuses.ts';

type Transitions = Awaited<ReturnType<SandboxProcess['transitions']>>;

const KEYS = new Keys('intentwatch');
const AWAY_MS = 5_000;

/** The budget and the machine limit the report of the last of a thousand transitions. */
const REPORTED_WITHIN_MS = 480_000;

/** Longest time from the first to the last reconnected Redis connection. */
const RECONNECTED_MS = 5_000;

/** The objects of a disturbance; it returns the daemon that runs afterwards. */
type Run = {
  redis: RedisProcess;
  daemon: Program;
  restartDaemon: () => Promise<Program>;
};

/** The final event log, the events that the receiver got, and contradictions to the upstream's answers. */
type Reported = { committed: string[]; receiver: ReceiverProcess; problems: string[] };

async function withRedis<T>(redis: RedisProcess, read: (client: RedisClient) => Promise<T>): Promise<T> {
  const client = connect({ kind: 'server', url: redis.url });
  try {
    return await read(client);
  } finally {
    await disconnect(client);
  }
}

/** Watches 1,000 transitions, disturbs in the middle, lets all drain, and compares the event log with the receiver. */
async function thousandTransitions(
  { onTestFinished }: TestContext,
  disturb: (run: Run) => Promise<Program>,
): Promise<Reported> {
  const stage = new Stage(onTestFinished);
  const [sandbox, redis, receiver] = await Promise.all([
    stage.sandbox({ seed: 11, timeScale: 25, wallets: 8 }),
    stage.redis(),
    stage.receiver({ delayMs: 20 }),
  ]);
  const { wallets } = await sandbox.subjects();
  const file = await stage.config({
    upstreamUrl: sandbox.url,
    redisUrl: redis.url,
    receiver,
    subscriptions: [{ name: 'treasury', wallets, receivers: [RECEIVER_NAME] }],
  });
  const daemon = await stage.daemon(file);
  // Transfers born from here on are watched from birth.
  const watchedFrom = Math.ceil(Date.now() / 1_000) * 1_000;
  const transitions = async (): Promise<Transitions> => {
    const intents = (await sandbox.transitions()).filter(({ subject }) => subject.startsWith('intent:'));
    const early = intents.filter(({ from, at }) => from === null && at < watchedFrom);
    const old = new Set(early.map(({ subject }) => subject));
    return intents.filter(({ subject }) => !old.has(subject));
  };

  await sandbox.setPace(45);
  await eventually('300 events', () => receiver.received.length >= 300);
  const brokenMs = Date.now();
  const last = await disturb({ redis, daemon, restartDaemon: () => stage.daemon(file) });
  const backMs = Date.now();
  await withRedis(redis, (client) =>
    eventually(
      'a commit',
      async () => (await new EventLog(client, KEYS).after(`${backMs}`, 1)).entries.length > 0,
    ),
  );
  const mendedMs = Date.now() + RECONNECTED_MS;
  await eventually('1,000 transitions', async () => (await transitions()).length >= 1_000);
  await sandbox.setPace(0);
  await eventually('all transfers have ended', async () => (await sandbox.living()) === 0);
  let untold: [string, string][] = [];
  await eventually(
    'the last status of every transfer is reported',
    async () => {
      const reported = lastReported(receiver.events());
      const ends = new Map((await transitions()).map(({ subject, to }) => [subject, to]));
      untold = [...ends].filter(([subject, status]) => reported.get(subject) !== status);
      return untold.length === 0;
    },
    REPORTED_WITHIN_MS,
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}; not ${untold.map((one) => one.join(' ')).join(', ')}`);
  });
  // Before the end: only the next start repeats an attempt that SIGTERM cuts off.
  const entries = await eventually(
    'all that was committed has come',
    async () => {
      const found = await withRedis(redis, (client) => logEntries(client, KEYS));
      const came = receiver.counts();
      return idsOf(found).every((id) => came.has(id)) && found;
    },
    REPORTED_WITHIN_MS,
  );
  expect(await last.end('SIGTERM')).toMatchObject({ code: 0 });

  const made = await transitions();
  const subjects = new Set(made.map(({ subject }) => subject));
  const showings = await sandbox.showings();
  // An uncommitted answer at the disturbance is lost; the next answer shows its states again.
  const outages = [{ fromMs: brokenMs, untilMs: mendedMs }];
  const { problems } = account({
    transitions: made,
    showings,
    events: receiver.events().filter(({ data }) => subjects.has(data.subject.id)),
    isWatched: (subject) => subjects.has(subject),
    rules: { slackMs: slackOf({ entries, showings, outages }), outages },
  });
  expect(receiver.received.filter(({ verified }) => !verified)).toEqual([]);
  return { committed: idsOf(entries), receiver, problems };
}

/** The ids of the events in a log, except those for operators: a busy machine causes some, and they go to no receiver here. */
function idsOf(entries: readonly LogEntry[]): string[] {
  return entries.flatMap((entry) =>
    entry.kind === 'event' && !isOperatorKind(entry.event.data.subject.kind) ? [entry.event.id] : [],
  );
}

/** The ids of events whose delivery the dead daemon had noted. */
async function notedIds(client: RedisClient): Promise<Set<string>> {
  await eventually('Redis has read the last commands of the dead daemon', async () => {
    const clients = String(await client.client('LIST'));
    return clients.trim().split('\n').length === 1;
  });
  const deliveries = new DeliveryStore(client, KEYS);
  const ids = idsOf(await logEntries(client, KEYS));
  const facts = await Promise.all(ids.map((id) => deliveries.fact(RECEIVER_NAME, id)));
  return new Set(ids.filter((_, index) => facts[index]?.outcome === 'delivered'));
}

function repeated(receiver: ReceiverProcess): string[] {
  return [...receiver.counts()].filter(([, count]) => count > 1).map(([id]) => id);
}

function expectAll({ committed, receiver, problems }: Reported): void {
  expect([...receiver.counts().keys()].toSorted()).toEqual(committed.toSorted());
  expect(problems).toEqual([]);
}

describe.concurrent('nothing is lost, and only events in flight come twice', () => {
  test('when the daemon is killed in the middle of 1,000 transitions', async (context) => {
    let noted = new Set<string>();
    let restartedMs = 0;
    const reported = await thousandTransitions(context, async ({ daemon, redis, restartDaemon }) => {
      expect(await daemon.end('SIGKILL')).toMatchObject({ signal: 'SIGKILL' });
      noted = await withRedis(redis, notedIds);
      restartedMs = Date.now();
      return restartDaemon();
    });
    expectAll(reported);
    const atTheKill = reported.receiver.received.filter(({ receivedMs }) => receivedMs < restartedMs);
    const inFlight = new Set(atTheKill.map(({ id }) => id).filter((id) => !noted.has(id)));
    expect(repeated(reported.receiver).filter((id) => !inFlight.has(id))).toEqual([]);
    expect(inFlight.size).toBeLessThanOrEqual(DEFAULT_CONCURRENCY);
  });

  test('when Redis is stopped for 5 s and started again', async (context) => {
    const reported = await thousandTransitions(context, async ({ redis, daemon }) => {
      await redis.stop();
      await new Promise((resolve) => setTimeout(resolve, AWAY_MS));
      await redis.start();
      return daemon;
    });
    expectAll(reported);
    expect(repeated(reported.receiver)).toEqual([]);
  });

  test('when Redis is frozen for 5 s', async (context) => {
    const reported = await thousandTransitions(context, async ({ redis, daemon }) => {
      redis.freeze();
      await new Promise((resolve) => setTimeout(resolve, AWAY_MS));
      redis.thaw();
      return daemon;
    });
    expectAll(reported);
    expect(repeated(reported.receiver)).toEqual([]);
  });
});
