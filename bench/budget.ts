import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { daemonBacklog } from './backlog.ts';
import { type Command, Monitor } from './budget/monitor.ts';
import { monotonicMs, readProfile, type Span } from './budget/profile.ts';
import { type DaemonBurst, daemonBurst } from './burst.ts';
import { COUNT } from './deliveries/sides.ts';
import { type Cpu, Stage, subjectOf } from './deliveries/stage.ts';
import { median, printTargets, type Target } from './detection/targets.ts';

const OPTIONS = {
  seconds: { type: 'string', default: '30' },
  wallets: { type: 'string', default: '40' },
  budget: { type: 'string', default: '40' },
  rate: { type: 'string', default: '10' },
  past: { type: 'string', default: '50' },
  events: { type: 'string', default: '20000' },
} as const;

/** Rounds over all wallets before polls are measured. */
const FIRST_POLLS = 6;
const WARM_SECONDS = 4;

/** Requests a second beside a burst, as in the benchmark of it. */
const BURST_BUDGET = 80;

/** Smallest share of changes, or number for each of them, from which a command counts as a step of a change. */
const LEAST_SHARE = 0.4;

/** Time in which what follows a delivery is over. */
const ENDED_MS = 10;

type Size = { seconds: number; wallets: number; budget: number; rate: number; past: number };

/** Counts of a span of time: polls, deliveries, CPU in ms and commands of Redis. */
type Counts = Cpu & { polls: number; changes: number; commands: number };

/** A quiet span, in which no poll found a change, and a busy one. */
type Phases<T> = { quiet: T; busy: T };

/** Calls of each command of a client, or script, and commands inside of it. */
type Calls = Map<string, { calls: number; inside: number }>;

/**
 * Measures the budget of one unchanged poll of a page of 50 transfers, and of one change on such a page beyond it: CPU by the
 * steps of `docs/architecture.md`, commands of Redis by script, and the order and the times of the steps from the upstream's
 * answer to the receiver. Then the CPU of one event of a burst and of a backlog. CPU and commands are those of a daemon that
 * nothing observes; a second one, under a profiler and `MONITOR`, only divides them.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const size: Size = {
    seconds: COUNT.parse(values.seconds),
    wallets: COUNT.parse(values.wallets),
    budget: COUNT.parse(values.budget),
    rate: COUNT.parse(values.rate),
    past: COUNT.parse(values.past),
  };
  const plain = await inPhases(size, null, async (stage) => {
    const before = await countsOf(stage);
    await wait(1_000 * size.seconds);
    return differenceOf(before, await countsOf(stage));
  });
  const { observed, steps } = await withFolder(async (folder) => observe(size, folder));
  const events = COUNT.parse(values.events);
  const { wallets } = size;
  const atOnce = [
    ...(await rush('event of a burst', async (profile) =>
      daemonBurst({ events, wallets, requestsPerSecond: BURST_BUDGET, profile }),
    )),
    ...(await rush('event of a backlog', async (profile) => daemonBacklog(events, { wallets, profile }))),
  ];
  return printTargets([...targetsOf(plain, observed, steps), ...atOnce]) ? 0 : 1;
}

async function withFolder<T>(run: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-profile-'));
  try {
    return await run(folder);
  } finally {
    await rm(folder, { recursive: true, maxRetries: 5 });
  }
}

/** CPU of an event among many at once: that of a daemon that nothing observes, divided by the profile of a second one. */
async function rush(
  unit: string,
  measure: (profile: string | null) => Promise<DaemonBurst>,
): Promise<Target[]> {
  const { cpu, perSecond } = await measure(null);
  const [steps = new Map()] = await withFolder(async (folder) => {
    const { span } = await measure(folder);
    return readProfile(folder, [span]);
  });
  return [
    { what: `${unit}: total: events a second`, found: perSecond },
    { what: `${unit}: total: ms of the process`, found: cpu.processMs },
    { what: `${unit}: total: ms of Redis`, found: cpu.redisMs },
    ...cpuOf(unit, sharesOf(steps), cpu.processMs),
  ];
}

