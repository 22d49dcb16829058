import { parseArgs } from 'node:util';
import type { RedisClient } from '../src/store/commands.ts';
import { connect, disconnect } from '../src/store/connection.ts';
import { RedisProcess } from '../test/support/redis-process.ts';
import { allCells, type Cell, loadsOf } from './cadence/cells.ts';
import { Delays } from './cadence/delays.ts';
import { loop } from './cadence/loop.ts';
import { type CellResult, printHead, printRow, printVerdict } from './cadence/report.ts';
import { Simulation } from './cadence/simulate.ts';
import { makeTransfers } from './cadence/workload.ts';

const OPTIONS = {
  seeds: { type: 'string', default: '5' },
  'truth-seeds': { type: 'string', default: '2' },
  only: { type: 'string', default: '.' },
  at: { type: 'string', default: '6' },
} as const;

/**
 * Runs the daemon's planner and dispatcher from a cold start under a virtual clock. Runs a plain loop at the same budget
 * beside it, and the planner with knowledge of the truth. Prints a table; returns 0 when every cell meets its targets or is
 * listed as one that cannot.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const only = new RegExp(values.only);
  const cells = allCells().filter(({ name }) => only.test(name));
  const server = await RedisProcess.create({ durable: false });
  const redis = connect({ kind: 'server', url: server.url });
  const results = new Map<Cell, CellResult>();
  try {
    printHead();
    const queue = [...cells];
    let printed = 0;
    const work = async (): Promise<void> => {
      for (let cell = queue.shift(); cell !== undefined; cell = queue.shift()) {
        results.set(
          cell,
          await measure(redis, cell, {
            seeds: Number(values.seeds),
            truthSeeds: Number(values['truth-seeds']),
          }),
        );
        for (let next = cells[printed]; next !== undefined; next = cells[++printed]) {
          const result = results.get(next);
          if (result === undefined) break;
          printRow(result);
        }
      }
    };
    await Promise.all(Array.from({ length: Number(values.at) }, work));
  } finally {
    await disconnect(redis);
    await server.close();
  }
  return printVerdict([...results.values()]) ? 0 : 1;
}

let runs = 0;

async function measure(
  redis: RedisClient,
  cell: Cell,
  { seeds, truthSeeds }: { seeds: number; truthSeeds: number },
): Promise<CellResult> {
  const [ours, plain, truth, beside] = [new Delays(), new Delays(), new Delays(), new Delays()];
  const loads = loadsOf(cell, seeds);
  for (const [index, load] of loads.entries()) {
    const transfers = makeTransfers(load);
    const simulate = async (knows: boolean): Promise<void> => {
      const prefix = `cadence-${runs++}`;
      const simulation = new Simulation(redis, { load, transfers, budget: cell.budget, prefix, knows });
      const seen = await simulation.run();
      (knows ? truth : ours).add(load, transfers, seen);
      if (!knows && index < truthSeeds) beside.add(load, transfers, seen);
      await remove(redis, prefix);
    };
    plain.add(load, transfers, loop(transfers, load, cell.budget));
    await simulate(false);
    if (index < truthSeeds) await simulate(true);
  }
  return { cell, ours, loop: plain, truth, beside };
}

async function remove(redis: RedisClient, prefix: string): Promise<void> {
  for (let cursor = '0'; ; ) {
    const [next, keys] = await redis.scan(cursor, 'MATCH', `{${prefix}}:*`, 'COUNT', 5_000);
    if (keys.length > 0) await redis.unlink(...keys);
    if (next === '0') return;
    cursor = next;
  }
}
