import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { Sandbox } from '../sandbox/sandbox.ts';
import type { Subjects } from '../sandbox/world/world.ts';
import { loadConfig } from '../src/config/file/load.ts';
import { Daemon } from '../src/daemon/daemon.ts';
import type { RenderedEvent } from '../src/domain/events/event.ts';
import { wantsType } from '../src/domain/events/filter.ts';
import { EXIT, interrupted } from '../src/exit.ts';
import { LOG_OPTIONS } from '../src/log.ts';
import { type Account, account } from './account.ts';
import { accountRoute } from './account-routes.ts';
import { DEMO_MOVED_BY_MILLIONTHS, demoConfig } from './config.ts';
import { DemoMailbox } from './mailbox.ts';
import { moveMarket } from './market.ts';
import { LONGEST_MS } from './observation.ts';
import { DemoReceiver } from './receiver.ts';
import { eventLine } from './screen.ts';

const USUAL_PORT = 9464;
const PACE = 0.8;

/** Longest time without a delivery after the end of polling: longer for a run that ends by itself than for Ctrl-C. */
const DRAIN_MS = 60_000;
const INTERRUPTED_DRAIN_MS = 1_500;

/** Time after its last byte in which an answer may be ingested that the daemon used, ms. */
const AT_ONCE_MS = 250;

const MAIL_EVENTS = ['*', '!*.updated'];

/** Runs the demo until its time is over or a signal ends it. Sets the exit code when a number does not add up. */
export async function runDemo(options: { for?: number; seed: number }): Promise<void> {
  const writeLine = (line: string): void => void process.stdout.write(`${line}\n`);
  const stop = interrupted();
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-demo-'));
  const sandbox = new Sandbox({
    seed: options.seed,
    timeScale: 10,
    transfersPerSecond: 0,
    wallets: 4,
    pastTransfers: 60,
  });
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const receiver = new DemoReceiver({
    secret,
    onWebhook: ({ event, verified }) => writeLine(eventLine(event, verified)),
  });
  const mailbox = new DemoMailbox(() => undefined);
  const closers: (() => Promise<void>)[] = [
    () => rm(folder, { recursive: true, force: true, maxRetries: 5 }),
  ];
  const close = async (): Promise<void> => {
    for (const closer of closers.reverse()) await closer();
  };
  try {
    for (const part of [sandbox, receiver, mailbox]) {
      await part.start();
      closers.push(() => part.close());
    }
    const file = join(folder, 'intentwatch.yaml');
    const port = await usualPort();
    const subjects = sandbox.subjects();
    await writeFile(file, demoConfig({ sandbox, subjects, receiver, mailbox, secret, port }));
    const log = pino({ ...LOG_OPTIONS, level: 'warn' }, pino.destination(2));
    const daemon = new Daemon({ config: await loadConfig(file, {}), log });
    const overtaken = new Set<string>();
    daemon.signals.on('record.decided', ({ subject, outcome }) => {
      if (outcome === 'superseded' || outcome === 'stale') overtaken.add(subject);
    });
    let isRoutePollCut = false;
    daemon.signals.on('poll.ended', ({ kind, outcome }) => {
      if (kind === 'route' && (outcome === 'aborted' || outcome === 'failed')) isRoutePollCut = true;
    });
    const committed = new Map<string, string>();
    daemon.signals.on('event.committed', ({ event }) => committed.set(event.id, event.type));
    closers.push(() => daemon.close());
    await daemon.start();
    const watchedSince = Math.ceil(Date.now() / 1_000);
    writeLine(`upstream   ${sandbox.url}  (what really happens: ${sandbox.controlUrl}/transitions)`);
    writeLine(
      `watching   ${subjects.wallets.length} wallets, ${subjects.quotes.length} quotes, ${subjects.gaslessJobs.length} gasless jobs, ${subjects.vaults.length} vaults, 1 route`,
    );
    writeLine(`metrics    ${daemon.url}/metrics  (ready: ${daemon.url}/readyz)`);
    writeLine(`webhooks   ${receiver.url}, every signature verified with the standardwebhooks library`);
    writeLine(
      options.for === undefined ? 'Ctrl-C ends it.\n' : `It ends by itself after ${options.for / 1_000} s.\n`,
    );
    sandbox.setPace(PACE);
    const stopMarket = moveMarket(sandbox);
    closers.push(async () => stopMarket());

    const bySignal = await untilEnd(options.for, stop.wait);
    const stoppedMs = Date.now();
    await daemon.stopPolling();
    const mailsDue = (): number =>
      [...committed.values()].filter((type) => wantsType(MAIL_EVENTS, type)).length;
    const drained = await waitFor(
      () => receivedIds(receiver).size >= committed.size && mailsDue() <= mailbox.mails.length,
      () => receiver.received.length + mailbox.mails.length,
      bySignal ? INTERRUPTED_DRAIN_MS : DRAIN_MS,
    );
    const problems = summarise({
      sandbox,
      subjects,
      watchedSince,
      receiver,
      mailbox,
      daemon: { committed, overtaken, isRoutePollCut, stoppedMs },
      mailsDue: mailsDue(),
      writeLine,
    });
    if (!drained) problems.push('some deliveries were still under way at the end');
    for (const problem of problems) writeLine(`  ${problem}`);
    if (!bySignal && problems.length > 0) process.exitCode = EXIT.failed;
  } finally {
    await close();
    stop.release();
  }
}

