import { describe, expect, test } from 'vitest';
import { account } from '../../demo/account.ts';
import { isOperatorKind } from '../../src/domain/events/event-types.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import type { LogEntry } from '../../src/store/log-entry.ts';
import { eventually } from '../support/eventually.ts';
import { subscribedToAll, watchedByAll } from '../support/everything-watched.ts';
import { logEntries } from '../support/log-entries.ts';
import { slackOf } from '../support/slow-machine.ts';
import { RECEIVER_NAME, Stage } from '../support/stage.ts';
import { endsOf, lastReported } from '../support/statuses.ts';

/** Time until the requests buffered during a stop of the sandbox are answered, also those of dead clients. */
const FLUSHED_MS = 500;

describe.concurrent('with upstream, Redis and receiver in processes of their own', () => {
  test('every status that an answer shows anew reaches the receiver exactly once, in order, and nothing else does', async ({
    onTestFinished,
  }) => {
    const stage = new Stage(onTestFinished);
    const [sandbox, redis, receiver] = await Promise.all([
      stage.sandbox({ seed: 7, timeScale: 20, wallets: 5 }),
      stage.redis(),
      stage.receiver(),
    ]);
    const subjects = await sandbox.subjects();
    const isWatched = watchedByAll(subjects);
    const deps = { upstreamUrl: sandbox.url, redisUrl: redis.url, receiver };
    const daemon = await stage.daemon(
      await stage.config({ ...deps, subscriptions: subscribedToAll(subjects, RECEIVER_NAME) }),
    );

    const startedMs = Date.now();
    await sandbox.setPace(15);
    await eventually('300 events', () => receiver.received.length >= 300);
    await sandbox.setPace(0);
    await eventually('all transfers have ended', async () => (await sandbox.living()) === 0);
    await eventually('the last status of every subject is reported', async () => {
      const reported = lastReported(receiver.events());
      const transitions = await sandbox.transitions();
      const named = transitions.filter(({ subject }) => !subject.startsWith('intent:') && isWatched(subject));
      const last = new Map(named.map(({ subject, to }) => [subject, to]));
      return [...last, ...endsOf(transitions, startedMs)].every(
        ([subject, status]) => reported.get(subject) === status,
      );
    });
    const client = connect({ kind: 'server', url: redis.url });
    onTestFinished(() => disconnect(client));
    // Before the end: only the next start repeats an attempt that SIGTERM cuts off.
    const entries = await eventually('all that was committed has come', async () => {
      const found = await logEntries(client, new Keys('intentwatch'));
      const came = receiver.counts();
      const isDue = (entry: LogEntry): boolean =>
        entry.kind === 'event' && !isOperatorKind(entry.event.data.subject.kind) && !came.has(entry.event.id);
      return !found.some(isDue) && found;
    });
    expect(await daemon.end('SIGTERM')).toMatchObject({ code: 0 });

    const showings = await sandbox.showings();
    const slackMs = slackOf({ entries, showings });
    const sums = account({
      transitions: await sandbox.transitions(),
      showings,
      events: receiver.received.map(({ event }) => event),
      isWatched,
      // Earlier transfers are history to those who watch the wallets.
      rules: { historyBefore: Math.ceil(startedMs / 1_000), slackMs },
    });
    expect(sums.problems).toEqual([]);
    expect(sums.unsettled).toEqual([]);
    expect(sums.made).toBe(sums.merged + sums.shown);
    const { overtaken, history } = sums.tolerated;
    expect(sums.shown - sums.statusEvents).toBeLessThanOrEqual(overtaken + history);
    expect(receiver.counts().size).toBe(receiver.received.length);
    expect(receiver.received.filter(({ verified }) => !verified)).toEqual([]);
  });

  test('after kill -9 of one of two daemons the other takes over its polls and the relay', async ({
    onTestFinished,
  }) => {
    const stage = new Stage(onTestFinished);
    const [sandbox, redis, receiver] = await Promise.all([
      stage.sandbox({ seed: 9, timeScale: 20, wallets: 16 }),
      stage.redis(),
      stage.receiver(),
    ]);
    const { wallets } = await sandbox.subjects();
    const subscriptions = [{ name: 'treasury', wallets, receivers: [RECEIVER_NAME] }];
    const file = await stage.config({
      upstreamUrl: sandbox.url,
      redisUrl: redis.url,
      receiver,
      subscriptions,
    });
    // The first daemon delivers before there is a second: it has the relay's lease.
    const first = await stage.daemon(file);
    await sandbox.setPace(8);
    await eventually('a webhook', () => receiver.received.length > 0);
    await stage.daemon(file);

    // While the upstream is stopped, every due poll stays in flight, at either daemon.
    sandbox.program.send('SIGSTOP');
    const client = connect({ kind: 'server', url: redis.url });
    onTestFinished(() => disconnect(client));
    const claims = `${new Keys('intentwatch').plan('status')}:claims`;
    await eventually('the polls of all wallets are in flight', async () => {
      const started = (await client.hvals(claims)).filter((claim) => /^\S+ \S+ 1 /.test(claim));
      return started.length >= wallets.length;
    });
    await first.end('SIGKILL');
    const killedMs = Date.now();
    sandbox.program.send('SIGCONT');

    // Work that no process resumes is lost. The receiver and the sandbox report the time: this process may learn of it later.
    await eventually('the relay goes on', () =>
      receiver.received.some(
        ({ event, receivedMs }) => receivedMs > killedMs && Date.parse(event.timestamp) > killedMs,
      ),
    );
    await eventually('every wallet is polled', async () => {
      const answers = await sandbox.answers(killedMs + FLUSHED_MS);
      const polled = new Set(answers.map(({ query }) => query.wallet?.toLowerCase()));
      return wallets.every((wallet) => polled.has(wallet.toLowerCase()));
    });
  });
});
