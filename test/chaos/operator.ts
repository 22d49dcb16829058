import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Command } from 'commander';
import { EXIT } from '../../src/exit.ts';
import { between, chance, pick, type Random, randomStream } from '../../src/sandbox/world/random.ts';
import { eventually } from '../support/eventually.ts';
import { PARTS } from '../support/optional-parts.ts';
import { freePort } from '../support/port.ts';
import { Program } from '../support/program.ts';
import { RedisProcess } from '../support/redis-process.ts';
import { SANDBOX_KEY, type SandboxProcess } from '../support/sandbox-process.ts';
import { slackOf } from '../support/slow-machine.ts';
import { ChaosDaemon } from './daemon.ts';
import { keepEvidence } from './evidence.ts';
import { accountOperator, type OperatorAccount, type Span } from './operator-account.ts';
import { OperatorConfig } from './operator-config.ts';
import { MoodyReceiver } from './receiver.ts';
import { DRAIN_MS, PREFIX, RETRIES, startSandbox, watchedOf, wholeLog } from './world.ts';

// An operator's life beside one daemon: wallets leave the config and come back, subscriptions are renamed, files are half
// written, the daemon is started again or killed, its clock is wrong, Redis is restored from an older copy. At the end
// every wallet is in the config again, and what receivers got is held against what the upstream showed. Exits with 0 only
// if it all adds up.

const MAIN = join(import.meta.dirname, '../../src/main.ts');

const TOKEN = 'a-token-of-the-operator';

const RECEIVERS = ['backend', 'audit'];

type Options = { acts?: number; seed: number; seeds: number; virtual?: boolean };

/** What acts are done to. */
type Stage = {
  config: OperatorConfig;
  configFile: string;
  daemon: ChaosDaemon;
  redis: RedisProcess;
  random: Random;
  /** The copy of Redis that a restore takes, and when it was made. */
  copy: { folder: string; atMs: number } | null;
  cut: Span[];
};

/** What an operator does, each with how often. */
const ACTS: Record<string, { weight: number; act: (stage: Stage) => Promise<void> }> = {
  'rename a subscription': { weight: 3, act: edit((config, random) => config.rename(random)) },
  'move a wallet': { weight: 3, act: edit((config, random) => config.move(random)) },
  'take a wallet out': { weight: 3, act: edit((config, random) => config.takeOut(random)) },
  'put all back': { weight: 2, act: edit((config, random) => config.putBack(random)) },
  'half-write the file': { weight: 1, act: halfWrite },
  'truncate the file by a slip': { weight: 2, act: truncate },
  'start again': { weight: 2, act: (stage) => startAgain(stage, () => stage.daemon.terminate()) },
  'kill -9': { weight: 2, act: (stage) => startAgain(stage, () => stage.daemon.kill()) },
  'copy Redis': { weight: 1, act: copyRedis },
  'restore Redis': { weight: 1, act: restoreRedis },
};

await new Command('operator')
  .description('Live an operator’s life beside a daemon and account for every status.')
  .option('--acts <number>', 'how many acts (25; 60 in virtual time)', Number)
  .option('--seed <number>', 'decides what the operator does', Number, 1)
  .option('--virtual', 'in virtual time, on the parts of the daemon and a real Redis')
  .option('--seeds <number>', 'how many lives in virtual time, from `--seed` on', Number, 1)
  .action(async ({ acts, seed, seeds, virtual }: Options) => {
    if (virtual === true) await liveInVirtualTime({ first: seed, seeds, acts: acts ?? 60 });
    else if (!(await live({ acts: acts ?? 25, seed }))) process.exitCode = 1;
  })
  .parseAsync();

async function liveInVirtualTime(lives: { first: number; seeds: number; acts: number }): Promise<void> {
  // Its clock is that of the whole process.
  const { liveMany, liveVirtually } = await import('../virtual/run.ts');
  const { first, seeds, acts } = lives;
  const addsUp = seeds === 1 ? await liveVirtually(first, acts, say) : await liveMany(lives, say);
  // Processes that were killed in it have left something open.
  process.exit(addsUp ? EXIT.done : EXIT.failed);
}

