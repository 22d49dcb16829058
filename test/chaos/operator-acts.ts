import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Fault } from '../../sandbox/faults/fault.ts';
import { between, chance, pick, type Random } from '../../sandbox/world/random.ts';
import { Keys } from '../../src/store/keys.ts';
import { eventually } from '../support/eventually.ts';
import { Program } from '../support/program.ts';
import type { redisFront } from '../support/redis-front.ts';
import { RedisProcess } from '../support/redis-process.ts';
import type { SandboxProcess } from '../support/sandbox-process.ts';
import type { ChaosDaemon } from './daemon.ts';
import type { Span } from './operator-account.ts';
import type { OperatorConfig } from './operator-config.ts';
import { PREFIX } from './world.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');

export const TOKEN = 'a-token-of-the-operator';

/** Lifetime of the upstream's cursors, in seconds; null: for ever. */
const CURSOR_SECONDS = [5, 15, 60, null];

/** Order of pages; null: newest first. */
const ORDERS = ['oldest-first', 'shuffled-pages', null] as const;

const PAGES = { path: '/v1/intents/status', rate: 1 };

type Second = { daemon: ChaosDaemon; configFile: string; isRunning: boolean };

/** The objects of acts. */
export type Stage = {
  config: OperatorConfig;
  configFile: string;
  daemon: ChaosDaemon;
  second: Second;
  sandbox: SandboxProcess;
  redis: RedisProcess;
  front: Awaited<ReturnType<typeof redisFront>>;
  random: Random;
  /** The copy of Redis for a restore, and its time. */
  copy: { folder: string; atMs: number } | null;
  cut: Span[];
  /** The restores whose spans have no known end yet. */
  restores: Promise<unknown>[];
};

type Act = (stage: Stage) => Promise<void>;

export const ACTS: Readonly<Record<string, { weight: number; act: Act }>> = {
  'rename a subscription': { weight: 3, act: edit((config, random) => config.rename(random)) },
  'move a wallet': { weight: 3, act: edit((config, random) => config.move(random)) },
  'take a wallet out': { weight: 3, act: edit((config, random) => config.takeOut(random)) },
  'put all back': { weight: 2, act: edit((config, random) => config.putBack(random)) },
  'spell addresses in another way': { weight: 2, act: edit((config, random) => config.respell(random)) },
  'add RPC endpoints': { weight: 1, act: edit((config, random) => config.addEndpoints(random)) },
  'switch the reload mode': { weight: 2, act: switchMode },
  'half-write the file': { weight: 1, act: halfWrite },
  'truncate the file by a slip': { weight: 2, act: truncate },
  'start again': { weight: 2, act: (stage) => startAgain(stage, () => stage.daemon.terminate()) },
  'kill -9': { weight: 2, act: (stage) => startAgain(stage, () => stage.daemon.kill()) },
  'start a second process with another file, or end it': { weight: 3, act: second },
  'copy Redis': { weight: 1, act: copyRedis },
  'restore Redis': { weight: 1, act: restoreRedis },
  'promote a replica that is behind': { weight: 1, act: promote },
  'have pages come in another order, and cursors expire': { weight: 3, act: changePages },
};

/** An edit of the file that the daemon applies by itself or on request. */
function edit(change: (config: OperatorConfig, random: Random) => void): Act {
  return async (stage) => {
    change(stage.config, stage.random);
    await apply(stage);
  };
}

/** Replaces a file as an editor does. */
async function write(configFile: string, text: string): Promise<void> {
  const beside = `${configFile}.new`;
  await writeFile(beside, text);
  await rename(beside, configFile);
}

/** Writes the wanted file; where reloads are manual, mostly requests one. */
async function apply({ config, configFile, random }: Stage): Promise<void> {
  await write(configFile, config.text);
  if (config.isManual && chance(random, 0.8)) await reload(configFile);
}

/** Writes the wanted file and has the first daemon apply it, also after a config of the other daemon. */
export async function applyAtLast(stage: Stage): Promise<void> {
  await write(stage.configFile, stage.config.text);
  await reload(stage.configFile);
}

/** Requests a reload. Confirms it where it is held. */
async function reload(configFile: string): Promise<void> {
  const runCommand = (...args: string[]) =>
    Program.start(MAIN, ['reload', '--config', configFile, ...args], { INTENTWATCH_TOKEN: TOKEN });
  const held = await runCommand();
  const { code } = await held.ending();
  if (code === 0) return;
  const digest = /--confirm ([0-9a-f]{32})/.exec(held.output())?.[1];
  if (digest === undefined) throw new Error(held.output());
  const confirmed = await runCommand('--confirm', digest);
  if ((await confirmed.ending()).code !== 0) throw new Error(confirmed.output());
}

/** Switches between manual and automatic reloads. The running mode decides how the switch itself is applied. */
async function switchMode(stage: Stage): Promise<void> {
  const { config, configFile } = stage;
  const wasManual = config.isManual;
  config.isManual = !wasManual;
  await write(configFile, config.text);
  if (wasManual) await reload(configFile);
}