/** Runs a daemon that finds no change for a time, then some. */
async function inPhases<T>(
  { wallets, budget, rate, past }: Size,
  profile: string | null,
  measure: (stage: Stage) => Promise<T>,
): Promise<Phases<T>> {
  return Stage.use(async (stage) => {
    await stage.upstream.number(`/past?each=${past}`);
    await stage.start({ wallets, requestsPerSecond: budget, profile });
    await stage.polled(FIRST_POLLS, wallets);
    const quiet = await measure(stage);
    await stage.pace(rate);
    await wait(1_000 * WARM_SECONDS);
    const busy = await measure(stage);
    await stage.delivered(await stage.pace(0));
    return { quiet, busy };
  });
}

async function countsOf(stage: Stage): Promise<Counts> {
  const [cpu, polls, changes, commands] = await Promise.all([
    stage.cpu(),
    stage.upstream.number('/requests'),
    stage.receiver.number('/count'),
    stage.commands(),
  ]);
  return { ...cpu, polls, changes, commands };
}

function differenceOf(before: Counts, after: Counts): Counts {
  return {
    processMs: after.processMs - before.processMs,
    redisMs: after.redisMs - before.redisMs,
    polls: after.polls - before.polls,
    changes: after.changes - before.changes,
    commands: after.commands - before.commands,
  };
}

/** A span of a daemon that is observed. `delaysMs`: from the answer to the receiver; `order`: of each change. */
type Observed = Counts & { span: Span; calls: Calls; order: Step[][]; delaysMs: number[] };

/** A command between an answer and the receiver's request. */
type Step = { name: string; afterMs: number };

async function observe(
  size: Size,
  folder: string,
): Promise<{ observed: Phases<Observed>; steps: Phases<Map<string, number>> }> {
  const observed = await inPhases(size, folder, async (stage): Promise<Observed> => {
    const [before, fromMs, monitor] = [
      await countsOf(stage),
      monotonicMs(),
      await Monitor.start(stage.redisUrl),
    ];
    await wait(1_000 * size.seconds);
    monitor.close();
    const [after, toMs] = [await countsOf(stage), monotonicMs()];
    const orders = await ordersOf(stage, monitor.commands);
    return {
      ...differenceOf(before, after),
      span: { fromMs, toMs },
      calls: callsOf(monitor.commands),
      ...orders,
    };
  });
  const [quiet = new Map(), busy = new Map()] = await readProfile(folder, [
    observed.quiet.span,
    observed.busy.span,
  ]);
  return { observed, steps: { quiet, busy } };
}

function callsOf(commands: readonly Command[]): Calls {
  const calls: Calls = new Map();
  for (const { name, inside } of commands) {
    const sum = calls.get(name) ?? { calls: 0, inside: 0 };
    calls.set(name, { calls: sum.calls + 1, inside: sum.inside + inside });
  }
  return calls;
}

/** For each change that was shown and delivered while no other was under way: the first of each command in between. */
async function ordersOf(
  stage: Stage,
  commands: readonly Command[],
): Promise<{ order: Step[][]; delaysMs: number[] }> {
  const [fromMs, toMs] = [commands[0]?.atMs ?? 0, commands.at(-1)?.atMs ?? 0];
  const came = new Map((await stage.came()).map(([, atMs, subject]) => [subject, atMs]));
  const windows = [...(await stage.shown())].flatMap(([number, shownMs]) => {
    const cameMs = came.get(subjectOf(number));
    return cameMs === undefined || shownMs < fromMs || cameMs > toMs ? [] : [{ shownMs, cameMs }];
  });
  const order: Step[][] = [];
  const delaysMs: number[] = [];
  for (const window of windows) {
    const { shownMs, cameMs } = window;
    const isLone = windows.every(
      (other) => other === window || other.cameMs + ENDED_MS < shownMs || other.shownMs > cameMs,
    );
    delaysMs.push(cameMs - shownMs);
    if (!isLone) continue;
    const between = commands.filter(({ atMs }) => atMs >= shownMs && atMs <= cameMs);
    const first = new Map(between.toReversed().map(({ name, atMs }) => [name, atMs - shownMs]));
    order.push([...first].map(([name, afterMs]) => ({ name, afterMs })));
  }
  return { order, delaysMs };
}

