import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { type Account, account } from '../../demo/account.ts';
import { LONGEST_MS, observationsOf } from '../../demo/observation.ts';
import type { Rules } from '../../demo/story.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { startDaemon, TestReceiver, testPrefix } from './daemon.ts';
import { eventually } from './eventually.ts';
import { subscribedToAll, watchedByAll } from './everything-watched.ts';
import { HeldUp } from './held-up.ts';

/**
 * A fault as `POST /faults` takes it, and how often it must strike before the faults end. A brief one ends as soon as it
 * has. An early one begins before the daemon starts: it affects endpoints that soon are requested no more.
 */
export type Spell = { fault: JsonObject; strikes: number; brief?: true; early?: true };

/** A run of a daemon at a sandbox that misbehaves for a while. */
export type FaultRun = {
  onTestFinished: (cleanUp: () => Promise<void>) => unknown;
  redisUrl: string;
  seed: number;
  spells: readonly Spell[];
  /** Births per second while the faults are on. */
  pace: number;
  timeScale: number;
  births: number;
  /** The least time that the faults last, in ms. */
  lastsMs: number;
  confirmAfterMs: number;
  /** True when the faults have shown in the events. Until then they last, and transfers are born. */
  shows?: ((reported: Reported) => boolean) | undefined;
};

/** The events so far, and how they fit the answers. */
export type Reported = { account: Account; received: readonly RenderedEvent[] };

/** The result of a run. `ends` is the last status of every watched subject. */
export type FaultOutcome = Reported & {
  ends: Map<string, string>;
  /** The last reported and the sandbox's final record of each reported subject that changed, without times. */
  records: { subject: string; reported: JsonObject; true: JsonObject }[];
};

/** More than two pages for each of the wallets. */
const PAST_TRANSFERS = 400;

const SETTLED_WITHIN_MS = 400_000;

/** The time for which a change is observed at the end, as a multiple of the time of confirmation. */
const CONFIRMED_SHARE = 1.5;

/** Statuses after which a subject cannot change any more. */
const LAST = new Set([
  'settled',
  'refunded',
  'failed',
  'PUBLISHED',
  'EXPIRED_UNFUNDED',
  'COMPLETED',
  'FAILED',
]);

const FAULTS = z.object({ faults: z.array(z.object({ id: z.number(), strikes: z.number() })) });
const PAGE = z.object({ results: z.array(z.record(z.string(), z.json())) });
const DATA = z.object({ data: z.record(z.string(), z.json()) });

/**
 * Runs a daemon at a sandbox whose faults are on from the first birth on. Ends the faults, lets all transfers end and waits
 * until the daemon must know everything. Then compares the webhooks with the answers.
 */
