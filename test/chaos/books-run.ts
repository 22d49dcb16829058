import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { randomStream } from '../../sandbox/world/random.ts';
import { eventually } from '../support/eventually.ts';
import { PassingFaults, startFault } from '../support/lying-faults.ts';
import { CHECKED_CHAINS } from '../support/lying-orders.ts';
import { PostgresProcess } from '../support/postgres-process.ts';
import { RedisProcess } from '../support/redis-process.ts';
import { differencesOf } from './books-account.ts';
import { CLOSE_AFTER_MS, configOf, ENV, OVERDUE_AFTER_MS, startSandbox } from './books-setup.ts';
import { acceptedOf, type BooksTruth, paymentsSchema, transfersOf } from './books-truth.ts';
import { ChaosDaemon } from './daemon.ts';
import { MailServer } from './mail-server.ts';
import { doMischief } from './mischief.ts';
import { type Reports, readLog, readReports, storeRows, unnoticedIn, writeCounts } from './read-books.ts';
import { MoodyReceiver } from './receiver.ts';

/** Input of a run of the books; `later` registers a function that closes a resource at the end. */
export type BooksRun = {
  seconds: number;
  seed: number;
  writeLine: (line: string) => void;
  later: (close: () => Promise<unknown>) => void;
};

const DRAIN_MS = 600_000;
const DAY_MS = 86_400_000;

/** At the end the chains are ahead by this: longer than the wait for a missing payment. */
const CHAINS_AHEAD_SECONDS = 3_900;
const TRANSFERS_PER_SECOND = 4;

/**
 * Disturbs two daemons around midnight. Returns whether the books of both days match the transfers made; `late` where some
 * process started after midnight.
 */
export async function booksRun({
  seconds,
  seed,
  writeLine,
  later,
}: BooksRun): Promise<'right' | 'wrong' | 'late'> {
  const day = new Date().toISOString().slice(0, 10);
  const midnightMs = Date.parse(day) + DAY_MS;
  const sandbox = await startSandbox(seed, later);
  const redis = await RedisProcess.create();
  later(() => redis.close());
  const postgres = await PostgresProcess.start();
  later(() => postgres.close());
  // One accepts all in the end; the other stops for good in the first day.
  const receivers = { backend: new MoodyReceiver('backend'), ledger: new MoodyReceiver('ledger') };
  for (const receiver of Object.values(receivers)) {
    await receiver.start();
    later(() => receiver.close());
  }
  const mailServer = await MailServer.start();
  later(() => mailServer.down());
  const { wallets } = await sandbox.subjects();
  const { controlUrl } = sandbox;
  const faults = new PassingFaults({ controlUrl, random: randomStream('books', seed, 'endpoints') });
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-books-run-'));
  later(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const configFile = join(folder, 'intentwatch.yaml');
  await writeFile(configFile, configOf({ sandbox, redis, postgres, mailServer, receivers, wallets }));
  const daemons = ['first', 'second'].map(
    (name) => new ChaosDaemon({ name, configFile, bender: null, env: ENV }),
  );
  for (const daemon of daemons) {
    later(() => daemon.kill());
    await daemon.launch(randomStream('books', seed, 'start', daemon.name));
  }
  for (const daemon of daemons) await daemon.started();
  await eventually('every wallet was polled', async () => {
    const requests = new Set(
      (await sandbox.answers()).flatMap(({ query }) => query.wallet?.toLowerCase() ?? []),
    );
    return wallets.every((wallet) => requests.has(wallet.toLowerCase()));
  });
  const polledMs = Date.now();
  const beginMs = midnightMs - (seconds * 1_000) / 2;
  if (polledMs > midnightMs - 5_000) {
    writeLine(`starting took ${Math.round((polledMs - beginMs) / 1_000)} s too long`);
    return 'late';
  }
  await wait(Math.max(0, beginMs - Date.now()));
  const left = Math.round((midnightMs - Date.now()) / 1_000 + seconds / 2);
  writeLine(
    `disturbing two daemons for ${left} s around midnight (seed ${seed}), now ${new Date().toISOString()}`,
  );
  await sandbox.setPace(TRANSFERS_PER_SECOND);
  faults.start();
  const dying = wait((midnightMs - Date.now()) / 2).then(() => {
    receivers.ledger.mood = 'failing';
  });
  const disruptions = await doMischief(
    { daemons, redis, mailServer, receivers: [receivers.backend] },
    { seed, seconds: left },
  );
  await dying;
  await faults.end();
  await sandbox.setPace(0);
  writeLine(
    `endpoints failed ${faults.begun} times; everything works again at ${new Date().toISOString()}; draining`,
  );
  await eventually('all transfers have ended', async () => (await sandbox.living()) === 0, DRAIN_MS);
  await startFault(controlUrl, { type: 'lagging-head', seconds: -CHAINS_AHEAD_SECONDS, path: '/chains' });
  const truthNow = async (): Promise<BooksTruth> => ({
    transfers: transfersOf(await sandbox.transitions(), {
      payments: paymentsSchema.parse(await (await fetch(`${controlUrl}/payments`)).json()),
      showings: await sandbox.showings(),
      log: await readLog(redis.url),
      polledMs,
    }),
    receivers: new Map(Object.values(receivers).map(({ name, arrivals }) => [name, acceptedOf(arrivals)])),
    checkedChains: new Set(CHECKED_CHAINS),
    wallets: new Set(wallets.map((wallet) => wallet.toLowerCase())),
    dead: receivers.ledger.name,
    kills: disruptions.filter(({ what }) => what.startsWith('kill -9')),
    overdueAfterMs: OVERDUE_AFTER_MS,
    closeAfterMs: CLOSE_AFTER_MS,
  });
  const next = new Date(midnightMs).toISOString().slice(0, 10);
  const found: { reports: Reports; truth: BooksTruth }[] = [];
  let differences = ['no report could be read'];
  const agree = async (): Promise<boolean> => {
    const reports = await readReports([day, next], configFile, writeLine);
    const truth = await truthNow();
    if (reports === null) return false;
    found.splice(0, 1, { reports, truth });
    differences = differencesOf(reports, truth);
    return differences.length === 0;
  };
  await eventually('the books have the transfers of the sandbox', agree, DRAIN_MS).catch((error: unknown) =>
    writeLine(String(error)),
  );
  await eventually('the mail of the first day', () => mailServer.arrivals.length > 0, DRAIN_MS).catch(
    (error: unknown) => differences.push(String(error)),
  );
  for (const daemon of daemons) await daemon.terminate();
  const problems = [...differences, ...daemons.flatMap(({ problems: list }) => list)];
  for (const one of found) {
    writeCounts(one, { disruptions, writeLine });
    // Books that differ already show each alteration.
    if (differences.length === 0) problems.push(...unnoticedIn(one, writeLine));
  }
  for (const problem of problems.slice(0, 40)) writeLine(`  ${problem}`);
  const isGood = problems.length === 0;
  if (!isGood)
    writeLine(`stored in ${await storeRows(problems, { seed, truth: found[0]?.truth, url: postgres.url })}`);
  writeLine(
    `mails ${mailServer.arrivals.length}, problems ${problems.length}${isGood ? ': the books balance and agree.' : ''}`,
  );
  return isGood ? 'right' : 'wrong';
}
