import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { stringify } from 'yaml';
import { randomStream } from '../../sandbox/world/random.ts';
import { parseDuration } from '../../src/config/fields/fields.ts';
import type { Event } from '../../src/domain/events/event.ts';
import { wantsType } from '../../src/domain/events/filter.ts';
import { EXIT } from '../../src/exit.ts';
import { eventually } from '../support/eventually.ts';
import { PARTS } from '../support/optional-parts.ts';
import { RedisProcess } from '../support/redis-process.ts';
import { SANDBOX_KEY, type SandboxProcess } from '../support/sandbox-process.ts';
import { slackOf } from '../support/slow-machine.ts';
import { ChaosDaemon } from './daemon.ts';
import { hostile } from './hostile.ts';
import { MailServer } from './mail-server.ts';
import { doMischief, isStall } from './mischief.ts';
import { MoodyReceiver } from './receiver.ts';
import {
  type Delivery,
  type Disruption,
  type Reporting,
  reckonDelivery,
  reckonReporting,
} from './reckoning.ts';
import {
  DRAIN_MS,
  drained,
  PREFIX,
  problemsOf,
  RETRIES,
  type Subjects,
  startSandbox,
  watchedOf,
  wholeLog,
} from './world.ts';

// Two daemons on one Redis watch a local upstream while their environment fails at random times. At the end the failures stop,
// everything drains, and every status that the upstream's answers showed is compared with the event log, every event with every
// receiver. Exits with 0 only if nothing was lost and nothing was invented.

const MAIL_RECEIVER = 'oncall';
const MAIL_EVENTS = ['*', '!*.updated'];

type Options = { seconds?: number; seed: number; hostile: boolean };

await new Command('chaos')
  .description('Disturb two daemons at random times and account for every status and every event.')
  .option(
    '--seconds <duration>',
    'how long to disturb (60, 60s, 2m; 60 if omitted, with --hostile 20m)',
    toSeconds,
  )
  .option('--seed <number>', 'decides what the upstream does and what is done to whom', Number, 1)
  .option('--hostile', 'send hostile requests and answers to one daemon instead', false)
  .action(async ({ seconds, seed, hostile: isHostile }: Options) => {
    if (!isHostile) return chaos({ seconds: seconds ?? 60, seed });
    if (!(await hostile({ seconds: seconds ?? 1_200, seed, writeLine }))) process.exitCode = 1;
  })
  .parseAsync();

function toSeconds(text: string): number {
  const seconds = /^\d{1,6}$/.test(text) ? Number(text) : (parseDuration(text) ?? Number.NaN) / 1_000;
  if (Number.isNaN(seconds))
    throw new InvalidArgumentError('expected seconds or a duration such as 60s or 2m');
  return seconds;
}

async function chaos({ seconds, seed }: { seconds: number; seed: number }): Promise<void> {
  const bender = PARTS.faketime.place;
  if (bender === null) writeLine('faketime is missing (apt-get install faketime): all clocks stay right');
  const closers: (() => Promise<unknown>)[] = [];
  const closeAll = async (): Promise<void> => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => void closeAll().finally(() => process.exit(EXIT.interrupted)));
  }
  try {
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-chaos-'));
    closers.push(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
    const sandbox = await startSandbox(seed, closers);
    const redis = await RedisProcess.create();
    closers.push(() => redis.close());
    const receivers = [
      new MoodyReceiver('backend'),
      new MoodyReceiver('in-order'),
      new MoodyReceiver('warehouse'),
    ];
    for (const receiver of receivers) {
      await receiver.start();
      closers.push(() => receiver.close());
    }
    const mailServer = await MailServer.start();
    closers.push(() => mailServer.down());

    const configFile = join(folder, 'intentwatch.yaml');
    const subjects = await sandbox.subjects();
    await writeFile(configFile, configOf({ sandbox, redis, receivers, mailServer, subjects }));
    const daemons = [
      new ChaosDaemon({ name: 'first', configFile, bender: null }),
      new ChaosDaemon({ name: 'second', configFile, bender }),
    ];
    for (const daemon of daemons) {
      closers.push(() => daemon.kill());
      await daemon.launch(randomStream('chaos', seed, 'start', daemon.name));
      await daemon.started();
    }

    // An older transfer is partly history; times of the upstream are whole seconds.
    const watchedFromMs = Math.ceil(Date.now() / 1_000) * 1_000;
    writeLine(`disturbing two daemons for ${seconds} s (seed ${seed})`);
    await sandbox.setPace(6);
    const disruptions = await doMischief({ daemons, redis, mailServer, receivers }, { seed, seconds });
    await sandbox.setPace(0);
    writeLine('everything works again; draining');
    await eventually('all transfers have ended', async () => (await sandbox.living()) === 0, DRAIN_MS);
    const made = await sandbox.transitions();
    const isWatched = watchedOf(subjects, made, watchedFromMs);
    const transitions = made.filter(({ subject }) => isWatched(subject));
    const watched = new Set(transitions.map(({ subject }) => subject));
    const last = new Map(transitions.map(({ subject, to }) => [subject, to]));
    const events = await drained(redis.url, {
      last,
      receivers: [...receivers.map(({ name }) => name), MAIL_RECEIVER],
    });
    for (const daemon of daemons) await daemon.terminate();

    const ofDaemons = disruptions.filter(
      ({ victim }) => victim === 'redis' || daemons.some(({ name }) => name === victim),
    );
    const showings = await sandbox.showings();
    const reporting = reckonReporting({
      subjects: watched,
      showings,
      events,
      disruptions: ofDaemons,
      slackMs: slackOf({
        entries: await wholeLog(redis.url),
        showings,
        outages: ofDaemons.map(({ fromMs, toMs }) => ({ fromMs, untilMs: toMs })),
      }),
    });
    /** A disruption of one receiver is no reason for another to get anything twice. */
    const concerns = (victim: string, receiver: string): boolean =>
      victim === 'mail server'
        ? receiver === MAIL_RECEIVER
        : victim === receiver || !receivers.some(({ name }) => name === victim);
    const deliveries = [
      ...receivers.map(({ name, arrivals }) => ({
        receiver: name,
        arrivals,
        ordered: name === 'in-order',
        wants: () => true,
      })),
      {
        receiver: MAIL_RECEIVER,
        arrivals: mailServer.arrivals,
        ordered: false,
        wants: ({ type }: Event) => wantsType(MAIL_EVENTS, type),
      },
    ].map((receipts) =>
      reckonDelivery(
        receipts,
        events,
        disruptions.filter(
          (disruption) => !isStall(disruption) && concerns(disruption.victim, receipts.receiver),
        ),
      ),
    );
    const problems = [
      ...reporting.lost.map((what) => `lost: ${what}`),
      ...reporting.invented.map((what) => `invented: ${what}`),
      ...deliveries.flatMap(problemsOf),
      ...receivers.flatMap(({ name, forged }) =>
        forged.map((id) => `${name}: the signature of ${id} is wrong`),
      ),
      ...daemons.flatMap((daemon) => daemon.problems),
    ];
    print({
      transitions: transitions.length,
      events: events.length,
      reporting,
      deliveries,
      disruptions,
      daemons,
    });
    for (const problem of problems.slice(0, 50)) writeLine(`  ${problem}`);
    const lost = reporting.lost.length + sum(deliveries.map((delivery) => delivery.lost.length));
    const invented = reporting.invented.length + sum(deliveries.map((delivery) => delivery.invented.length));
    writeLine(`lost ${lost}, invented ${invented}${problems.length === 0 ? ': it all adds up.' : ''}`);
    if (problems.length > 0) process.exitCode = 1;
  } finally {
    await closeAll();
  }
}

