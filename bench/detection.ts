import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { DemoReceiver } from '../src/demo/receiver.ts';
import { configYaml, testPrefix } from '../test/support/daemon.ts';
import { Program } from '../test/support/program.ts';
import { RedisProcess } from '../test/support/redis-process.ts';
import { SANDBOX_KEY, SandboxProcess } from '../test/support/sandbox-process.ts';
import { type Summary, summarize } from './cadence/delays.ts';
import { busiestSecond } from './detection/busiest-second.ts';
import { FixedIntervalScript, SCRIPT_AGENT } from './detection/fixed-interval.ts';
import { SeenFills } from './detection/seen.ts';
import { pollingAt } from './scaled-polling.ts';

const MAIN = join(import.meta.dirname, '../src/main.ts');
const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;

/** A second of the bench is so many of the design's workload. */
const TIME_SCALE = 20;
const WALLET_SKEW = 1.1;
const MOST_RATIO = 0.4;
const DAEMONS = 3;

const OPTIONS = {
  wallets: { type: 'string', default: '200' },
  'requests-per-second': { type: 'string', default: String(5 * TIME_SCALE) },
  'transfers-per-second': { type: 'string', default: String(0.5 * TIME_SCALE) },
  'warm-up': { type: 'string', default: '120' },
  seconds: { type: 'string', default: '120' },
  seed: { type: 'string', default: '1' },
} as const;
const NUMBER = z.coerce.number().positive();

/** What is still looked for when the measured time is over, and how long the budget of three is counted. Seconds. */
const TAIL_SECONDS = 8;
const TOGETHER_SECONDS = 15;

type Size = {
  wallets: number;
  requestsPerSecond: number;
  transfersPerSecond: number;
  warmUpSeconds: number;
  seconds: number;
  seed: number;
};

/** What ran: when it was counted (Unix ms), and what was found. */
type Found = {
  fills: { subject: string; at: number }[];
  untilMs: number;
  told: SeenFills;
  arrived: SeenFills;
  script: SeenFills;
  rates: { daemon: number; script: number };
  busiest: { alone: number; together: number };
};

