import { z } from 'zod';
import type { StatedPayment } from '../../sandbox/chains/chains.ts';
import { FULFILMENT_EVENT, PORTAL_ADDRESS } from '../../sandbox/contracts/portal.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { randomStream } from '../../sandbox/world/random.ts';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { ChildDaemon } from './child-daemon.ts';
import { TestReceiver, testPrefix } from './daemon.ts';
import { eventually } from './eventually.ts';
import {
  accountLies,
  expectedOf,
  type Judged,
  type LyingAccount,
  paymentKey,
  placeKey,
} from './lying-account.ts';
import { contradictedOf, isBeside, placesOf } from './lying-chains.ts';
import { ENDPOINTS, idleFaults, LASTING, PassingFaults, startFault } from './lying-faults.ts';
import { CHECKED_CHAINS, ONE_HOST, ordersOf, SOLANA, UNPINNED, walletsOf } from './lying-orders.ts';
import { orderAt, type SandboxOrder } from './sandbox-order.ts';
import { TcpProxy } from './tcp-proxy.ts';

/** A run of a daemon at a sandbox whose chains lie. */
export type LyingRun = {
  onTestFinished: (cleanUp: () => Promise<void>) => unknown;
  redisUrl: string;
  seed: number;
  fills: number;
  /** True when an hour passes on the chains at the end: then an absent payment is reported as unproven, else it stays open. */
  passesHour: boolean;
};

/**
 * The result of a run. `rpcCalls`: calls to all endpoints. `reorganised`: how often a payment came into another block after
 * the daemon was notified of it. Only these show that it waits until a block is final, and then reads again.
 */
export type LyingOutcome = LyingAccount & {
  reported: number;
  rpcCalls: number;
  faults: number;
  kills: number;
  reorganised: number;
  seconds: Record<string, number>;
};

const TIME_SCALE = 60;
/**
 * Seconds until a block is final. While chains are reorganised: long enough that a daemon has requested each payment
 * before, also on a busy machine. On Solana less, because it shows a payment only then, and it is requested at growing
 * intervals.
 */
const FINALITY_SECONDS = { reorganised: 60, solana: 20, quiet: 2 };
/** More than the blocks of any chain that are not final. */
const ALL_BLOCKS = 100_000;
/** A check is repeated after 15 minutes at the latest: a due one may take twice that. */
const DUE_MS = 1_800_000;
const JUDGE_EVERY_MS = 1_000;
const AT_ONCE = 8;
/** The shares of transfers at which the daemon is killed, and at which the rest waits until it is back. */
const KILLED_AT = [0.15, 0.4];
const BACK_AT = [0.25, 0.5];
/** The shares at which all blocks that are not final are reorganised, while the daemon runs. */
const REORGANISED_AT = [0.6, 0.7, 0.8, 0.9];
/** Longer than an hour: the chains run ahead by this at the end. */
const AHEAD_SECONDS = 3_900;

/**
 * Makes transfers, some of them stated falsely, while endpoints fail, chains are reorganised and the daemon is killed.
 * Waits for all expected events, and lets an hour pass on the chains. Then compares all events with the expected ones.
 */