function targetsOf(
  plain: Phases<Counts>,
  observed: Phases<Observed>,
  steps: Phases<Map<string, number>>,
): Target[] {
  const { quiet, busy } = plain;
  const eachPoll = (kind: keyof Cpu | 'commands'): number => quiet[kind] / quiet.polls;
  const eachChange = (kind: keyof Cpu | 'commands'): number =>
    (busy[kind] - busy.polls * eachPoll(kind)) / busy.changes;
  return [
    { what: 'unchanged poll: total: ms of the process', found: eachPoll('processMs') },
    { what: 'unchanged poll: total: ms of Redis', found: eachPoll('redisMs') },
    { what: 'unchanged poll: total: commands of Redis', found: eachPoll('commands') },
    ...cpuOf('unchanged poll', shareOfQuiet(steps), eachPoll('processMs')),
    ...callsOfEach('unchanged poll', perPoll(observed.quiet)),
    { what: 'change: total: ms of the process', found: eachChange('processMs') },
    { what: 'change: total: ms of Redis', found: eachChange('redisMs') },
    { what: 'change: total: commands of Redis', found: eachChange('commands') },
    ...cpuOf('change', shareOfChanges(steps, observed), eachChange('processMs')),
    ...callsOfEach('change', perChange(observed)),
    ...waitsOf(observed),
  ];
}

/** Shares of the CPU of a poll by step. */
function shareOfQuiet({ quiet }: Phases<Map<string, number>>): Map<string, number> {
  return sharesOf(quiet);
}

/** Shares of the CPU of changes by step: what a step used beyond the polls of the same span. */
function shareOfChanges(
  { quiet, busy }: Phases<Map<string, number>>,
  observed: Phases<Observed>,
): Map<string, number> {
  const polls = observed.busy.polls / observed.quiet.polls;
  return sharesOf(
    new Map([...busy].map(([step, ms]) => [step, Math.max(0, ms - polls * (quiet.get(step) ?? 0))])),
  );
}

function sharesOf(steps: ReadonlyMap<string, number>): Map<string, number> {
  const total = [...steps.values()].reduce((sum, ms) => sum + ms, 0);
  return new Map([...steps].map(([step, ms]) => [step, ms / total]));
}

function cpuOf(unit: string, shares: ReadonlyMap<string, number>, totalMs: number): Target[] {
  return [...shares]
    .toSorted(([, one], [, other]) => other - one)
    .map(([step, share]) => ({ what: `${unit}: CPU: ${step}`, found: share * totalMs }));
}

type CallsEach = Map<string, { calls: number; inside: number }>;

function perPoll({ calls, polls }: Observed): CallsEach {
  return new Map(
    [...calls].map(([name, sum]) => [name, { calls: sum.calls / polls, inside: sum.inside / polls }]),
  );
}

function perChange({ quiet, busy }: Phases<Observed>): CallsEach {
  const idle = perPoll(quiet);
  return new Map(
    [...busy.calls].map(([name, sum]) => {
      const each = idle.get(name) ?? { calls: 0, inside: 0 };
      const beyond = (kind: 'calls' | 'inside'): number =>
        Math.max(0, sum[kind] - busy.polls * each[kind]) / busy.changes;
      return [name, { calls: beyond('calls'), inside: beyond('inside') }];
    }),
  );
}

function callsOfEach(unit: string, each: CallsEach): Target[] {
  return [...each]
    .toSorted(([, one], [, other]) => other.calls + other.inside - one.calls - one.inside)
    .flatMap(([name, { calls, inside }]) => [
      { what: `${unit}: calls: ${name}`, found: calls },
      { what: `${unit}: commands: ${name}`, found: calls + inside },
    ]);
}

/** Times of the steps of a change after the answer: those of commands that changes have and idle polls have not. */
function waitsOf(observed: Phases<Observed>): Target[] {
  const each = perChange(observed);
  const { order, delaysMs } = observed.busy;
  const names = [...each].filter(([, { calls }]) => calls >= LEAST_SHARE).map(([name]) => name);
  const waits = names
    .map((name) => {
      const times = order.flatMap((steps) => steps.filter((step) => step.name === name));
      return {
        name,
        share: times.length / order.length,
        afterMs: median(times.map(({ afterMs }) => afterMs)),
      };
    })
    .filter(({ share }) => share >= LEAST_SHARE)
    .toSorted((one, other) => one.afterMs - other.afterMs);
  return [
    ...waits.map(({ name, afterMs }) => ({ what: `change: ms after the answer: ${name}`, found: afterMs })),
    { what: 'change: ms after the answer: request at the receiver', found: median(delaysMs) },
  ];
}