async function halfWrite(stage: Stage): Promise<void> {
  const { config, configFile, random } = stage;
  await writeFile(configFile, config.text.slice(0, config.text.length / 2));
  await wait(between(random, 500, 4_000));
  await apply(stage);
}

/** Removes nearly all wallets from the file for some seconds: the reload is held, and sometimes confirmed. */
async function truncate(stage: Stage): Promise<void> {
  const { config, configFile, random } = stage;
  await write(configFile, config.truncated);
  await wait(between(random, 1_000, 5_000));
  if (chance(random, 0.5)) {
    await reload(configFile);
    await wait(between(random, 1_000, 4_000));
  }
  await apply(stage);
}

async function startAgain({ daemon, random, cut }: Stage, end: () => Promise<void>): Promise<void> {
  const fromMs = Date.now();
  await end();
  if (chance(random, 0.5)) await wait(between(random, 0, 3_000));
  await daemon.launch(random);
  await daemon.started();
  cut.push({ fromMs, toMs: Date.now() });
}

/** The config of the last started process is the newest, until the other one has another file. */
async function second(stage: Stage): Promise<void> {
  const { config, random, second: other } = stage;
  if (other.isRunning) return endSecond(stage);
  await write(other.configFile, config.another(random));
  await other.daemon.launch(random);
  await other.daemon.started();
  other.isRunning = true;
}

/** Ends the second daemon, where it runs: by SIGTERM or by a kill. */
export async function endSecond({ random, second: other, cut }: Stage): Promise<void> {
  if (!other.isRunning) return;
  const fromMs = Date.now();
  if (chance(random, 0.5)) await other.daemon.terminate();
  else await other.daemon.kill();
  other.isRunning = false;
  cut.push({ fromMs, toMs: Date.now() });
}

async function copyRedis(stage: Stage): Promise<void> {
  const atMs = Date.now();
  stage.copy = { folder: await stage.redis.backUp(), atMs };
}

/** Events between the copy and its restore may be lost where they were not delivered yet. */
async function restoreRedis(stage: Stage): Promise<void> {
  if (stage.copy === null) return copyRedis(stage);
  const { atMs, folder } = stage.copy;
  await replaceData(stage, atMs, () => stage.redis.restore(folder));
}

/** Longest time from a restore until it is noticed and commits are made again. */
const NOTICED_MS = 20_000;

/**
 * Sets Redis back to an earlier state. Until a daemon has noticed it and written its config, nothing is committed: answers until
 * then may be lost as well.
 */
async function replaceData(stage: Stage, fromMs: number, replace: () => Promise<void>): Promise<void> {
  const { cut, front, restores } = stage;
  const before = await epochOf(front.url);
  await replace();
  const span = { fromMs, toMs: Date.now(), isRestore: true };
  cut.push(span);
  const isOver = async () => {
    const { epoch, state } = await epochOf(front.url);
    span.toMs = Date.now();
    return epoch > before.epoch && state === 'synchronised';
  };
  // Where nothing was lost, nothing is noticed.
  restores.push(eventually('the restore was noticed', isOver, NOTICED_MS).catch(() => undefined));
}

async function epochOf(url: string): Promise<{ epoch: number; state: string | null }> {
  const client = new Redis(url, { maxRetriesPerRequest: null });
  try {
    const [epoch = null, state = null] = await client.hmget(new Keys(PREFIX).epoch, 'epoch', 'state');
    return { epoch: Number(epoch ?? 1), state };
  } finally {
    client.disconnect();
  }
}

/** A replica gets nothing more for some seconds, then replaces its master. Earlier copies are then void. */
async function promote(stage: Stage): Promise<void> {
  const { redis: master, random, front } = stage;
  const replica = await RedisProcess.create();
  const client = new Redis(replica.url);
  try {
    await client.replicaof('127.0.0.1', new URL(master.url).port);
    await eventually('the replica has all', async () =>
      (await client.info('replication')).includes('link_status:up'),
    );
    await client.replicaof('NO', 'ONE');
    const fromMs = Date.now();
    await wait(between(random, 500, 4_000));
    await replaceData(stage, fromMs, async () => {
      front.lead(replica);
      stage.redis = replica;
      stage.copy = null;
      await master.close();
    });
  } finally {
    client.disconnect();
  }
}

async function changePages({ sandbox, random }: Stage): Promise<void> {
  const seconds = pick(random, CURSOR_SECONDS);
  const order = pick(random, ORDERS);
  const faults: Fault[] = [
    ...(seconds === null ? [] : [{ type: 'cursor-lifetime' as const, seconds, ...PAGES }]),
    ...(order === null ? [] : [{ type: order, ...PAGES }]),
  ];
  await sandbox.setFaults(faults);
}
