import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { stringify } from 'yaml';
import { REPORT, type Report } from '../../src/domain/books/report-schema.ts';
import { randomStream } from '../../src/sandbox/world/random.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import type { LogEntry } from '../../src/store/log-entry.ts';
import { eventually } from '../support/eventually.ts';
import { PostgresProcess } from '../support/postgres-process.ts';
import { Program } from '../support/program.ts';
import { RedisProcess } from '../support/redis-process.ts';
import { SANDBOX_KEY, SandboxProcess } from '../support/sandbox-process.ts';
import { differencesOf } from './books-account.ts';
import { blindSpots } from './books-blind.ts';
import { acceptedOf, type BooksTruth, paymentsSchema, transfersOf } from './books-truth.ts';
import { ChaosDaemon } from './daemon.ts';
import { MailServer } from './mail-server.ts';
import { doMischief } from './mischief.ts';
import { MoodyReceiver } from './receiver.ts';
import type { Disruption } from './reckoning.ts';

/** What a run of the books is given; `later` closes something when it is over. */
export type BooksRun = {
  seconds: number;
  seed: number;
  say: (line: string) => void;
  later: (close: () => Promise<unknown>) => void;
};

type Reports = readonly [Report, Report];

const MAIN = join(import.meta.dirname, '../../src/main.ts');
const DRAIN_MS = 480_000;
const DAY_MS = 86_400_000;
const PREFIX = 'intentwatch';
const TIME_SCALE = 10;
const TRANSFERS_PER_SECOND = 4;
const CLOSE_AFTER_MS = 20_000;
const OVERDUE_AFTER_MS = 6_000;

/** More attempts than any failure here can use up. */
const RETRIES = { delays: ['200ms', '500ms', ...Array.from({ length: 90 }, () => '1s')] };

/** What the programs of a run find in their environment: this one's clock, and what Node made of their files before. */
const ENV = Object.fromEntries(
  [
    'LD_PRELOAD',
    'FAKETIME',
    'FAKETIME_DONT_FAKE_MONOTONIC',
    'DONT_FAKE_MONOTONIC',
    'NODE_COMPILE_CACHE',
  ].flatMap((name): [string, string][] => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  }),
);

/**
 * Disturbs two daemons around midnight. Returns whether the books of both days are what was made; `late` where everything had
 * not started before it.
 */
export async function booksRun({ seconds, seed, say, later }: BooksRun): Promise<'right' | 'wrong' | 'late'> {
  const day = new Date().toISOString().slice(0, 10);
  const midnightMs = Date.parse(day) + DAY_MS;
  const sandbox = await startSandbox(seed, later);
  const redis = await RedisProcess.create();
  later(() => redis.close());
  const postgres = await PostgresProcess.start();
  later(() => postgres.close());
  // One accepts all in the end; the other dies for good in the first day.
  const receivers = { backend: new MoodyReceiver('backend'), ledger: new MoodyReceiver('ledger') };
  for (const receiver of Object.values(receivers)) {
    await receiver.start();
    later(() => receiver.close());
  }
  const mailServer = await MailServer.start();
  later(() => mailServer.down());
  const { wallets } = await sandbox.subjects();
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
    const asked = new Set(
      (await sandbox.answers()).flatMap(({ query }) => query.wallet?.toLowerCase() ?? []),
    );
    return wallets.every((wallet) => asked.has(wallet.toLowerCase()));
  });
  const polledMs = Date.now();
  const beginMs = midnightMs - (seconds * 1_000) / 2;
  if (polledMs > midnightMs - 5_000) {
    say(`starting took ${Math.round((polledMs - beginMs) / 1_000)} s too long`);
    return 'late';
  }
  await wait(Math.max(0, beginMs - Date.now()));
  const left = Math.round((midnightMs - Date.now()) / 1_000 + seconds / 2);
  say(`disturbing two daemons for ${left} s around midnight (seed ${seed}), now ${new Date().toISOString()}`);
  await sandbox.setPace(TRANSFERS_PER_SECOND);
  const dying = wait((midnightMs - Date.now()) / 2).then(() => {
    receivers.ledger.mood = 'failing';
  });
  const disruptions = await doMischief(
    { daemons, redis, mailServer, receivers: [receivers.backend] },
    { seed, seconds: left },
  );
  await dying;
  await sandbox.setPace(0);
  say(`everything works again at ${new Date().toISOString()}; draining`);
  await eventually('all transfers have ended', async () => (await sandbox.living()) === 0, DRAIN_MS);
  const truthNow = async (): Promise<BooksTruth> => ({
    transfers: transfersOf(await sandbox.transitions(), {
      payments: paymentsSchema.parse(await (await fetch(`${sandbox.controlUrl}/payments`)).json()),
      showings: await sandbox.showings(),
      log: await readLog(redis.url),
      polledMs,
    }),
    receivers: new Map(Object.values(receivers).map(({ name, arrivals }) => [name, acceptedOf(arrivals)])),
    overdueAfterMs: OVERDUE_AFTER_MS,
    closeAfterMs: CLOSE_AFTER_MS,
  });
  const next = new Date(midnightMs).toISOString().slice(0, 10);
  const found: { reports: Reports; truth: BooksTruth }[] = [];
  let differences = ['no report could be read'];
  const agree = async (): Promise<boolean> => {
    const reports = await readReports([day, next], configFile, say);
    const truth = await truthNow();
    if (reports === null) return false;
    found.splice(0, 1, { reports, truth });
    differences = differencesOf(reports, truth);
    return differences.length === 0;
  };
  await eventually('the books say what the sandbox made', agree, DRAIN_MS).catch((error: unknown) =>
    say(String(error)),
  );
  await eventually('the mail of the first day', () => mailServer.arrivals.length > 0, DRAIN_MS).catch(
    (error: unknown) => differences.push(String(error)),
  );
  for (const daemon of daemons) await daemon.terminate();
  const problems = [...differences, ...daemons.flatMap(({ problems: list }) => list)];
  for (const one of found) problems.push(...account(one, { disruptions, say }));
  for (const problem of problems.slice(0, 40)) say(`  ${problem}`);
  const isGood = problems.length === 0;
  say(
    `mails ${mailServer.arrivals.length}, problems ${problems.length}${isGood ? ': the books balance and agree.' : ''}`,
  );
  return isGood ? 'right' : 'wrong';
}