async function live({ acts, seed }: { acts: number; seed: number }): Promise<boolean> {
  const closers: (() => Promise<unknown>)[] = [];
  const closeAll = async (): Promise<void> => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => void closeAll().finally(() => process.exit(EXIT.interrupted)));
  }
  try {
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-operator-'));
    closers.push(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
    const sandbox = await startSandbox(seed, closers);
    const redis = await RedisProcess.create();
    closers.push(() => redis.close());
    const receivers = RECEIVERS.map((name) => new MoodyReceiver(name));
    for (const receiver of receivers) {
      await receiver.start();
      closers.push(() => receiver.close());
    }
    const { wallets } = await sandbox.subjects();
    const port = await freePort();
    const frame = frameOf({ sandbox, redis, receivers, dataDir: join(folder, 'data'), port });
    const config = new OperatorConfig({ frame, receivers: RECEIVERS, wallets });
    const configFile = join(folder, 'intentwatch.yaml');
    await writeFile(configFile, config.text);
    const daemon = new ChaosDaemon({ name: 'daemon', configFile, bender: PARTS.faketime.place });
    closers.push(() => daemon.kill());
    const random = randomStream('operator', seed);
    await daemon.launch(random);
    await daemon.started();
    const watchedFromMs = Math.ceil(Date.now() / 1_000) * 1_000;
    const stage: Stage = { config, configFile, daemon, redis, random, copy: null, cut: [] };

    say(`${acts} acts (seed ${seed})`);
    await sandbox.setPace(3);
    const names = Object.entries(ACTS).flatMap(([name, { weight }]) => Array<string>(weight).fill(name));
    for (let done = 0; done < acts; done += 1) {
      await wait(between(random, 500, 4_000));
      const name = pick(random, names);
      say(`  ${name}`);
      await ACTS[name]?.act(stage);
    }
    config.putBack(random);
    await write(stage, config.text);
    await sandbox.setPace(0);
    say('everything is in the config again; draining');
    await eventually('all transfers have ended', async () => (await sandbox.living()) === 0, DRAIN_MS);
    const transitions = await sandbox.transitions();
    const isWatched = watchedOf(await sandbox.subjects(), transitions, watchedFromMs);
    const births = transitions.filter(({ subject }) => subject.startsWith('intent:') && isWatched(subject));
    const last = new Map(births.map(({ subject, to }) => [subject, to]));
    const isTold = ({ taken }: MoodyReceiver): boolean => {
      const told = new Set(taken.map(({ event: { data } }) => `${data.subject.id} ${data.status}`));
      return [...last].every(([subject, status]) => told.has(`${subject} ${status}`));
    };
    // What was not told by then is lost, and the account names it.
    await eventually('the end of each was told', async () => receivers.every(isTold), DRAIN_MS).catch(
      (error: unknown) => say(String(error)),
    );
    await daemon.terminate();

    const [showings, entries] = [await sandbox.showings(), await wholeLog(redis.url)];
    const outages = stage.cut.map(({ fromMs, toMs }) => ({ fromMs, untilMs: toMs }));
    const account = accountOperator({
      subjects: new Set(last.keys()),
      showings,
      taken: Object.fromEntries(receivers.map(({ name, taken }) => [name, taken])),
      cut: stage.cut,
      slackMs: slackOf({ entries, showings, outages }),
    });
    account.problems.push(...daemon.problems);
    report(account);
    if (account.problems.length === 0) return true;
    const evidence = await keepEvidence(seed, {
      problems: account.problems.map((problem) => ({ problem })),
      taken: receivers.flatMap(({ name, taken }) => taken.map((one) => ({ name, ...one }))),
      ...{ showings, transitions, cut: stage.cut, log: daemon.said },
    });
    say(`what was seen: ${evidence}`);
    return false;
  } finally {
    await closeAll();
  }
}