export async function underLies(run: LyingRun): Promise<LyingOutcome> {
  const { seed, fills, onTestFinished } = run;
  const sandbox = new Sandbox({
    seed,
    timeScale: TIME_SCALE,
    finalitySeconds: FINALITY_SECONDS.reorganised * TIME_SCALE,
    transfersPerSecond: 0,
    wallets: 1,
  });
  const hook = new TestReceiver();
  for (const part of [sandbox, hook]) {
    await part.start();
    onTestFinished(() => part.close());
  }
  // The second endpoint of Ethereum is behind a proxy, so that it can be cut off.
  const proxy = new TcpProxy({ host: '127.0.0.1', port: Number(new URL(sandbox.url).port) });
  await proxy.start();
  onTestFinished(() => proxy.close());
  sandbox.setChains({ chainId: SOLANA, finality: { seconds: FINALITY_SECONDS.solana } });
  for (const fault of LASTING) await startFault(sandbox.controlUrl, fault);
  const daemon = new ChildDaemon(configOf({ run, sandbox, hook, proxy }));
  await daemon.start();
  onTestFinished(() => daemon.kill());

  const stamps: [string, number][] = [['start', performance.now()]];
  const stamp = (name: string): void => void stamps.push([name, performance.now()]);
  const random = randomStream(seed, 'lying', 'faults');
  const faults = new PassingFaults({ controlUrl: sandbox.controlUrl, random });
  faults.start();
  const ended = () =>
    eventually(
      'the end of each transfer is reported',
      () => untold(paymentsOf(sandbox, seed), hook.events).length === 0,
      300_000,
    );
  const { first, reused } = ordersOf(seed, fills);
  let kills = 0;
  let reorganisations = 0;
  let reorganised = 0;
  // As many transfers begin and end while the daemon is away as while it runs: it requests these before they are final.
  let isBack = Promise.resolve();
  await makeOrders(sandbox, first, async (share) => {
    proxy.onRequest = Math.floor(share * 10) % 3 === 1 ? () => 'cut' : () => 'pass';
    if (share >= (BACK_AT[kills - 1] ?? 2)) await isBack;
    if (share >= (REORGANISED_AT[reorganisations] ?? 2)) {
      reorganisations += 1;
      reorganised += await reorganiseAll(sandbox, notifiedOf(paymentsOf(sandbox, seed), hook.events));
    }
    if (share < (KILLED_AT[kills] ?? 2)) return;
    kills += 1;
    isBack = daemon.kill().then(() => daemon.start());
  });
  proxy.onRequest = () => 'pass';
  stamp('made');
  await eventually('the end of all transfers', () => sandbox.pace().livingTransfers === 0);
  await ended();
  const dropped = sandbox.payments().filter(({ lie }) => lie === 'dropped');
  await eventually(
    'no dropped payment is in a block',
    async () => (await placesOf(sandbox, dropped)).size === 0,
  );
  await faults.end();
  reorganised += await reorganiseAll(sandbox, paymentsOf(sandbox, seed));
  const early = hook.events.filter(({ type }) => type === 'intent.unproven');
  // Checks poll at growing intervals: the hour passes while others are awaited.
  if (run.passesHour) await passHour(sandbox);
  stamp('reorganised');

  const contradictions = new Map<string, boolean>();
  /**
   * Waits until each due payment has its event, or its check has ended without one; a payment without either is a problem. What is
   * due is judged again meanwhile: a moved transaction that is back in a block may be one that endpoints contradict each other about.
   */
  const settled = async (isDue: (judged: Judged) => boolean): Promise<Judged[]> => {
    let judged: Judged[] = [];
    let judgeMs = Number.NEGATIVE_INFINITY;
    const isAllReported = async (): Promise<boolean> => {
      if (performance.now() >= judgeMs) {
        judged = await judge(sandbox, { seed, contradictions });
        judgeMs = performance.now() + JUDGE_EVERY_MS;
      }
      const due = judged.filter(isDue).map(({ stated }) => paymentKey(stated.intentHash, stated.payment));
      const reported = new Set([...hook.events.map(keyOf), ...uncheckedBy(daemon)]);
      return due.every((key) => reported.has(key));
    };
    await eventually('due payments are reported', isAllReported, DUE_MS).catch(() => undefined);
    return judged;
  };
  const isDecided = (one: Judged): boolean => !['open', 'unproven'].includes(expectedOf(one));
  await settled(isDecided);
  stamp('reported');
  sandbox.setChains({ finality: { seconds: FINALITY_SECONDS.quiet } });
  await makeOrders(sandbox, reused, () => Promise.resolve());
  await eventually('the end of the last transfers', () => sandbox.pace().livingTransfers === 0);
  const judged = await settled((one) => (run.passesHour ? expectedOf(one) !== 'open' : isDecided(one)));
  await ended();
  stamp('reused');

  const events = once(hook.events);
  const places = await placesOf(
    sandbox,
    judged.map(({ stated }) => stated),
  );
  const { problems, counts } = accountLies(judged, { events, passesHour: run.passesHour, places });
  return {
    problems: [
      ...problems,
      ...accountStatuses(judged, events),
      ...(await idleFaults(sandbox.controlUrl)),
      ...early.map((event) => `${keyOf(event)} was called unproven before the hour`),
    ],
    counts,
    reported: events.filter(({ data }) => data.proof !== undefined).length,
    rpcCalls: callsOf(sandbox),
    faults: faults.begun,
    kills,
    reorganised,
    seconds: Object.fromEntries(
      stamps
        .slice(1)
        .map(([name, atMs], index) => [name, Math.round((atMs - (stamps[index]?.[1] ?? 0)) / 100) / 10]),
    ),
  };
}

