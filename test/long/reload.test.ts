import { expect, inject, test } from 'vitest';
import { z } from 'zod';
import { account } from '../../demo/account.ts';
import { observationsOf } from '../../demo/observation.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { Backlog } from '../../src/store/backlog.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import { RelayLease } from '../../src/store/lease.ts';
import { statusPath } from '../../src/upstream/wire/status-page.ts';
import { type TestConfig, TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { HeldUp } from '../support/held-up.ts';
import { logEntries } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { reloadable } from '../support/reloadable.ts';
import { slackOf } from '../support/slow-machine.ts';
import { endsOf, lastReported } from '../support/statuses.ts';

const { later, started } = opening();

const STAY = 500;
const OUT = 500;
const IN = 1_000;
const BIRTHS_PER_SECOND = 20;

/** Polls under way at the change of the config have been sent by then. */
const SETTLED_MS = 2_000;
/** A round of all wallets takes 8 s on a quiet machine. */
const ROUNDS_MS = 600_000;
/** Least time from an answer to its commit; more where the event log shows that the machine is slower. */
const LEAST_SLACK_MS = 3_000;

const REQUESTED = z.object({
  wallet: z.string().optional(),
  status: z.string().optional(),
  cursor: z.string().optional(),
});
const PAGE = z.object({ results: z.array(z.object({ id: z.string() })) });

async function walletsByTransfer(
  sandbox: Sandbox,
  wallets: readonly string[],
): Promise<Map<string, Set<string>>> {
  const found = new Map<string, Set<string>>();
  for (const wallet of wallets) {
    const answer = await fetch(`${sandbox.url}${statusPath({ wallet, limit: 50 })}`, {
      headers: { 'x-api-key': sandbox.apiKey },
    });
    for (const { id } of PAGE.parse(await answer.json()).results) {
      found.set(id, (found.get(id) ?? new Set()).add(wallet));
    }
  }
  return found;
}

function arePolledAgain(sandbox: Sandbox, wallets: readonly string[], sinceMs: number): boolean {
  const requests = new Set<string>();
  for (const { query } of sandbox.requests(sinceMs)) {
    const { wallet, status, cursor } = REQUESTED.parse(query);
    if (wallet === undefined || status !== undefined || cursor !== undefined) continue;
    requests.add(wallet.toLowerCase());
  }
  return wallets.every((wallet) => requests.has(wallet.toLowerCase()));
}

test('1,000 wallets in and 500 out under load: nothing is lost, nothing invented, nothing comes twice', async () => {
  const sandbox = await started(
    new Sandbox({ seed: 31, wallets: STAY + OUT + IN, transfersPerSecond: 0, timeScale: 20 }),
  );
  const hook = await started(new TestReceiver());
  const { wallets } = sandbox.subjects();
  const [stay, out, come] = [
    wallets.slice(0, STAY),
    wallets.slice(STAY, STAY + OUT),
    wallets.slice(STAY + OUT),
  ];
  const config: TestConfig = {
    baseUrl: sandbox.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url } },
    subscriptions: [{ name: 's', wallets: [...stay, ...out], receivers: ['hook'] }],
    more: {
      upstream: { baseUrl: sandbox.url, apiKey: sandbox.apiKey, requestsPerSecond: 200 },
      reload: { confirmAfter: '100%' },
      removal: { graceSpan: '0s' },
    },
  };
  const { daemon, lines, write } = await reloadable(config, { later });
  const machine = await started(new HeldUp(inject('redisUrl')));
  const startedMs = Date.now();
  sandbox.setPace(BIRTHS_PER_SECOND);
  await hook.until((events) => events.length >= 200);

  await write({
    ...config,
    subscriptions: [{ name: 's', wallets: [...stay, ...come], receivers: ['hook'] }],
  });
  expect(await daemon.reload()).toMatchObject({
    ok: true,
    changes: { subjects: { added: IN, removed: OUT } },
  });
  const reloadedMs = Date.now();
  const before = hook.events.length;
  await hook.until((events) => events.length >= before + 600);
  sandbox.setPace(0);
  await eventually('all transfers have ended', () => sandbox.pace().livingTransfers === 0);
  const transitions = sandbox.transitions();
  const endedMs = Date.now();
  await eventually(
    'every wallet was polled again',
    () => arePolledAgain(sandbox, [...stay, ...come], endedMs),
    ROUNDS_MS,
  );
  await daemon.stopPolling();
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(config.prefix);
  const [log, lease, backlog] = [
    new EventLog(redis, keys),
    new RelayLease(redis, keys),
    new Backlog(redis, keys),
  ];
  await eventually('all is delivered', async () => {
    const isRead = (await lease.cursor('hook')) === (await log.newest());
    return isRead && (await backlog.counts('hook')).pending === 0;
  });
  const entries = await logEntries(redis, keys);
  const showings = sandbox.showings();
  const walletsOf = await walletsByTransfer(sandbox, wallets);
  const has = (subject: string, some: readonly string[]): boolean =>
    some.some((wallet) => walletsOf.get(subject)?.has(wallet) === true);
  const isStaying = (subject: string): boolean => has(subject, stay);
  const isComing = (subject: string): boolean =>
    !has(subject, stay) && !has(subject, out) && has(subject, come);
  const isGone = (subject: string): boolean => !has(subject, stay) && !has(subject, come);
  const reported = lastReported(hook.events);
  const untold = [
    ...[...endsOf(transitions, startedMs)].filter(([subject]) => isStaying(subject)),
    ...[...endsOf(transitions, reloadedMs)].filter(([subject]) => isComing(subject)),
  ].filter(([subject, status]) => reported.get(subject) !== status);
  expect(untold).toEqual([]);

  const { events } = hook;
  expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
  // A page of a new wallet may first show a transfer that it shares with a remaining one: the shown state is then history, and no
  // event, because a record does not name its wallets. Seen: `filled` 7 s before the reload, shown 3 s behind it; then `settled`
  // as event 1 with `previousStatus` filled. No sequence was missing: no event was made and lost.
  const isOfBoth = (subject: string): boolean => isStaying(subject) && has(subject, come);
  for (const [isWatched, sinceMs, least] of [
    [(subject: string) => isStaying(subject) && !isOfBoth(subject), startedMs, 200],
    [isComing, reloadedMs, 200],
    [isOfBoth, reloadedMs, 0],
  ] as const) {
    const sums = account({
      transitions,
      showings,
      events: events.filter(({ data }) => isWatched(data.subject.id)),
      isWatched,
      rules: {
        historyBefore: Math.ceil(sinceMs / 1_000) + 1,
        slackMs: Math.max(LEAST_SLACK_MS, slackOf({ entries, showings })),
      },
    });
    expect(sums.problems).toEqual([]);
    expect(sums.tolerated.lost).toBe(0);
    expect(sums.statusEvents).toBeGreaterThan(least);
  }
  const seen = observationsOf(showings);
  const latestMs = reloadedMs + SETTLED_MS + 4 * machine.mostMs;
  const isRequestedBefore = (subject: string): boolean =>
    seen.get(subject)?.some(({ requestedAt }) => requestedAt <= latestMs) === true;
  const invented = events.filter(
    ({ data: { subject } }) => isGone(subject.id) && !isRequestedBefore(subject.id),
  );
  expect(invented).toEqual([]);
  const goneBefore = events.filter(({ data }) => isGone(data.subject.id));
  expect(goneBefore.length).toBeGreaterThan(0);
  expect(lines.filter(({ level }) => Number(level) >= 40)).toEqual([]);
});
