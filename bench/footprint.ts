import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import type { JsonObject } from '../src/domain/json.ts';
import { connect, disconnect } from '../src/store/connection.ts';
import { RedisProcess } from '../test/support/redis-process.ts';
import { printTargets } from './detection/targets.ts';
import { FootprintStage } from './footprint/stage.ts';
import { bytesOfKeys, type Footprint, footprintOf } from './memory/footprint.ts';

/** Targets in bytes of a transfer. */
const MOST = { first: 2_500, life: 6_000, left: 300 };

const USDC = ['0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', '0xaf88d065e77c8cC2239327C5EDb3A432268e5831'];
const EVENTS = 4;

/**
 * Measures the bytes that a transfer with four events and two receivers takes in a Redis with default settings: under way,
 * over its life, and after the retention. Prints the bytes of each kind of key, and beside them those of an empty server and
 * of the record as one string.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: { transfers: { type: 'string', default: '200' } } });
  const transfers = Number(values.transfers);
  const stage = await FootprintStage.create(transfers);
  const show = async (step: number): Promise<Footprint> => {
    const seconds = stage.nowSeconds;
    const records = Array.from({ length: transfers }, (_, at) => recordOf(at, step, seconds));
    await stage.shows(records, transfers * step);
    return stage.footprint();
  };
  try {
    const before = await stage.footprint();
    const cpuBefore = await stage.cpuMs();
    const found: Footprint[] = [];
    for (let step = 1; step <= EVENTS; step += 1) found.push(await show(step));
    const cpuAfter = await stage.cpuMs();
    await stage.ended();
    await stage.pass();
    const [first, life, left] = [found[0] ?? before, found.at(-1) ?? before, await stage.footprint()];
    const perTransfer = (after: Footprint): number => (bytesOfKeys(after) - bytesOfKeys(before)) / transfers;
    printKinds([first, life, left], { before, transfers });
    console.log(
      `one event after the other: ${found.map((one) => perTransfer(one).toFixed(0)).join(', ')} bytes`,
    );
    await printBaseline(transfers);
    const perEvent = (of: 'process' | 'redis'): string =>
      ((cpuAfter[of] - cpuBefore[of]) / (transfers * EVENTS)).toFixed(2);
    console.log(
      `CPU of an event, polls and both deliveries included: process ${perEvent('process')} ms, Redis ${perEvent('redis')} ms`,
    );
    return printTargets([
      { what: 'bytes under way, with one event', found: perTransfer(first), most: MOST.first },
      { what: 'bytes over its life, with four events', found: perTransfer(life), most: MOST.life },
      { what: 'bytes left after the retention', found: perTransfer(left), most: MOST.left },
    ])
      ? 0
      : 1;
  } finally {
    await stage.close();
  }
}

/** A transfer in its first to fourth state. Hashes are random, as those of a chain are. */
function recordOf(number: number, step: number, updatedAt: number): JsonObject {
  const hash = (of: string): string => `0x${createHash('sha256').update(`${of} ${number}`).digest('hex')}`;
  const amount = String(1_000_000_000 + number * 7_919);
  const place = (at: number): JsonObject => ({
    chainId: at === 0 ? 8453 : 42161,
    txHash: hash(`transaction ${at}`),
  });
  const leg = (at: number): JsonObject => ({ ...place(at), token: USDC[at] ?? '', amount });
  const end = (at: number): JsonObject => ({
    token: USDC[at] ?? '',
    amount,
    chainId: at === 0 ? 8453 : 42161,
  });
  return {
    id: `intent:${hash('intent')}`,
    type: 'intent',
    status: step > 3 ? 'settled' : step > 2 ? 'filled' : 'pending',
    updatedAt,
    txHash: step > 1 ? hash('transaction 0') : null,
    ...(step > 1 ? { sourceTx: leg(0) } : {}),
    ...(step > 2 ? { destinationTx: leg(1) } : {}),
    steps: [
      {
        type: 'BRIDGE',
        intentHash: hash('intent'),
        status: step > 2 ? 'FULFILLED' : 'PENDING',
        from: end(0),
        to: end(1),
        transactions: {
          ...(step > 1 ? { created: place(0) } : {}),
          ...(step > 2 ? { fulfilled: place(1) } : {}),
        },
      },
    ],
  };
}

/** Prints the bytes of a transfer by kind of key, the largest first. */
function printKinds(
  stages: readonly Footprint[],
  { before, transfers }: { before: Footprint; transfers: number },
): void {
  const bytesOf = (stage: Footprint, kind: string): number =>
    ((stage.kinds.get(kind)?.bytes ?? 0) - (before.kinds.get(kind)?.bytes ?? 0)) / transfers;
  const kinds = [...new Set(stages.flatMap((stage) => [...stage.kinds.keys()]))];
  console.log(
    `${'bytes of a transfer'.padEnd(40)}${['under way', 'over life', 'left'].map((name) => name.padStart(12)).join('')}`,
  );
  for (const kind of kinds.toSorted(
    (a, b) => bytesOf(stages[1] ?? before, b) - bytesOf(stages[1] ?? before, a),
  )) {
    const bytes = stages.map((stage) => bytesOf(stage, kind));
    if (bytes.every((some) => some < 5)) continue;
    console.log(`${kind.padEnd(40)}${bytes.map((some) => some.toFixed(0).padStart(12)).join('')}`);
  }
}

/** Prints the bytes of an empty server, and of each record as one string. */
async function printBaseline(transfers: number): Promise<void> {
  const server = await RedisProcess.create();
  const redis = connect({ kind: 'server', url: server.url });
  try {
    const empty = await footprintOf(redis);
    for (let number = 0; number < transfers; number += 1) {
      const record = recordOf(number, EVENTS, 1_763_638_259);
      await redis.set(`${record.id}`, JSON.stringify(record));
    }
    const stored = await footprintOf(redis);
    console.log(
      `empty server: ${empty.bytes} bytes, the record as one string: ${((bytesOfKeys(stored) - bytesOfKeys(empty)) / transfers).toFixed(0)} bytes`,
    );
  } finally {
    await disconnect(redis);
    await server.close();
  }
}