function configOf(deps: {
  sandbox: SandboxProcess;
  redis: RedisProcess;
  receivers: readonly MoodyReceiver[];
  mailServer: MailServer;
  subjects: Subjects;
}): string {
  const { sandbox, redis, receivers, mailServer, subjects } = deps;
  const names = [...receivers.map(({ name }) => name), MAIL_RECEIVER];
  return stringify({
    upstream: {
      baseUrl: sandbox.url,
      apiKey: SANDBOX_KEY,
      requestsPerSecond: 60,
      gatewayRequestsPerSecond: 20,
      timeout: '5s',
    },
    redis: { url: redis.url, prefix: PREFIX },
    server: { host: '127.0.0.1', port: 0 },
    smtp: { url: mailServer.url, from: 'Intentwatch <transfers@example.com>' },
    receivers: [
      ...receivers.map(({ name, url, secret }) => ({
        name,
        type: 'webhook',
        url,
        secrets: [secret],
        // Longer than a busy machine takes for an answer: an attempt that times out is repeated.
        timeout: '10s',
        retries: RETRIES,
        ordering: name === 'in-order' ? 'subject' : 'none',
        allowPrivateNetwork: true,
        allowInsecure: true,
      })),
      {
        name: MAIL_RECEIVER,
        type: 'email',
        to: ['oncall@example.com'],
        events: MAIL_EVENTS,
        retries: RETRIES,
      },
    ],
    subscriptions: [
      { name: 'treasury', wallets: subjects.wallets, receivers: names },
      {
        name: 'orders',
        quotes: subjects.quotes,
        gaslessJobs: subjects.gaslessJobs,
        vaults: subjects.vaults,
        receivers: names,
      },
    ],
  });
}

function print(run: {
  transitions: number;
  events: number;
  reporting: Reporting;
  deliveries: readonly Delivery[];
  disruptions: readonly Disruption[];
  daemons: readonly ChaosDaemon[];
}): void {
  const { reporting, daemons } = run;
  const row = (name: string, count: number, meaning = ''): void =>
    writeLine(`${name.padEnd(40)}${String(count).padStart(6)}  ${meaning}`.trimEnd());
  writeLine('');
  const kinds = Object.groupBy(run.disruptions, ({ victim, what }) => `${victim}: ${what}`);
  for (const [kind, list] of Object.entries(kinds).toSorted()) row(kind, list?.length ?? 0);
  row('starts with a clock off by 30 s', sum(daemons.map((daemon) => daemon.startsWithWrongClock)));
  const slowest = Math.max(0, ...daemons.flatMap((daemon) => daemon.shutdownsMs));
  row('longest shutdown, ms', Math.round(slowest));
  writeLine('');
  row('transitions made by the upstream', run.transitions);
  row('statuses shown by answers', reporting.shown);
  row('  reported', reporting.reported);
  row(
    '  cut off',
    reporting.cutOff,
    'shown only while a daemon or Redis was killed; the next event follows on',
  );
  row('  overtaken', reporting.overtaken, 'a newer answer was stored first');
  row('events', run.events);
  for (const { receiver, due, delivered, duplicates } of run.deliveries) {
    row(
      `  ${receiver}: delivered`,
      delivered,
      `of ${due}; ${duplicates} came twice, each when something was disturbed`,
    );
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

function writeLine(line: string): void {
  process.stdout.write(`${line}\n`);
}
