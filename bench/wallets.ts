import { parseArgs } from 'node:util';
import { z } from 'zod';
import type { Fault } from '../sandbox/faults/fault.ts';
import { printTargets, type Target } from './detection/targets.ts';
import { TIME_SCALE, type Watched, type WatchedWallet, watchWallet } from './wallets/watch-wallet.ts';

const PAGES = { path: '/v1/intents/status', rate: 1 };

const NEWEST_FIRST: readonly Fault[] = [];
const ORDERS: readonly { name: string; faults: readonly Fault[] }[] = [
  { name: 'newest first', faults: NEWEST_FIRST },
  { name: 'shuffled pages', faults: [{ type: 'shuffled-pages', ...PAGES }] },
  { name: 'oldest first', faults: [{ type: 'oldest-first', ...PAGES }] },
  { name: 'items that move', faults: [{ type: 'moving-items', ...PAGES, rate: 0.5 }] },
  { name: 'cursors that expire', faults: [{ type: 'expired-cursors', ...PAGES, rate: 0.3 }] },
];

const FEW = 10;
const MOST_RATIO = 1.5;

const OPTIONS = {
  past: { type: 'string', default: '10000' },
  transfers: { type: 'string', default: '200' },
} as const;
const COUNT = z.coerce.number().int().min(1);

/**
 * Measures the cost of a wallet with 10,000 past transfers, and checks that no change is missed there. A daemon of its own
 * watches one wallet under each order of pages while 200 transfers live; the answers are compared with the receiver's events.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  const [past, transfers] = [COUNT.parse(values.past), COUNT.parse(values.transfers)];
  console.log(
    `One wallet, ${transfers} transfers that live ${TIME_SCALE} times faster than usual, 100 requests/s at most.`,
  );
  console.log('Busy: from the first of them until all have ended; quiet: the 10 s after that.\n');
  const columns = ['made', 'merged', 'reported', 'busy /min', 'quiet /min', 'page 2 and on'];
  console.log(`${''.padEnd(42)}${columns.map((name) => name.padStart(14)).join('')}`);
  const few = await watched('newest first', { past: FEW, transfers, faults: NEWEST_FIRST });
  const targets: Target[] = [];
  const complete = (name: string, { account }: Watched): Target => ({
    what: `${name}: transitions that were neither reported nor merged`,
    found: account.problems.length + account.unsettled,
    most: 0,
  });
  targets.push(complete(`${FEW} past, newest first`, few));
  for (const { name, faults } of ORDERS) {
    const many = await watched(name, { past, transfers, faults });
    targets.push(complete(`${past} past, ${name}`, many));
    if (faults !== NEWEST_FIRST) continue;
    for (const when of ['busy', 'quiet'] as const) {
      const found = many.perMinute[when] / few.perMinute[when];
      targets.push({
        what: `${past} past, newest first: requests of ${FEW} past, ${when}`,
        found,
        most: MOST_RATIO,
      });
    }
  }
  console.log('');
  return printTargets(targets) ? 0 : 1;
}

async function watched(name: string, wallet: WatchedWallet): Promise<Watched> {
  const result = await watchWallet(wallet);
  const { account, perMinute, deep } = result;
  const cells = [account.made, account.merged, account.reported, perMinute.busy, perMinute.quiet, deep];
  const title = `${wallet.past.toLocaleString('en')} past transfers, ${name}`;
  console.log(`${title.padEnd(42)}${cells.map((cell) => cell.toFixed(0).padStart(14)).join('')}`);
  for (const problem of account.problems.slice(0, 5)) console.log(`  ${problem}`);
  return result;
}
