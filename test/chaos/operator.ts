import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Command } from 'commander';
import { between, pick, randomStream } from '../../sandbox/world/random.ts';
import { EXIT } from '../../src/exit.ts';
import { eventually } from '../support/eventually.ts';
import { PARTS } from '../support/optional-parts.ts';
import { freePort } from '../support/port.ts';
import { redisFront } from '../support/redis-front.ts';
import { RedisProcess } from '../support/redis-process.ts';
import { SANDBOX_KEY, type SandboxProcess } from '../support/sandbox-process.ts';
import { slackOf } from '../support/slow-machine.ts';
import { ChaosDaemon } from './daemon.ts';
import { storeEvidence } from './evidence.ts';
import { accountOperator, type OperatorAccount } from './operator-account.ts';
import { ACTS, applyAtLast, endSecond, type Stage, TOKEN } from './operator-acts.ts';
import { OperatorConfig } from './operator-config.ts';
import { MoodyReceiver } from './receiver.ts';
import { DRAIN_MS, PREFIX, RETRIES, startSandbox, watchedOf, wholeLog } from './world.ts';

// An operator's life beside one daemon: wallets leave the config and come back, subscriptions are renamed, files are half
// written, the daemon is restarted or killed, its clock is wrong, a second one runs with another file, Redis is restored from an
// older copy or replaced by a replica that was behind, cursors expire. At the end every wallet is in the config again, and the
// receivers' events are compared with the upstream's answers. Exits with 0 only if all of it agrees.

const RECEIVERS = ['backend', 'audit'];

type Options = { acts?: number; act?: string[]; seed: number; seeds: number; virtual?: boolean };

/** The chains whose payments may be checked from some time on: two endpoints each, on hosts of two names. */
const CHAINS = [8453, 42161, 10];

/** Transfers of the days before: wallets have further pages. */
const PAST_TRANSFERS = 1_200;

await new Command('operator')
  .description('Live an operator’s life beside a daemon and account for every status.')
  .option('--acts <number>', 'how many acts (25; 60 in virtual time)', Number)
  .option('--act <names...>', 'these acts in virtual time, in order, instead of drawn ones')
  .option('--seed <number>', 'decides what the operator does', Number, 1)
  .option('--virtual', 'in virtual time, on the parts of the daemon and a real Redis')
  .option('--seeds <number>', 'how many lives in virtual time, from `--seed` on', Number, 1)
  .action(async ({ acts, act, seed, seeds, virtual }: Options) => {
    if (virtual === true) await liveInVirtualTime({ first: seed, seeds, acts: acts ?? 60 }, act);
    else if (!(await live({ acts: acts ?? 25, seed }))) process.exitCode = 1;
  })
  .parseAsync();

