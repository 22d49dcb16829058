import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { account } from '../../demo/account.ts';
import type { Fault } from '../../sandbox/faults/fault.ts';
import { startDaemon, TestReceiver, testPrefix } from '../../test/support/daemon.ts';
import { eventually } from '../../test/support/eventually.ts';
import { Program } from '../../test/support/program.ts';
import { RedisProcess } from '../../test/support/redis-process.ts';
import { SandboxProcess } from '../../test/support/sandbox-process.ts';
import { endsOf, lastReported } from '../../test/support/statuses.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');
export const TIME_SCALE = 40;
const BIRTHS_PER_SECOND = 20;
const QUIET_SECONDS = 10;

/** After this time without a request behind the first page, the first sweep is over. */
const SWEPT_AFTER_MS = 3_000;
const WITHIN_MS = 180_000;

/** A wallet with past transfers and live ones, at an upstream with faults. */
export type WatchedWallet = { past: number; transfers: number; faults: readonly Fault[] };

/**
 * Results: status changes made, never shown, and reported; differences as text; transfers with an unreported end. Requests
 * per minute while transfers lived and after; `deep`: those behind the first page.
 */
export type Watched = {
  account: { made: number; merged: number; reported: number; problems: string[]; unsettled: number };
  perMinute: { busy: number; quiet: number };
  deep: number;
};

/** Watches one wallet of a sandbox of its own with a daemon of its own, until all its transfers have ended. */
export async function watchWallet({ past, transfers, faults }: WatchedWallet): Promise<Watched> {
  const closers: (() => Promise<unknown>)[] = [];
  try {
    const redis = await RedisProcess.create();
    closers.push(() => redis.close());
    const flags = ['--port=0', '--control-port=0', '--transfers-per-second=0', '--wallets=1', '--seed=3'];
    const program = await Program.start(MAIN, [
      ...['sandbox', ...flags, `--time-scale=${TIME_SCALE}`, `--past-transfers=${past}`],
      ...faults.flatMap((fault) => ['--fault', flagOf(fault)]),
    ]);
    closers.push(() => program.end('SIGKILL'));
    const sandbox = await SandboxProcess.of(program);
    const receiver = new TestReceiver();
    await receiver.start();
    closers.push(() => receiver.close());
    const { daemon } = await startDaemon({
      baseUrl: sandbox.url,
      redisUrl: redis.url,
      prefix: testPrefix(),
      receivers: { hook: { url: receiver.url, more: { concurrency: 10 } } },
      subscriptions: [{ name: 's', wallets: (await sandbox.subjects()).wallets, receivers: ['hook'] }],
    });
    closers.push(() => daemon.close());
    return await live(sandbox, { receiver, transfers });
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

async function live(
  sandbox: SandboxProcess,
  watch: { receiver: TestReceiver; transfers: number },
): Promise<Watched> {
  const { receiver, transfers } = watch;
  await eventually('the first sweep is over', () => isSwept(sandbox), WITHIN_MS);
  const fromMs = Date.now();
  await sandbox.setPace(BIRTHS_PER_SECOND);
  await eventually('so many were born', async () => (await bornSince(sandbox, fromMs)).size >= transfers);
  await sandbox.setPace(0);
  await eventually('all have ended', async () => (await sandbox.living()) === 0, WITHIN_MS);
  const endedMs = Date.now();
  const born = await bornSince(sandbox, fromMs);
  const transitions = await sandbox.transitions();
  const ends = endsOf(transitions, fromMs - 2_000);
  const unsettled = (): number => {
    const reported = lastReported(receiver.events);
    return [...born].filter((subject) => reported.get(subject) !== ends.get(subject)).length;
  };
  // When it never becomes known, the account below reports it.
  await eventually('every end is known', () => unsettled() === 0, WITHIN_MS).catch(() => undefined);
  const quietMs = Date.now();
  await wait(QUIET_SECONDS * 1_000);
  const untilMs = Date.now();

  const sums = account({
    transitions,
    showings: await sandbox.showings(),
    events: receiver.events.filter(({ data }) => born.has(data.subject.id)),
    isWatched: (subject) => born.has(subject),
    // The daemon runs in this process, which also runs the account.
    rules: { slackMs: 5_000 },
  });
  const requests = (await sandbox.requests()).filter(({ path }) => path === '/v1/intents/status');
  const perMinute = (from: number, to: number): number =>
    (60_000 * requests.filter(({ at }) => at >= from && at < to).length) / (to - from);
  return {
    account: {
      made: sums.made,
      merged: sums.merged,
      reported: sums.statusEvents,
      problems: sums.problems,
      unsettled: unsettled(),
    },
    perMinute: { busy: perMinute(fromMs, endedMs), quiet: perMinute(quietMs, untilMs) },
    deep: requests.filter(({ query }) => query.cursor !== undefined).length,
  };
}

async function isSwept(sandbox: SandboxProcess): Promise<boolean> {
  const requests = await sandbox.requests();
  const last = requests.findLast(({ query }) => query.cursor !== undefined) ?? requests[0];
  return last !== undefined && Date.now() - last.at >= SWEPT_AFTER_MS;
}

async function bornSince(sandbox: SandboxProcess, sinceMs: number): Promise<Set<string>> {
  const transitions = await sandbox.transitions();
  return new Set(
    transitions
      .filter(({ subject, from, at }) => subject.startsWith('intent:') && from === null && at >= sinceMs)
      .map(({ subject }) => subject),
  );
}

function flagOf({ type, ...members }: Fault): string {
  const pairs = Object.entries(members).map(([key, value]) => `${key}=${value}`);
  return `${type}:${pairs.join(',')}`;
}
