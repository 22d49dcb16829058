import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { stringify } from 'yaml';
import { z } from 'zod';
import { pick, randomStream } from '../../sandbox/world/random.ts';
import { serverSchema } from '../../src/config/sections/server.ts';
import { EXIT } from '../../src/exit.ts';
import { eventually } from '../support/eventually.ts';
import { Program } from '../support/program.ts';
import { RedisProcess } from '../support/redis-process.ts';
import { SANDBOX_KEY } from '../support/sandbox-process.ts';
import { slackOf } from '../support/slow-machine.ts';
import { HeapGauge, type HeapSample, heapProblems, INSPECTED } from './heap-trend.ts';
import { exactProblems } from './hostile-account.ts';
import { type Sent, sendHostile } from './hostile-client.ts';
import { HOSTILE_WALLET } from './hostile-transfers.ts';
import { HostileUpstream } from './hostile-upstream.ts';
import { type Mood, MoodyReceiver } from './receiver.ts';
import { reckonDelivery, reckonReporting } from './reckoning.ts';
import {
  DRAIN_MS,
  drained,
  PREFIX,
  problemsOf,
  RETRIES,
  startSandbox,
  watchedOf,
  wholeLog,
} from './world.ts';

const ROOT = join(import.meta.dirname, '../..');
const MAIN = join(ROOT, 'src/main.ts');

const PROBE_EVERY_MS = 500;
/** Longer than a busy machine delays a process. */
const PROBE_TIMEOUT_MS = 20_000;
const HEAP_EVERY_MS = 2_000;
const MOOD_MS = 3_000;
const MOODS: readonly Mood[] = ['well', 'well', 'hanging', 'resetting', 'overloaded'];

const TOKENS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.keys(serverSchema.shape.tokens.unwrap().shape).map((kind) => [
    kind,
    `hostile-${kind}-0123456789abcdef0123`,
  ]),
);

const OPENAPI = z.looseObject({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) });

type Watched = { healthProblems: string[]; heap: HeapSample[] };

/**
 * Sends hostile requests and hostile answers to one daemon, then compares the upstream's statuses with the event log and the log
 * with the receiver. Returns true when nothing was lost, repeated or delayed, and memory stayed flat.
 */
