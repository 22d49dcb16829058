import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { SANDBOX_KEY } from '../test/support/sandbox-process.ts';
import { FixedIntervalScript, SCRIPT_AGENT } from './detection/fixed-interval.ts';
import { SeenTransfers, sumUp } from './detection/seen.ts';
import { printTargets, type Target } from './detection/targets.ts';
import { World } from './detection/world.ts';

const OPTIONS = {
  part: { type: 'string', default: 'start,quiet,many' },
  seed: { type: 'string', default: '1' },
} as const;

const PARTS: { readonly [part: string]: (seed: number) => Promise<Target[]> } = { start, quiet, many };

/**
 * Compares the daemon's detection with a script at the same rate, from its start on. The daemon runs as for users: as a
 * process, with the default config, in real time. Its parts: `start` (a busy start beside the script), `quiet` (new transfers
 * among quiet wallets, beside the script), `many` (10,000 subjects named at once).
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const targets: Target[] = [];
  for (const name of values.part.split(',')) {
    const part = PARTS[name];
    if (part === undefined) {
      console.error(`--part: found "${name}", expected ${Object.keys(PARTS).join(', ')}`);
      return 1;
    }
    targets.push(...(await part(Number(values.seed))));
  }
  console.log('');
  return printTargets(targets) ? 0 : 1;
}

async function inWorld<T>(
  options: Parameters<typeof World.create>[0],
  use: (world: World) => Promise<T>,
): Promise<T> {
  const world = await World.create(options);
  try {
    return await use(world);
  } finally {
    await world.close();
  }
}

async function changesIn(
  world: World,
  kind: 'births' | 'fills',
  span: { fromMs: number; toMs: number },
): Promise<{ subject: string; at: number }[]> {
  const transitions = await world.sandbox.transitions();
  return transitions.filter(
    ({ subject, from, to, at }) =>
      subject.startsWith('intent:') &&
      (kind === 'births' ? from === null : to === 'filled') &&
      at >= span.fromMs &&
      at < span.toMs,
  );
}

const START = { wallets: 40, skew: 1.1, requestsPerSecond: 5, transfersPerSecond: 0.6, seconds: 150 };

/** A busy start: daemon and script begin at once, with the same budget each, at the same sandbox. */
async function start(seed: number): Promise<Target[]> {
  const { wallets, skew, requestsPerSecond, transfersPerSecond, seconds } = START;
  return inWorld({ wallets, skew, seed }, async (world) => {
    const script = new SeenTransfers();
    const rival = rivalOf(world, requestsPerSecond, script);
    await world.daemon({ requestsPerSecond });
    const fromMs = Date.now();
    rival.start();
    await world.sandbox.setPace(transfersPerSecond);
    await wait(1_000 * seconds);
    const toMs = Date.now();
    await rival.close();
    const rates = await ratesOf(world, { fromMs, toMs });
    const lines = [];
    const targets: Target[] = [];
    for (const kind of ['fills', 'births'] as const) {
      const changes = await changesIn(world, kind, { fromMs, toMs });
      const [ours, theirs] = [world.reported, script].map((seen) => sumUp(seen.delays(kind, changes, toMs)));
      if (ours === undefined || theirs === undefined) throw new Error('nobody saw anything');
      lines.push(
        `${changes.length} ${kind}: after ${ours.mean.toFixed(2)} s, the script after ${theirs.mean.toFixed(2)} s`,
      );
      const ratio = ours.mean / theirs.mean;
      if (kind === 'fills')
        targets.push({ what: "start: mean delay of fills over the script's", found: ratio, most: 0.5 });
    }
    console.log(
      `start: ${wallets} wallets by Zipf ${skew}, ${transfersPerSecond} transfers/s, ${requestsPerSecond} requests/s, the first ${seconds} s`,
    );
    for (const line of lines) console.log(`  ${line}`);
    console.log(`  requests/s: ${rates.daemon.toFixed(2)}, the script ${rates.script.toFixed(2)}`);
    return targets;
  });
}

function rivalOf(world: World, requestsPerSecond: number, script: SeenTransfers): FixedIntervalScript {
  return new FixedIntervalScript(
    { baseUrl: world.sandbox.url, apiKey: SANDBOX_KEY, wallets: world.wallets, requestsPerSecond },
    (id, status) => script.note(id, status, Date.now()),
  );
}