async function liveInVirtualTime(
  lives: { first: number; seeds: number; acts: number },
  named: readonly string[] | undefined,
): Promise<void> {
  // Its clock is that of the whole process.
  const { liveMany, liveVirtually } = await import('../virtual/run.ts');
  const { first, seeds, acts } = lives;
  const addsUp =
    seeds === 1 ? await liveVirtually(first, named ?? acts, writeLine) : await liveMany(lives, writeLine);
  // Processes that were killed in it did not close their handles.
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
    const sandbox = await startSandbox(seed, closers, { 'past-transfers': PAST_TRANSFERS });
    const redis = await RedisProcess.create();
    const front = await redisFront(redis);
    closers.push(() => front.close());
    const receivers = RECEIVERS.map((name) => new MoodyReceiver(name));
    for (const receiver of receivers) {
      await receiver.start();
      closers.push(() => receiver.close());
    }
    const { wallets } = await sandbox.subjects();
    const port = await freePort();
    const frame = frameOf({ sandbox, redisUrl: front.url, receivers, dataDir: join(folder, 'data'), port });
    const endpoints = Object.fromEntries(CHAINS.map((id) => [id, { rpc: endpointsOf(sandbox, id) }]));
    const config = new OperatorConfig({ frame, receivers: RECEIVERS, wallets, endpoints });
    const configFile = join(folder, 'intentwatch.yaml');
    await writeFile(configFile, config.text);
    const daemon = new ChaosDaemon({ name: 'daemon', configFile, bender: PARTS.faketime.place });
    closers.push(() => daemon.kill());
    const otherFile = join(folder, 'another.yaml');
    const second = {
      daemon: new ChaosDaemon({ name: 'second', configFile: otherFile, bender: null }),
      configFile: otherFile,
      isRunning: false,
    };
    closers.push(() => second.daemon.kill());
    const random = randomStream('operator', seed);
    await daemon.launch(random);
    await daemon.started();
    const watchedFromMs = Math.ceil(Date.now() / 1_000) * 1_000;
    const deps = { config, configFile, daemon, second, sandbox, front, random };
    const stage: Stage = { ...deps, redis, copy: null, cut: [], restores: [] };
    closers.push(() => stage.redis.close());

    writeLine(`${acts} acts (seed ${seed})`);
    await sandbox.setPace(3);
    const names = Object.entries(ACTS).flatMap(([name, { weight }]) => Array<string>(weight).fill(name));
    for (let done = 0; done < acts; done += 1) {
      await wait(between(random, 300, 2_500));
      const name = pick(random, names);
      writeLine(`  ${name}`);
      await ACTS[name]?.act(stage);
    }
    await Promise.all(stage.restores);
    await endSecond(stage);
    config.putBack(random);
    await applyAtLast(stage);
    await sandbox.setFaults([]);
    await sandbox.setPace(0);
    writeLine('everything is in the config again; draining');
    await eventually('all transfers have ended', async () => (await sandbox.living()) === 0, DRAIN_MS);
    const transitions = await sandbox.transitions();
    const isWatched = watchedOf(await sandbox.subjects(), transitions, watchedFromMs);
    const births = transitions.filter(({ subject }) => subject.startsWith('intent:') && isWatched(subject));
    const last = new Map(births.map(({ subject, to }) => [subject, to]));
    const isReported = ({ received }: MoodyReceiver): boolean => {
      const reported = new Set(received.map(({ event: { data } }) => `${data.subject.id} ${data.status}`));
      return [...last].every(([subject, status]) => reported.has(`${subject} ${status}`));
    };
    // An event that was not reported by then is lost, and the account names it.
    await eventually('the end of each was reported', async () => receivers.every(isReported), DRAIN_MS).catch(
      (error: unknown) => writeLine(String(error)),
    );
    await daemon.terminate();

    const [showings, entries] = [await sandbox.showings(), await wholeLog(stage.redis.url)];
    const outages = stage.cut.map(({ fromMs, toMs }) => ({ fromMs, untilMs: toMs }));
    const account = accountOperator({
      subjects: new Set(last.keys()),
      showings,
      received: Object.fromEntries(receivers.map(({ name, received }) => [name, received])),
      cut: stage.cut,
      slackMs: slackOf({ entries, showings, outages }),
    });
    account.problems.push(...daemon.problems, ...second.daemon.problems);
    report(account);
    if (account.problems.length === 0) return true;
    const evidence = await storeEvidence(seed, {
      problems: account.problems.map((problem) => ({ problem })),
      received: receivers.flatMap(({ name, received }) => received.map((one) => ({ name, ...one }))),
      ...{ showings, transitions, cut: stage.cut, log: daemon.logLines },
    });
    writeLine(`what was seen: ${evidence}`);
    return false;
  } finally {
    await closeAll();
  }
}

function frameOf(deps: {
  sandbox: SandboxProcess;
  redisUrl: string;
  receivers: readonly MoodyReceiver[];
  dataDir: string;
  port: number;
}): Record<string, unknown> {
  const { sandbox, redisUrl, receivers, dataDir, port } = deps;
  return {
    upstream: { baseUrl: sandbox.url, apiKey: SANDBOX_KEY, requestsPerSecond: 60, timeout: '5s' },
    redis: { url: redisUrl, prefix: PREFIX },
    // Only a sweep finds a transfer that was over before a page showed it.
    polling: { fullSweepEvery: '20s' },
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

function endpointsOf({ url }: SandboxProcess, chainId: number): object[] {
  const own = `${url}/chains/${chainId}`;
  return [
    { name: 'own', url: `${own}/own` },
    { name: 'other', url: `${own.replace('127.0.0.1', 'localhost')}/other` },
  ];
}

function report({ shown, reported, excused, events, problems }: OperatorAccount): void {
  for (const problem of problems.slice(0, 30)) writeLine(`  ${problem}`);
  const sum = problems.length === 0 ? 'it all adds up.' : `${problems.length} problems`;
  writeLine(`${shown} statuses shown, ${reported} reported, ${excused} excused, ${events} events: ${sum}`);
}

function writeLine(line: string): void {
  process.stdout.write(`${line}\n`);
}
