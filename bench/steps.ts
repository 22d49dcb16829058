import { setTimeout as wait } from 'node:timers/promises';
import { busiestSecond } from './detection/busiest-second.ts';
import { printTargets, type Target } from './detection/targets.ts';
import { World } from './detection/world.ts';

const WALLETS = 60;

/** After a step the budget is used within this time, and counted from then on for so long. Seconds. */
const SETTLED_SECONDS = 2;
const COUNTED_SECONDS = 10;
const LEAST_USED = 0.95;

/** Each starts one more process, with a budget that binds all of them; or changes the load. */
const STEPS: readonly { requestsPerSecond?: number; transfersPerSecond?: number }[] = [
  { requestsPerSecond: 10 },
  { transfersPerSecond: 6 },
  { transfersPerSecond: 0 },
  { requestsPerSecond: 20 },
  { requestsPerSecond: 5 },
];

/**
 * Measures the effect of steps in load and budget, with one, two and three daemons as processes in real time. Checks that the
 * budget is used soon after each step, and that no second holds more requests than the budget plus one per process.
 */
export async function run(): Promise<number> {
  const world = await World.create({ wallets: WALLETS, skew: 0, seed: 1 });
  const targets: Target[] = [];
  try {
    let [budget, processes] = [0, 0];
    for (const { requestsPerSecond, transfersPerSecond } of STEPS) {
      if (requestsPerSecond !== undefined) {
        await world.daemon({ requestsPerSecond });
        budget = requestsPerSecond;
        processes++;
      }
      if (transfersPerSecond !== undefined) await world.sandbox.setPace(transfersPerSecond);
      const step =
        requestsPerSecond === undefined ? `${transfersPerSecond} transfers/s` : `${budget} requests/s`;
      const fromMs = Date.now() + 1_000 * SETTLED_SECONDS;
      const toMs = fromMs + 1_000 * COUNTED_SECONDS;
      await wait(toMs - Date.now() + 500);
      const times = (await world.sandbox.requests())
        .map(({ at }) => at)
        .filter((at) => at >= fromMs && at < toMs)
        .toSorted((a, b) => a - b);
      const name = `${processes} processes at ${budget} requests/s, from the step to ${step} on`;
      targets.push(
        {
          what: `${name}: share of the budget used`,
          found: times.length / COUNTED_SECONDS / budget,
          least: LEAST_USED,
        },
        {
          what: `${name}: requests in the busiest second`,
          found: busiestSecond(times),
          most: budget + processes,
        },
      );
    }
  } finally {
    await world.close();
  }
  return printTargets(targets) ? 0 : 1;
}
