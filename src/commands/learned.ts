import { Command, Option } from 'commander';
import { CONFIG_DEFAULT } from '../config/file/load.ts';
import type { Corridor } from '../domain/cadence/corridors.ts';
import { forgetLearned, type Learned, readLearned } from '../operations/learned.ts';
import type { OperationParts } from '../operations/operation.ts';
import { forgetAllLearned, readAllLearned } from '../server/api/routes/learned.ts';
import { clientOf, type DaemonOptions, isRemote, print, say, withDaemon } from './daemon.ts';
import { withDeliveries } from './deliveries-of.ts';
import { table } from './table.ts';

type Options = DaemonOptions & { reset?: string | true };

/** `learned`: prints how long stages take on each route, what became of its transfers and how often new ones come, as learned, or has it forgotten. */
export function learnedCommand(): Command {
  return withDaemon(
    new Command('learned').description(
      'Print what was learned of each route (how long stages take, how many are filled, overdue, refunded) and how often new transfers come, or forget it.',
    ),
  )
    .addOption(
      new Option(
        '--reset [route]',
        'forget what was learned, on one route (like 8453:10) or on all',
      ).conflicts('json'),
    )
    .action(learned);
}

async function learned(options: Options): Promise<void> {
  const { reset } = options;
  if (reset !== undefined) {
    const gone = await forget(options, reset === true ? null : reset);
    return say(`forgot ${gone} ${gone === 1 ? 'entry' : 'entries'}`);
  }
  const raw = isRemote(options)
    ? (await (await clientOf(options)).ask(readAllLearned)).body
    : await locally(options, readLearned);
  print(options, { raw, text: () => textOf(raw) });
}

async function forget(options: Options, route: string | null): Promise<number> {
  if (!isRemote(options)) return locally(options, (parts) => forgetLearned(route, parts));
  const query = route === null ? {} : { route };
  return (await (await clientOf(options)).ask(forgetAllLearned, { query })).body.forgotten;
}

/** On the Redis of the config. */
async function locally<T>({ config }: Options, use: (parts: OperationParts) => Promise<T>): Promise<T> {
  return withDeliveries(config ?? CONFIG_DEFAULT, use);
}

function textOf({ corridors, stages, newTransfers }: Learned): string {
  const { observations, everySeconds } = newTransfers;
  if (stages.length === 0 && observations === 0) return 'nothing learned yet';
  const rows = stages.map(({ route, stage, observations, medianSeconds, p90Seconds, p99Seconds }) => [
    route,
    stage,
    String(observations),
    `${medianSeconds} s`,
    `${p90Seconds} s`,
    `${p99Seconds} s`,
  ]);
  return [
    ...(rows.length === 0
      ? []
      : [table([['ROUTE', 'STAGE', 'OBSERVED', 'MEDIAN', 'P90', 'P99'], ...rows]), '']),
    ...(corridors.length === 0 ? [] : [corridorTable(corridors), '']),
    `new transfers: one in ${everySeconds} s in a usual wallet, ${observations} observed`,
  ].join('\n');
}

/** What became of transfers that were seen pending, per pair of chains; shares where enough were. */
function corridorTable(corridors: readonly Corridor[]): string {
  const reported = (count: number, share: number | null): string =>
    share === null ? String(count) : `${count} (${Math.round(share * 1_000) / 10} %)`;
  const rows = corridors.map((one) => [
    one.corridor,
    String(one.filled),
    reported(one.unfilled, one.unfilledShare),
    reported(one.overdue, one.overdueShare),
    reported(one.refunded, one.refundedShare),
  ]);
  return table([['ROUTE', 'FILLED', 'UNFILLED', 'OVERDUE', 'REFUNDED'], ...rows]);
}