export async function hostile(options: {
  seconds: number;
  seed: number;
  writeLine: (line: string) => void;
}): Promise<boolean> {
  const { seconds, seed, writeLine } = options;
  const closers: (() => Promise<unknown>)[] = [];
  const closeAll = async (): Promise<void> => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  for (const name of ['SIGINT', 'SIGTERM']) {
    process.once(name, () => void closeAll().finally(() => process.exit(EXIT.interrupted)));
  }
  try {
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-hostile-'));
    closers.push(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
    const sandbox = await startSandbox(seed, closers);
    const upstream = new HostileUpstream(sandbox.url, randomStream('hostile', seed, 'upstream'));
    await upstream.start();
    closers.push(() => upstream.close());
    const redis = await RedisProcess.create();
    closers.push(() => redis.close());
    const receiver = new MoodyReceiver('backend');
    await receiver.start();
    closers.push(() => receiver.close());
    const subjects = await sandbox.subjects();
    const configFile = join(folder, 'intentwatch.yaml');
    await writeFile(
      configFile,
      stringify({
        upstream: { baseUrl: upstream.url, apiKey: SANDBOX_KEY, requestsPerSecond: 60 },
        redis: { url: redis.url, prefix: PREFIX },
        server: { host: '127.0.0.1', port: 0, tokens: TOKENS },
        receivers: [
          {
            name: receiver.name,
            type: 'webhook',
            url: receiver.url,
            secrets: [receiver.secret],
            // Longer than a busy machine takes for an answer: an attempt that times out is repeated.
            timeout: '10s',
            retries: RETRIES,
            allowPrivateNetwork: true,
            allowInsecure: true,
          },
        ],
        subscriptions: [
          { name: 'treasury', wallets: [...subjects.wallets, HOSTILE_WALLET], receivers: [receiver.name] },
        ],
      }),
    );
    const daemon = await Program.run([process.execPath, INSPECTED, MAIN, 'start', '--config', configFile]);
    closers.push(() => daemon.end('SIGKILL'));
    const [, url = ''] = await daemon.line(/"url":"(http[^"]+)".*"msg":"server.listening"/);
    await daemon.line(/"msg":"daemon.started"/);
    const gauge = await HeapGauge.of(daemon, url);

    const openapi = OPENAPI.parse(JSON.parse(await readFile(join(ROOT, 'docs/openapi.json'), 'utf8')));
    const operations = Object.entries(openapi.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => ({ method, path })),
    );
    const watchedFromMs = Math.ceil(Date.now() / 1_000) * 1_000;
    writeLine(`hostile requests and answers for ${seconds} s (seed ${seed})`);
    upstream.isHostile = true;
    await sandbox.setPace(3);
    const untilMs = Date.now() + 1_000 * seconds;
    const watched: Watched = { healthProblems: [], heap: [] };
    const sent: Sent = { requests: 0, answers: new Map() };
    await Promise.all([
      sendHostile({
        sent,
        url,
        operations,
        credentials: [
          ...Object.values(TOKENS).map((token) => `authorization: Bearer ${token}`),
          `cookie: ${await signIn(url)}`,
        ],
        random: randomStream('hostile', seed, 'client'),
        untilMs,
      }),
      watch({ url, gauge, sent, untilMs, watched }),
      changeMoods({ receiver, seed, untilMs }),
    ]);
    upstream.isHostile = false;
    receiver.mood = 'well';
    await sandbox.setPace(0);
    writeLine('everything is friendly again; draining');
    const haveEnded = async (): Promise<boolean> =>
      (await sandbox.living()) === 0 && upstream.transfers.waiting.length === 0;
    await eventually('all transfers have ended', haveEnded, DRAIN_MS).catch((error: unknown) =>
      writeLine(String(error)),
    );
    const made = await sandbox.transitions();
    const isWatched = watchedOf(
      { ...subjects, quotes: [], gaslessJobs: [], vaults: [] },
      made,
      watchedFromMs,
    );
    const transitions = made.filter(({ subject }) => isWatched(subject));
    const { shown } = upstream.transfers;
    const events = await drained(redis.url, {
      last: new Map([
        ...transitions.map(({ subject, to }) => [subject, to] as const),
        ...[...shown].map(([subject, statuses]) => [subject, statuses.at(-1) ?? ''] as const),
      ]),
      receivers: [receiver.name],
    });
    // A process that is inspected waits for its inspector before it ends.
    gauge.close();
    const { code, signal } = await daemon.end('SIGTERM');
    const showings = await sandbox.showings();
    const reporting = reckonReporting({
      subjects: new Set(transitions.map(({ subject }) => subject)),
      showings,
      events,
      disruptions: [],
      slackMs: slackOf({ entries: await wholeLog(redis.url), showings }),
    });
    const delivery = reckonDelivery(
      { receiver: receiver.name, arrivals: receiver.arrivals, ordered: false, wants: () => true },
      events,
      // The receiver accepts only what it answers: it may get nothing twice.
      [],
    );
    const heap = heapProblems(watched.heap);
    const problems = [
      ...reporting.lost.map((what) => `lost: ${what}`),
      ...reporting.invented.map((what) => `invented: ${what}`),
      ...problemsOf(delivery),
      ...receiver.forged.map((id) => `the signature of ${id} is wrong`),
      ...watched.healthProblems,
      ...exactProblems(shown, { events, arrivals: receiver.arrivals }),
      ...upstream.transfers.waiting.map((what) => `not polled to its end: ${what}`),
      ...heap.problems,
      ...(code === 0 ? [] : [`the daemon ended with ${code ?? signal} after SIGTERM`]),
    ];
    writeLine(
      `requests ${sent.requests}: ${[...sent.answers].map(([status, n]) => `${status} ${n}`).join(', ')}`,
    );
    writeLine(`hostile answers: ${[...upstream.sent].map(([name, n]) => `${name} ${n}`).join(', ')}`);
    writeLine(
      `statuses shown ${reporting.shown}, reported ${reporting.reported}, overtaken ${reporting.overtaken}`,
    );
    writeLine(`statuses of hostile records ${[...shown.values()].flat().length} of ${shown.size} transfers`);
    writeLine(heap.summary);
    writeLine(`events ${events.length}, delivered ${delivery.delivered} of ${delivery.due}`);
    for (const problem of problems.slice(0, 50)) writeLine(`  ${problem}`);
    writeLine(problems.length === 0 ? 'it all adds up' : `${problems.length} problems`);
    return problems.length === 0;
  } finally {
    await closeAll();
  }
}

async function signIn(url: string): Promise<string> {
  const answer = await fetch(`${url}/console/session`, {
    method: 'POST',
    headers: { origin: url, 'content-type': 'application/json' },
    body: JSON.stringify({ token: TOKENS.admin }),
  });
  const [cookie = ''] = (answer.headers.get('set-cookie') ?? '').split(';');
  if (!answer.ok || cookie === '') throw new Error(`the console answered ${answer.status} to a sign-in`);
  return cookie;
}

/** Probes health, and reads the heap of the daemon, until the end of the hostile time. */
async function watch(options: {
  url: string;
  gauge: HeapGauge;
  sent: Sent;
  untilMs: number;
  watched: Watched;
}): Promise<void> {
  const { url, gauge, untilMs, watched, sent } = options;
  let heapAtMs = 0;
  while (Date.now() < untilMs) {
    try {
      const answer = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
      await answer.text();
      if (answer.status !== 200) watched.healthProblems.push(`health answered ${answer.status}`);
    } catch (error) {
      watched.healthProblems.push(`health did not answer: ${String(error)}`);
    }
    if (Date.now() >= heapAtMs) {
      heapAtMs = Date.now() + HEAP_EVERY_MS;
      watched.heap.push(await gauge.read(sent.requests));
    }
    await wait(PROBE_EVERY_MS);
  }
}

async function changeMoods(options: {
  receiver: MoodyReceiver;
  seed: number;
  untilMs: number;
}): Promise<void> {
  const { receiver, seed, untilMs } = options;
  const random = randomStream('hostile', seed, 'receiver');
  while (Date.now() < untilMs) {
    receiver.mood = pick(random, MOODS);
    await wait(MOOD_MS);
  }
}