export async function underFaults(run: FaultRun): Promise<FaultOutcome> {
  const sandbox = new Sandbox({
    seed: run.seed,
    timeScale: run.timeScale,
    wallets: 4,
    transfersPerSecond: 0,
    pastTransfers: PAST_TRANSFERS,
  });
  const hook = new TestReceiver();
  for (const part of [sandbox, hook]) {
    await part.start();
    run.onTestFinished(() => part.close());
  }
  const url = `${sandbox.controlUrl}/faults`;
  const early = await begin(
    url,
    run.spells.filter((spell) => spell.early),
  );
  const subjects = sandbox.subjects();
  const { daemon, signals } = await startDaemon({
    baseUrl: sandbox.url,
    redisUrl: run.redisUrl,
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url } },
    subscriptions: subscribedToAll(subjects, 'hook'),
    more: {
      upstream: {
        baseUrl: sandbox.url,
        apiKey: sandbox.apiKey,
        requestsPerSecond: 100,
        gatewayRequestsPerSecond: 50,
        // Every answer is read: the account could not see that one came too late.
        timeout: '60s',
      },
      polling: { confirmAfter: `${run.confirmAfterMs}ms` },
    },
  });
  run.onTestFinished(() => daemon.close());
  const committed = new Set<string>();
  signals.on('event.committed', ({ event }) => committed.add(event.id));
  const overtaken = new Set<string>();
  signals.on('record.decided', ({ subject, outcome }) => {
    if (outcome === 'superseded') overtaken.add(subject);
  });
  const polls = new Map<string, number>();
  signals.on('poll.ended', ({ outcome }) => polls.set(outcome, (polls.get(outcome) ?? 0) + 1));
  const requests = new Set<unknown>();
  await eventually('every wallet was read', () => {
    for (const { query } of sandbox.answers()) {
      requests.add(z.object({ wallet: z.string().optional() }).parse(query).wallet?.toLowerCase());
    }
    return subjects.wallets.every((wallet) => requests.has(wallet.toLowerCase()));
  });
  const watchedSince = Math.ceil(Date.now() / 1_000);
  const skewSeconds = Math.max(0, ...run.spells.map(({ fault }) => -Number(fault.skewSeconds ?? 0)));
  const machine = new HeldUp(run.redisUrl);
  await machine.start();
  run.onTestFinished(() => machine.close());
  let stoppedMs = Number.POSITIVE_INFINITY;
  // Everything runs in one process, on a machine that may be busy.
  const slackMs = (): number => 5_000 + 4 * machine.mostMs;
  const rules = (): Partial<Rules> => ({
    historyBefore: watchedSince + skewSeconds,
    confirmAfterMs: run.confirmAfterMs,
    // The stop cuts off polls that are under way for long: everything was known before.
    outages: [{ fromMs: stoppedMs, untilMs: Number.POSITIVE_INFINITY }],
  });

  const isWatched = watchedByAll(subjects);
  const accountNow = (): Account =>
    account({
      transitions: sandbox.transitions(),
      showings: sandbox.showings(),
      events: hook.events,
      isWatched,
      rules: rules(),
      slackMsOf: (subject) => (overtaken.has(subject) ? Math.max(LONGEST_MS, slackMs()) : slackMs()),
    });
  const begun = await begin(
    url,
    run.spells.filter((spell) => !spell.early),
  );
  const { shows = () => true } = run;
  await disturb(sandbox, {
    ...run,
    on: [...early, ...begun],
    isShown: () => shows({ account: accountNow(), received: hook.events }),
  });
  sandbox.setPace(0);
  await eventually('all transfers have ended', () => sandbox.pace().livingTransfers === 0, SETTLED_WITHIN_MS);
  const drainedMs = Date.now();
  const ends = (): Map<string, string> =>
    new Map(
      sandbox
        .transitions()
        .filter(({ subject }) => isWatched(subject))
        .map(({ subject, to }) => [subject, to]),
    );
  let last = accountNow();
  await eventually(
    'everything is known',
    async () => {
      await delay(500);
      last = accountNow();
      const seen = observationsOf(sandbox.showings(drainedMs + 1));
      if (last.problems.length > 0 || last.unsettled.length > 0) return false;
      // A fault can make details appear older than the stored ones; they are stored once polls have confirmed them.
      const isConfirmed = (id: string): boolean => {
        const list = seen.get(id) ?? [];
        return (list.at(-1)?.at ?? 0) - (list[0]?.at ?? 0) >= CONFIRMED_SHARE * run.confirmAfterMs;
      };
      return [...ends()].every(([id, to]) => LAST.has(to) || isConfirmed(id));
    },
    SETTLED_WITHIN_MS,
  ).catch((error: unknown) => {
    const why = [...last.problems, ...last.unsettled].join('\n');
    const how = `polls: ${JSON.stringify(Object.fromEntries(polls))}; overtaken: ${[...overtaken].join(' ')}`;
    throw new Error(
      `${String(error)}: ${why}\n${how}; Redis and process were held up by ${machine.mostMs} ms`,
    );
  });
  stoppedMs = Date.now();
  await daemon.stopPolling();
  // A poll that was under way may have brought another event.
  await hook.until((events) => events.length >= committed.size);
  return {
    account: accountNow(),
    received: hook.events,
    ends: ends(),
    // A past transfer that a fault has changed is polled again after a share of its age.
    records: await compareRecords(
      sandbox,
      hook.events.filter(({ data }) => ends().has(data.subject.id)),
    ),
  };
}

