import { Command, Option } from 'commander';
import { CONFIG_DEFAULT } from '../client/address.ts';
import type { Corridor } from '../domain/cadence/corridors.ts';
import { type Learned, readLearned, removeLearned } from '../operations/learned.ts';
import type { OperationContext } from '../operations/operation.ts';
import { listQuarantined, replayQuarantined } from '../operations/undelivered.ts';
import { readAllLearned, removeAllLearned } from '../server/api/routes/learned.ts';
import { listOfQuarantine, replayOfQuarantine } from '../server/api/routes/undelivered.ts';
import { clientOf, type DaemonOptions, isRemote, print, withDaemon, writeLine } from './daemon.ts';
import { unlessRelayed, withDeliveries } from './deliveries-of.ts';
import { table, utcTimeOfIso } from './table.ts';

type LearnedOptions = DaemonOptions & { reset?: string | true };

/** `learned`: prints stage durations and outcomes of each route and the rate of new transfers, or removes them. */
export function learnedCommand(): Command {
  return withDaemon(
    new Command('learned').description(
      'Print what was learned of each route (how long stages take, how many are filled, overdue, refunded) and how often new transfers come, or remove it.',
    ),
  )
    .addOption(
      new Option(
        '--reset [route]',
        'remove what was learned, on one route (like 8453:10) or on all',
      ).conflicts('json'),
    )
    .action(learned);
}

async function learned(options: LearnedOptions): Promise<void> {
  const { reset } = options;
  if (reset !== undefined) {
    const gone = await remove(options, reset === true ? null : reset);
    return writeLine(`removed ${gone} ${gone === 1 ? 'entry' : 'entries'}`);
  }
  const raw = isRemote(options)
    ? (await (await clientOf(options)).call(readAllLearned)).body
    : await locally(options, readLearned);
  print(options, { raw, text: () => textOf(raw) });
}

async function remove(options: LearnedOptions, route: string | null): Promise<number> {
  if (!isRemote(options)) return locally(options, (deps) => removeLearned(route, deps));
  const query = route === null ? {} : { route };
  return (await (await clientOf(options)).call(removeAllLearned, { query })).body.removed;
}

async function locally<T>(
  { config }: LearnedOptions,
  use: (deps: OperationContext) => Promise<T>,
): Promise<T> {
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

/** Outcomes of transfers that were observed as pending, per pair of chains; shares where there are enough. */
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

/** `quarantine`: lists entries of the event log that could not be read, and delivers them all the same. */
export function quarantineCommand(): Command {
  const replayCommand = withDaemon(
    new Command('replay').description(
      'Put what can be read by now back into the event log: receivers get it that have not got it yet.',
    ),
  ).action(async (_options: object, self: Command) => replay(self.optsWithGlobals<DaemonOptions>()));
  return withDaemon(
    new Command('quarantine').description(
      'List entries of the event log that could not be read, the oldest first.',
    ),
  )
    .action(list)
    .addCommand(replayCommand);
}

async function list(options: DaemonOptions): Promise<void> {
  const raw = isRemote(options)
    ? (await (await clientOf(options)).call(listOfQuarantine)).body
    : await withDeliveries(options.config ?? CONFIG_DEFAULT, async (deps) => ({
        entries: await listQuarantined(deps),
      }));
  const text = (): string => {
    if (raw.entries.length === 0) return 'nothing is quarantined';
    const rows = raw.entries.map(({ id, at, kind, subject, reason }) => [
      id,
      utcTimeOfIso(at),
      kind,
      subject ?? '',
      reason ?? 'can be read: intentwatch quarantine replay',
    ]);
    return table([['ENTRY', 'TIME', 'KIND', 'SUBJECT', 'REASON'], ...rows]);
  };
  print(options, { raw, text });
}

async function replay(options: DaemonOptions): Promise<void> {
  const { raw, remark } = isRemote(options)
    ? { raw: (await (await clientOf(options)).call(replayOfQuarantine)).body, remark: '' }
    : await withDeliveries(options.config ?? CONFIG_DEFAULT, async (deps) => {
        const done = await replayQuarantined(deps);
        return { raw: done, remark: done.returned === 0 ? '' : await unlessRelayed(deps) };
      });
  const text = () => `${raw.returned} of ${raw.quarantined} entries are back in the log${remark}`;
  print(options, { raw, text });
}