/**
 * Does the daemon know sooner than a script that asks as often? Both watch the same wallets of one sandbox at one budget:
 * the design's workload (200 wallets by Zipf 1.1, 0.5 transfers/s, 5 requests/s), 20 times as fast. What the daemon learns
 * it learns in the warm-up; prices are steered each real second, whatever the time scale. Then two more daemons join, and what the sandbox was asked
 * in any one second is held against the budget.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const size: Size = {
    wallets: NUMBER.parse(values.wallets),
    requestsPerSecond: NUMBER.parse(values['requests-per-second']),
    transfersPerSecond: NUMBER.parse(values['transfers-per-second']),
    warmUpSeconds: NUMBER.parse(values['warm-up']),
    seconds: NUMBER.parse(values.seconds),
    seed: NUMBER.parse(values.seed),
  };
  const closers: (() => Promise<unknown>)[] = [];
  try {
    return report(await measure(size, (close) => void closers.push(close)), size);
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

async function measure(size: Size, later: (close: () => Promise<unknown>) => void): Promise<Found> {
  const started = async (args: readonly string[]): Promise<Program> => {
    const program = await Program.start(MAIN, args);
    later(() => program.end('SIGKILL'));
    return program;
  };
  const redis = await RedisProcess.create();
  later(() => redis.close());
  const sandbox = await SandboxProcess.of(
    await started([
      'sandbox',
      ...['--port=0', '--control-port=0', '--transfers-per-second=0', `--time-scale=${TIME_SCALE}`],
      ...[`--wallets=${size.wallets}`, `--wallet-skew=${WALLET_SKEW}`, `--seed=${size.seed}`],
    ]),
  );
  const { wallets } = await sandbox.subjects();
  const [told, arrived, script] = [new SeenFills(), new SeenFills(), new SeenFills()];
  const receiver = new DemoReceiver({
    secret: SECRET,
    onWebhook: ({ event: { timestamp, data } }) => {
      told.note(data.subject.id, data.status ?? '', Date.parse(timestamp));
      arrived.note(data.subject.id, data.status ?? '', Date.now());
    },
  });
  await receiver.start();
  later(() => receiver.close());
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-bench-'));
  later(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'intentwatch.yaml');
  await writeFile(file, config({ baseUrl: sandbox.url, redisUrl: redis.url, receiver, wallets, size }));
  const daemon = async (): Promise<void> => {
    await (await started(['start', '--config', file])).line(/"msg":"daemon.started"/);
  };
  const rival = new FixedIntervalScript(
    { baseUrl: sandbox.url, apiKey: SANDBOX_KEY, wallets, requestsPerSecond: size.requestsPerSecond },
    (id, status) => script.note(id, status, Date.now()),
  );

  await daemon();
  rival.start();
  await sandbox.setPace(size.transfersPerSecond);
  await wait(size.warmUpSeconds * 1_000);
  const fromMs = Date.now();
  await wait(size.seconds * 1_000);
  const toMs = Date.now();
  await wait(TAIL_SECONDS * 1_000);
  await rival.close();
  const untilMs = Date.now();
  for (let more = 1; more < DAEMONS; more++) await daemon();
  const togetherMs = Date.now();
  await wait(TOGETHER_SECONDS * 1_000);

  const requests = await sandbox.requests();
  const during = (span: { from: number; to: number }, isScript: boolean): number[] =>
    requests
      .filter(({ at, agent }) => (agent === SCRIPT_AGENT) === isScript && at >= span.from && at < span.to)
      .map(({ at }) => at);
  const measured = { from: fromMs, to: toMs };
  return {
    fills: (await sandbox.transitions()).filter(
      ({ subject, to, at }) => subject.startsWith('intent:') && to === 'filled' && at >= fromMs && at < toMs,
    ),
    untilMs,
    told,
    arrived,
    script,
    rates: {
      daemon: during(measured, false).length / size.seconds,
      script: during(measured, true).length / size.seconds,
    },
    busiest: {
      alone: busiestSecond(during({ from: 0, to: untilMs }, false)),
      together: busiestSecond(during({ from: togetherMs, to: Number.POSITIVE_INFINITY }, false)),
    },
  };
}

function config(parts: {
  baseUrl: string;
  redisUrl: string;
  receiver: DemoReceiver;
  wallets: readonly string[];
  size: Size;
}): string {
  const { baseUrl, redisUrl, receiver, wallets, size } = parts;
  const { requestsPerSecond } = size;
  return configYaml({
    baseUrl,
    redisUrl,
    prefix: testPrefix(),
    receivers: { backend: { url: receiver.url, more: { secrets: [SECRET], concurrency: 10 } } },
    subscriptions: [{ name: 'treasury', wallets, receivers: ['backend'] }],
    more: { upstream: { baseUrl, apiKey: SANDBOX_KEY, requestsPerSecond }, polling: pollingAt(TIME_SCALE) },
  });
}

function report(found: Found, size: Size): number {
  const { fills, untilMs, rates, busiest } = found;
  const { wallets, requestsPerSecond, transfersPerSecond, seconds } = size;
  console.log(
    `${wallets} wallets, ${transfersPerSecond} transfers/s, ${requestsPerSecond} requests/s, time scale ${TIME_SCALE}: ` +
      `${fills.length} fills in ${seconds} s. Seconds from a fill to when it was known:\n`,
  );
  const columns = ['mean', 'p50', 'p95', 'p99', 'requests/s', 'unseen'];
  console.log(`${''.padEnd(36)}${columns.map((name) => name.padStart(11)).join('')}`);
  const row = (name: string, seen: SeenFills, rate: number): Summary => {
    const { seconds: delays, unseen } = seen.delays(fills, untilMs);
    const summary = summarize(delays.map((delay) => ({ at: 0, delay })));
    const numbers = [summary.mean, summary.p50, summary.p95, summary.p99].map((value) => value.toFixed(3));
    const cells = [...numbers, rate.toFixed(2), String(unseen)].map((cell) => cell.padStart(11));
    console.log(`${name.padEnd(36)}${cells.join('')}`);
    return summary;
  };
  const fixed = row('fixed interval, wallet by wallet', found.script, rates.script);
  const daemon = row('Intentwatch, answer that showed it', found.told, rates.daemon);
  row('Intentwatch, webhook arrived', found.arrived, rates.daemon);
  const ratio = daemon.mean / fixed.mean;
  const checks = [
    { what: "mean over the fixed interval's", value: ratio, most: MOST_RATIO },
    { what: 'most requests in a second, 1 daemon', value: busiest.alone, most: requestsPerSecond + 1 },
    {
      what: `most requests in a second, ${DAEMONS} daemons`,
      value: busiest.together,
      most: requestsPerSecond + DAEMONS,
    },
  ];
  console.log('');
  for (const { what, value, most } of checks) {
    const shown = Number.isInteger(value) ? String(value) : value.toFixed(3);
    console.log(`${value <= most ? 'met   ' : 'MISSED'}  ${what}: ${shown}, at most ${most}`);
  }
  return checks.every(({ value, most }) => value <= most) ? 0 : 1;
}