/** Lets transfers be born under the faults. Ends the faults when they have struck often enough and show. */
async function disturb(
  sandbox: Sandbox,
  run: FaultRun & { on: readonly Begun[]; isShown: () => boolean },
): Promise<void> {
  const { on } = run;
  const url = `${sandbox.controlUrl}/faults`;
  const startedMs = performance.now();
  const bornBefore = births(sandbox);
  const struck = new Set<number>();
  sandbox.setPace(run.pace);
  await eventually(
    'the faults have struck',
    async () => {
      const isBorn = births(sandbox) - bornBefore >= run.births;
      const isOver = isBorn && run.shows === undefined;
      if (isOver && sandbox.pace().transfersPerSecond > 0) sandbox.setPace(0);
      const { faults } = FAULTS.parse(await (await fetch(url)).json());
      for (const { id, strikes, brief } of on) {
        if (struck.has(id) || (faults.find((fault) => fault.id === id)?.strikes ?? 0) < strikes) continue;
        struck.add(id);
        if (brief) await fetch(`${url}/${id}`, { method: 'DELETE' });
      }
      const hasLasted = performance.now() - startedMs >= run.lastsMs;
      return struck.size === on.length && isBorn && hasLasted && run.isShown();
    },
    SETTLED_WITHIN_MS + run.lastsMs,
  ).catch((error: unknown) => {
    const idle = on.filter(({ id }) => !struck.has(id)).map(({ fault }) => String(fault.type));
    throw new Error(`${String(error)}: not ${idle.join(', ')}; ${births(sandbox) - bornBefore} born`);
  });
  await fetch(url, { method: 'DELETE' });
}

type Begun = Spell & { id: number };

async function begin(url: string, spells: readonly Spell[]): Promise<Begun[]> {
  const headers = { 'content-type': 'application/json' };
  return Promise.all(
    spells.map(async (spell) => {
      const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(spell.fault) });
      if (response.status !== 201) throw new Error(await response.text());
      return { ...spell, id: z.object({ id: z.number() }).parse(await response.json()).id };
    }),
  );
}

function births(sandbox: Sandbox): number {
  return sandbox.transitions().filter(({ subject, from }) => from === null && subject.startsWith('intent:'))
    .length;
}

/** Requests every reported subject from the sandbox; to be called when no other client sends requests any more. */
async function compareRecords(
  sandbox: Sandbox,
  events: readonly RenderedEvent[],
): Promise<FaultOutcome['records']> {
  const latest = new Map<string, RenderedEvent['data']>();
  for (const { data } of events) {
    if ((latest.get(data.subject.id)?.sequence ?? 0) < data.sequence) latest.set(data.subject.id, data);
  }
  return Promise.all(
    [...latest].map(async ([subject, { record }]) => {
      const { updatedAt: _updatedAt, ...reported } = record;
      const { updatedAt: _true, ...truth } = await request(sandbox, subject);
      return { subject, reported, true: truth };
    }),
  );
}

async function request(sandbox: Sandbox, subject: string): Promise<JsonObject> {
  const get = async (path: string): Promise<unknown> =>
    (await fetch(`${sandbox.url}${path}`, { headers: { 'x-api-key': sandbox.apiKey } })).json();
  const [kind, ...rest] = subject.split(':');
  const id = rest.join(':');
  if (kind === 'vault') {
    const [chainId, address] = rest;
    return DATA.parse(await get(`/v1/deposit-gateway/${address}?sourceChainId=${chainId}`)).data;
  }
  if (rest[0] === 'gateway') return DATA.parse(await get(`/v1/deposit-gateway/status?id=${rest[1]}`)).data;
  const filter = kind === 'intent' ? 'intentHash' : kind === 'quote' ? 'quoteId' : 'jobId';
  return PAGE.parse(await get(`/v1/intents/status?${filter}=${id}`)).results[0] ?? {};
}