/** An edit of the file that is applied when the daemon comes upon it. */
function edit(change: (config: OperatorConfig, random: Random) => void): (stage: Stage) => Promise<void> {
  return async (stage) => {
    change(stage.config, stage.random);
    await write(stage, stage.config.text);
  };
}

/** Puts a file into the place of the config as an editor does. */
async function write({ configFile }: Stage, text: string): Promise<void> {
  const beside = `${configFile}.new`;
  await writeFile(beside, text);
  await rename(beside, configFile);
}

/** Leaves half of the file there for some seconds. */
async function halfWrite(stage: Stage): Promise<void> {
  const { config, configFile, random } = stage;
  await writeFile(configFile, config.text.slice(0, config.text.length / 2));
  await wait(between(random, 500, 5_000));
  await write(stage, config.text);
}

/** Leaves a file there for some seconds that has nearly all wallets gone: it is held, and sometimes confirmed. */
async function truncate(stage: Stage): Promise<void> {
  const { config, configFile, random } = stage;
  await write(stage, config.truncated);
  await wait(between(random, 2_000, 8_000));
  if (chance(random, 0.5)) {
    const reload = (...args: string[]) =>
      Program.start(MAIN, ['reload', '--config', configFile, ...args], { INTENTWATCH_TOKEN: TOKEN });
    const held = await reload();
    const { code } = await held.ending();
    const digest = /--confirm ([0-9a-f]{32})/.exec(held.said())?.[1];
    // What was confirmed within the day, or removes little by now, is applied already.
    if (code !== 0 && digest === undefined) throw new Error(held.said());
    const confirmed = digest === undefined ? held : await reload('--confirm', digest);
    if ((await confirmed.ending()).code !== 0) throw new Error(confirmed.said());
    await wait(between(random, 1_000, 6_000));
  }
  await write(stage, config.text);
}

async function startAgain({ daemon, random, cut }: Stage, end: () => Promise<void>): Promise<void> {
  const fromMs = Date.now();
  await end();
  if (chance(random, 0.5)) await wait(between(random, 0, 3_000));
  await daemon.launch(random);
  await daemon.started();
  cut.push({ fromMs, toMs: Date.now() });
}

async function copyRedis(stage: Stage): Promise<void> {
  const atMs = Date.now();
  stage.copy = { folder: await stage.redis.backUp(), atMs };
}

/** What was found between the copy and its return may be lost, where it was not delivered yet. */
async function restoreRedis(stage: Stage): Promise<void> {
  if (stage.copy === null) return copyRedis(stage);
  await stage.redis.restore(stage.copy.folder);
  stage.cut.push({ fromMs: stage.copy.atMs, toMs: Date.now() });
}

function frameOf(parts: {
  sandbox: SandboxProcess;
  redis: RedisProcess;
  receivers: readonly MoodyReceiver[];
  dataDir: string;
  port: number;
}): Record<string, unknown> {
  const { sandbox, redis, receivers, dataDir, port } = parts;
  return {
    upstream: { baseUrl: sandbox.url, apiKey: SANDBOX_KEY, requestsPerSecond: 60, timeout: '5s' },
    redis: { url: redis.url, prefix: PREFIX },
    dataDir,
    server: { host: '127.0.0.1', port, token: TOKEN },
    receivers: receivers.map(({ name, url, secret }) => ({
      name,
      type: 'webhook',
      url,
      secrets: [secret],
      timeout: '10s',
      retries: RETRIES,
      allowPrivateNetwork: true,
      allowInsecure: true,
    })),
  };
}

function report({ shown, told, excused, events, problems }: OperatorAccount): void {
  for (const problem of problems.slice(0, 30)) say(`  ${problem}`);
  const sum = problems.length === 0 ? 'it all adds up.' : `${problems.length} problems`;
  say(`${shown} statuses shown, ${told} told, ${excused} excused, ${events} events: ${sum}`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