/** Waits for the end of the run. True when a signal ended it. */
async function untilEnd(forMs: number | undefined, signal: Promise<unknown>): Promise<boolean> {
  const bySignal = signal.then(() => true);
  if (forMs === undefined) return bySignal;
  let timer: NodeJS.Timeout | undefined;
  const byTime = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), forMs);
  });
  const result = await Promise.race([bySignal, byTime]);
  clearTimeout(timer);
  return result;
}

/** Waits for a condition while `moved` grows; gives up when it is constant for `stillMs`. */
async function waitFor(condition: () => boolean, moved: () => number, stillMs: number): Promise<boolean> {
  let [last, sinceMs] = [moved(), performance.now()];
  while (!condition()) {
    const now = moved();
    if (now !== last) [last, sinceMs] = [now, performance.now()];
    if (performance.now() > sinceMs + stillMs) return false;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return true;
}

function receivedIds(receiver: DemoReceiver): Set<string> {
  return new Set(receiver.received.map((received) => received.id));
}

/** Prints the account of the run, one line a number, and returns each problem. */
function summarise(run: {
  sandbox: Sandbox;
  subjects: Subjects;
  /** Unix seconds; earlier times in wallets are history. */
  watchedSince: number;
  receiver: DemoReceiver;
  mailbox: DemoMailbox;
  /**
   * `committed`: types of its events by id. `overtaken`: subjects of answers that were not used, because a newer one was
   * committed. `isRoutePollCut`: a poll of the route failed or was cut off at the end of polling; the upstream may have
   * answered it all the same. `stoppedMs`: begin of the end of polling (Unix ms).
   */
  daemon: {
    committed: ReadonlyMap<string, string>;
    overtaken: ReadonlySet<string>;
    isRoutePollCut: boolean;
    stoppedMs: number;
  };
  mailsDue: number;
  writeLine: (line: string) => void;
}): string[] {
  const { sandbox, receiver, mailbox, writeLine } = run;
  const { committed, overtaken, isRoutePollCut, stoppedMs } = run.daemon;
  const ids = receivedIds(receiver);
  const events = receiver.received.filter(
    ({ id }, index, all) => all.findIndex((one) => one.id === id) === index,
  );
  const isRoute = ({ data }: RenderedEvent): boolean => data.subject.kind === 'route';
  const proofs = events.filter(({ event }) => event.data.proof !== undefined);
  const verifiedPayments = proofs.filter(({ event }) => event.type === 'intent.verified').length;
  const verified = receiver.received.filter((received) => received.verified).length;
  const sums: Account = account({
    transitions: sandbox.transitions(),
    showings: sandbox.showings(),
    events: events.map((received) => received.event).filter((event) => !isRoute(event)),
    isWatched: watched(run.subjects),
    rules: {
      historyBefore: run.watchedSince,
      outages: [{ fromMs: stoppedMs, untilMs: Number.POSITIVE_INFINITY }],
    },
    slackMsOf: (subject) => (overtaken.has(subject) ? LONGEST_MS : AT_ONCE_MS),
  });
  const prices = accountRoute({
    answers: sandbox.answers().flatMap(({ quoted }) => quoted ?? []),
    events: events.map((received) => received.event).filter(isRoute),
    movedByMillionths: DEMO_MOVED_BY_MILLIONTHS,
    hasUnused: isRoutePollCut || [...overtaken].some((subject) => subject.startsWith('route:')),
  });
  const rows: [string, number, string][] = [
    ['transitions made by the upstream', sums.made, 'status changes of watched subjects'],
    ['  merged', sums.merged, 'overtaken between two polls: no answer showed them'],
    ['  shown', sums.shown, 'seen in an answer'],
    ['prices shown by the quoting service', prices.shown, `${prices.due} of them news`],
    [
      'events',
      committed.size,
      `${sums.statusEvents} of a new status, ${sums.updates - proofs.length} of other changes, ${proofs.length} of payments, ${prices.reported} of the route`,
    ],
    ['payments verified', verifiedPayments, "on the sandbox's chains, by two endpoints that agree"],
    ['webhooks delivered', ids.size, `${receiver.received.length - ids.size} of them more than once`],
    ['  signature verified', verified, 'with the standardwebhooks library'],
    ['mails due', run.mailsDue, 'all events but *.updated'],
    ['mails', mailbox.mails.length, ''],
  ];
  writeLine('');
  for (const [name, count, meaning] of rows)
    writeLine(`${name.padEnd(36)}${String(count).padStart(6)}  ${meaning}`);
  const problems = [...sums.problems, ...prices.problems];
  const missing = [...committed.keys()].filter((id) => !ids.has(id));
  const invented = [...ids].filter((id) => !committed.has(id));
  if (missing.length > 0) problems.push(`events without a webhook: ${missing.join(', ')}`);
  if (invented.length > 0) problems.push(`webhooks without an event: ${invented.join(', ')}`);
  if (verified !== receiver.received.length) problems.push('a signature did not verify');
  const mailed = new Set(mailbox.mails.map((mail) => mail.eventId));
  const unmailed = [...committed].filter(([id, type]) => wantsType(MAIL_EVENTS, type) && !mailed.has(id));
  if (unmailed.length > 0) problems.push(`events without a mail: ${unmailed.map(([id]) => id).join(', ')}`);
  if (proofs.length > verifiedPayments) problems.push('a payment was not verified, and all are true');
  if (sums.made === 0) problems.push('the upstream made no transition');
  writeLine(problems.length === 0 ? '\nIt all adds up.' : '\nIt does not add up:');
  return problems;
}

/** True for each watched subject. Every transfer belongs to a watched wallet; the config names quotes, jobs and vaults. */
function watched(subjects: Subjects): (subject: string) => boolean {
  const named = new Set([
    ...subjects.quotes.map((uuid) => `quote:${uuid}`),
    ...subjects.gaslessJobs.map((uuid) => `gasless:${uuid}`),
    ...subjects.vaults.map(({ address, chainId }) => `vault:${chainId}:${address.toLowerCase()}`),
  ]);
  return (subject) => subject.startsWith('intent:') || named.has(subject);
}

/** Finds the usual port where it is free, so that the printed metrics URL is that of the scrape config. */
async function usualPort(): Promise<number> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once('error', () => resolve(0));
    probe.listen(USUAL_PORT, '127.0.0.1', () => probe.close(() => resolve(USUAL_PORT)));
  });
}