async function startSandbox(seed: number, later: BooksRun['later']): Promise<SandboxProcess> {
  const flags = {
    port: 0,
    'control-port': 0,
    'quotes-port': 0,
    'transfers-per-second': 0,
    seed,
    wallets: 8,
    'time-scale': TIME_SCALE,
  };
  const args = Object.entries(flags).map((flag) => `--${flag.join('=')}`);
  const program = await Program.start(MAIN, ['sandbox', ...args], ENV);
  later(() => program.end('SIGKILL'));
  return SandboxProcess.of(program);
}

function configOf(parts: {
  sandbox: SandboxProcess;
  redis: RedisProcess;
  postgres: PostgresProcess;
  mailServer: MailServer;
  receivers: { backend: MoodyReceiver; ledger: MoodyReceiver };
  wallets: readonly string[];
}): string {
  const { sandbox, redis, postgres, mailServer, receivers, wallets } = parts;
  const webhook = ({ name, url, secret }: MoodyReceiver, retries: object): object => ({
    name,
    type: 'webhook',
    url,
    secrets: [secret],
    timeout: '2s',
    retries,
    allowPrivateNetwork: true,
    allowInsecure: true,
  });
  return stringify({
    upstream: { baseUrl: sandbox.url, apiKey: SANDBOX_KEY, requestsPerSecond: 60, timeout: '5s' },
    redis: { url: redis.url, prefix: PREFIX },
    server: { host: '127.0.0.1', port: 0 },
    smtp: { url: mailServer.url, from: 'Intentwatch <transfers@example.com>' },
    books: {
      url: postgres.url,
      closeAfter: `${CLOSE_AFTER_MS}ms`,
      report: { at: '00:00', to: ['treasury@example.com'] },
    },
    receivers: [webhook(receivers.backend, RETRIES), webhook(receivers.ledger, { delays: ['500ms'] })],
    subscriptions: [
      {
        name: 'treasury',
        wallets,
        overdueAfter: `${OVERDUE_AFTER_MS}ms`,
        receivers: ['backend', 'ledger'],
      },
    ],
  });
}

/** The whole event log. */
async function readLog(url: string): Promise<LogEntry[]> {
  const client = connect({ kind: 'server', url });
  try {
    return await new EventLog(client, new Keys(PREFIX)).after('0-0', 1_000_000);
  } finally {
    await disconnect(client);
  }
}

/** The books of both days, by the command; null where one cannot be read now. */
async function readReports(
  [day, next]: readonly [string, string],
  configFile: string,
  say: BooksRun['say'],
): Promise<Reports | null> {
  const read = async (name: string): Promise<Report | null> => {
    const args = ['reconcile', '--config', configFile, '--store', '--day', name, '--format', 'json'];
    const program = await Program.start(MAIN, args, ENV);
    await program.ending();
    if (program.stdout.length > 0) return REPORT.parse(JSON.parse(program.stdout.join('\n')));
    say(`reconcile --day ${name}: ${program.said()}`);
    return null;
  };
  const [first, second] = await Promise.all([read(day), read(next)]);
  return first === null || second === null ? null : [first, second];
}

/** Says what there was, and tries whether anything could have been left out unnoticed. Returns what could. */
function account(
  { reports, truth }: { reports: Reports; truth: BooksTruth },
  { disruptions, say }: { disruptions: readonly Disruption[]; say: BooksRun['say'] },
): string[] {
  const counts = (list: readonly string[]): string =>
    [...Map.groupBy(list, (one) => one)].map(([one, all]) => `${one} ${all.length}`).join(', ') || 'none';
  say(`faults: ${counts(disruptions.map(({ what, victim }) => `${victim} ${what}`))}`);
  say(`transfers made: ${truth.transfers.length}`);
  for (const { day, state, transfers, exceptions, balances, delivered } of reports) {
    const late = transfers.filter((row) => row.late).length;
    say(
      `${day} (${state}): ${transfers.length} transfers, ${late} late, ${balances.length} balances, ${delivered.length} sums`,
    );
    const counted = (name: 'opening' | 'started' | 'ended' | 'closing'): number =>
      balances.reduce((sum, balance) => sum + balance[name].count, 0);
    say(
      `  opening ${counted('opening')} + started ${counted('started')} - ended ${counted('ended')} = closing ${counted('closing')}`,
    );
    say(`  exceptions: ${counts(exceptions.map(({ kind }) => kind))}`);
  }
  const { tried, unnoticed } = blindSpots(reports, truth);
  say(`left out or altered by turns: ${tried}, unnoticed ${unnoticed.length}`);
  return unnoticed.map((what) => `unnoticed: ${what}`);
}