function configOf({
  run,
  sandbox,
  hook,
  proxy,
}: {
  run: LyingRun;
  sandbox: Sandbox;
  hook: TestReceiver;
  proxy: TcpProxy;
}) {
  const { evm, solana } = walletsOf(run.seed);
  const wallets = [...evm, solana];
  const cuttable = sandbox.rpcUrl(1, 'other').replace(/:\d+/, `:${new URL(proxy.url).port}`);
  const endpoint = (chainId: number, name: string) => {
    const url = chainId === 1 && name === 'other' ? cuttable : sandbox.rpcUrl(chainId, name);
    return {
      name,
      url: name === 'other' && !ONE_HOST.has(chainId) ? url.replace('127.0.0.1', 'localhost') : url,
      requestsPerSecond: 500,
    };
  };
  const pinned = { address: PORTAL_ADDRESS, event: FULFILMENT_EVENT, hash: 'intentHash' };
  return {
    baseUrl: sandbox.url,
    redisUrl: run.redisUrl,
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url, more: { concurrency: 20 } } },
    subscriptions: [{ name: 'treasury', wallets, recipients: wallets, receivers: ['hook'] }],
    more: {
      chains: Object.fromEntries(
        CHECKED_CHAINS.map((chainId) => [
          chainId,
          {
            rpc: ENDPOINTS.map((name) => endpoint(chainId, name)),
            ...(UNPINNED.has(chainId) ? {} : { fulfilments: pinned }),
          },
        ]),
      ),
    },
  };
}

/** Makes transfers in batches; `between` gets the share of them that is made. */
async function makeOrders(
  sandbox: Sandbox,
  orders: readonly SandboxOrder[],
  between: (share: number) => Promise<void>,
): Promise<void> {
  for (let at = 0; at < orders.length; at += AT_ONCE) {
    await Promise.all(orders.slice(at, at + AT_ONCE).map((order) => orderAt(sandbox, order)));
    await between(at / orders.length);
  }
}

function paymentsOf(sandbox: Sandbox, seed: number): StatedPayment[] {
  const { evm, solana } = walletsOf(seed);
  const mine = new Set([...evm, solana]);
  return sandbox.payments().filter(({ from, recipient }) => mine.has(from) || mine.has(recipient));
}

async function judge(
  sandbox: Sandbox,
  { seed, contradictions }: { seed: number; contradictions: Map<string, boolean> },
): Promise<Judged[]> {
  const stated = paymentsOf(sandbox, seed);
  // A moved transaction may not be back in a block yet.
  const unknown = stated.filter((one) => one.lie === 'moved' || !contradictions.has(placeKey(one)));
  for (const [key, isContradicted] of await contradictedOf(sandbox, unknown)) {
    contradictions.set(key, isContradicted);
  }
  const isContradicted = (one: StatedPayment): boolean => contradictions.get(placeKey(one)) === true;
  const proved = stated.filter((one) => isFunding(one) && !isContradicted(one) && !ONE_HOST.has(one.chainId));
  const funded = new Set(proved.map(({ intentHash }) => intentHash));
  const firsts = new Map(stated.filter(({ lie }) => lie === null).map((one) => [placeKey(one), one]));
  return stated.map((one) => ({
    stated: one,
    isContradicted: isContradicted(one),
    isFundingProved: funded.has(one.intentHash),
    first: firstOf(one, firsts),
  }));
}