async function ratesOf(
  world: World,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<{ daemon: number; script: number }> {
  const during = (await world.sandbox.requests()).filter(({ at }) => at >= fromMs && at < toMs);
  const script = during.filter(({ agent }) => agent === SCRIPT_AGENT).length;
  const seconds = (toMs - fromMs) / 1_000;
  return { daemon: (during.length - script) / seconds, script: script / seconds };
}

const QUIET = {
  wallets: 20,
  requestsPerSecond: 10,
  transfersPerSecond: 0.15,
  seconds: 100,
  afterSeconds: 12,
  load: { transfersPerSecond: 4, seconds: 40, goneSeconds: 15 },
};

const MOST_QUIET = { mean: { most: 1.2, goal: 1.1 }, longest: { most: 2.5, goal: 2 } };

/** New transfers among quiet wallets: soon after the start, and again soon after a load has gone. */
async function quiet(seed: number): Promise<Target[]> {
  const { wallets, requestsPerSecond, transfersPerSecond, seconds, afterSeconds, load } = QUIET;
  return inWorld({ wallets, skew: 0, seed }, async (world) => {
    console.log(`quiet: ${wallets} wallets, ${requestsPerSecond} requests/s`);
    const targets: Target[] = [];
    const measure = async (when: string): Promise<void> => {
      const script = new SeenTransfers();
      const rival = rivalOf(world, requestsPerSecond, script);
      const fromMs = Date.now();
      rival.start();
      await world.sandbox.setPace(transfersPerSecond);
      await wait(1_000 * seconds);
      await world.sandbox.setPace(0);
      const toMs = Date.now();
      await wait(8_000);
      await rival.close();
      const births = await changesIn(world, 'births', { fromMs, toMs });
      const untilMs = Date.now();
      const { mean, longest } = sumUp(world.reported.delays('births', births, untilMs));
      const theirs = sumUp(script.delays('births', births, untilMs));
      console.log(
        `  ${when}: ${births.length} new transfers, after ${mean.toFixed(2)} s, at most ${longest.toFixed(2)} s`,
      );
      targets.push(
        {
          what: `quiet, ${when}: mean delay of new transfers, s`,
          found: mean,
          ...MOST_QUIET.mean,
          baseline: theirs.mean,
        },
        {
          what: `quiet, ${when}: longest delay of new transfers, s`,
          found: longest,
          ...MOST_QUIET.longest,
          baseline: theirs.longest,
        },
      );
    };
    await world.daemon({ requestsPerSecond });
    await wait(1_000 * afterSeconds);
    await measure(`${afterSeconds} s after the start`);
    await world.sandbox.setPace(load.transfersPerSecond);
    await wait(1_000 * load.seconds);
    await world.sandbox.setPace(0);
    await wait(1_000 * load.goneSeconds);
    await measure(`${load.goneSeconds} s after a load`);
    return targets;
  });
}

const MANY = { wallets: 20, requestsPerSecond: 5, subjects: 10_000, beforeSeconds: 30, seconds: 60 };

/** Many unknown subjects, named at once: measures the polls of the wallets meanwhile. */
async function many(seed: number): Promise<Target[]> {
  const { wallets, requestsPerSecond, subjects, beforeSeconds, seconds } = MANY;
  return inWorld({ wallets, skew: 0, seed }, async (world) => {
    await world.daemon({ requestsPerSecond });
    await wait(5_000);
    const beforeMs = Date.now();
    await wait(1_000 * beforeSeconds);
    const namedMs = Date.now();
    const intents = Array.from(
      { length: subjects },
      (_, index) => `0x${createHash('sha256').update(String(index)).digest('hex')}`,
    );
    await world.daemon({ requestsPerSecond, intents });
    const fromMs = Date.now();
    await wait(1_000 * seconds);
    const toMs = Date.now();
    const polls = (await world.sandbox.requests()).filter(({ query }) => query.wallet !== undefined);
    const rate = (span: { fromMs: number; toMs: number }): number =>
      polls.filter(({ at }) => at >= span.fromMs && at < span.toMs).length /
      ((span.toMs - span.fromMs) / 1_000);
    const [before, meanwhile] = [rate({ fromMs: beforeMs, toMs: namedMs }), rate({ fromMs, toMs })];
    console.log(`many: ${subjects} subjects named at once, ${requestsPerSecond} requests/s`);
    console.log(
      `  ${wallets} wallets were polled ${before.toFixed(2)} times a second, and meanwhile ${meanwhile.toFixed(2)}`,
    );
    return [{ what: 'many: polls of the others, of those before', found: meanwhile / before, least: 0.5 }];
  });
}