function firstOf(one: StatedPayment, firsts: ReadonlyMap<string, StatedPayment>): Judged['first'] {
  const stated = one.lie === 'reused' ? firsts.get(placeKey(one)) : undefined;
  return stated === undefined ? null : { stated, isBeside: isBeside(stated) };
}

/** Lets an hour pass on all chains, once every moved transaction is in a block again. */
async function passHour(sandbox: Sandbox): Promise<void> {
  const moved = sandbox.payments().filter(({ lie }) => lie === 'moved');
  const count = new Set(moved.map(placeKey)).size;
  await eventually(
    'the moved payments are in a block again',
    async () => (await placesOf(sandbox, moved)).size === count,
    300_000,
  );
  await startFault(sandbox.controlUrl, { type: 'lagging-head', seconds: -AHEAD_SECONDS, path: '/chains' });
}

/**
 * Replaces all blocks that are not final. Returns how many of these payments are in another block now, where a payment is
 * shown before it is final.
 */
async function reorganiseAll(sandbox: Sandbox, payments: readonly StatedPayment[]): Promise<number> {
  const shown = payments.filter(({ chainId }) => chainId !== SOLANA);
  const before = await placesOf(sandbox, shown);
  sandbox.setChains({ reorganise: ALL_BLOCKS });
  const after = await placesOf(sandbox, shown);
  return [...before].filter(([key, { hash }]) => hash !== after.get(key)?.hash).length;
}

const isFunding = ({ payment }: StatedPayment): boolean => payment === 'source';

/** The payments whose checks have ended without an event, by the log of the daemon. */
function uncheckedBy({ lines }: ChildDaemon): string[] {
  return lines
    .filter(({ msg }) => msg === 'check.ended')
    .map((line) => ENDED.parse(line))
    .flatMap(({ subject, payment, state }) => (state === 'unchecked' ? [`${subject} ${payment}`] : []));
}

const ENDED = z.object({ subject: z.string(), payment: z.string(), state: z.string() });

const keyOf = ({ data }: RenderedEvent): string => `${data.subject.id} ${data.proof?.payment}`;

function once(events: readonly RenderedEvent[]): RenderedEvent[] {
  return [...new Map(events.map((event) => [event.id, event])).values()];
}

/** Mismatches of the events themselves: missing or repeated numbers, transfers without an end. */
function accountStatuses(judged: readonly Judged[], events: readonly RenderedEvent[]): string[] {
  const bySubject = new Map<string, RenderedEvent[]>();
  for (const event of events) {
    const { id } = event.data.subject;
    bySubject.set(id, [...(bySubject.get(id) ?? []), event]);
  }
  const problems: string[] = [];
  for (const intentHash of new Set(judged.map(({ stated }) => stated.intentHash))) {
    const own = bySubject.get(`intent:${intentHash}`) ?? [];
    const numbers = own.map(({ data }) => data.sequence).sort((a, b) => a - b);
    const gap = numbers.findIndex((number, index) => number !== index + 1);
    if (gap !== -1) problems.push(`intent:${intentHash}: its events are numbered ${numbers.join(', ')}`);
  }
  return problems;
}

function untold(stated: readonly StatedPayment[], events: readonly RenderedEvent[]): string[] {
  const ended = endedBy(events);
  return stated.map(({ intentHash }) => `intent:${intentHash}`).filter((id) => !ended.has(id));
}

function notifiedOf(stated: readonly StatedPayment[], events: readonly RenderedEvent[]): StatedPayment[] {
  const ended = endedBy(events);
  return stated.filter(({ intentHash }) => ended.has(`intent:${intentHash}`));
}

function endedBy(events: readonly RenderedEvent[]): Set<string> {
  const ending = events.filter(({ type }) => /^intent\.(settled|refunded)$/.test(type));
  return new Set(ending.map(({ data }) => data.subject.id));
}

function callsOf(sandbox: Sandbox): number {
  return sandbox
    .chains()
    .flatMap(({ calls }) => Object.values(calls))
    .flatMap((methods) => Object.values(methods))
    .reduce((sum, calls) => sum + calls, 0);
}
