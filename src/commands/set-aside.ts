import { Command } from 'commander';
import { CONFIG_DEFAULT } from '../config/file/load.ts';
import { listSetAside, replaySetAside } from '../operations/set-aside.ts';
import { listOfSetAside, replayOfSetAside } from '../server/api/routes/set-aside.ts';
import { clientOf, type DaemonOptions, isRemote, print, withDaemon } from './daemon.ts';
import { unlessRelayed, withDeliveries } from './deliveries-of.ts';
import { table, utcTimeOfIso } from './table.ts';

/** `set-aside`: entries of the event log that could not be read, and the way to deliver them all the same. */
export function setAsideCommand(): Command {
  const replayCommand = new Command('replay')
    .description(
      'Put what can be read by now back into the event log: receivers get it that have not got it yet.',
    )
    .action(async (_options: object, self: Command) => replay(self.optsWithGlobals<DaemonOptions>()));
  return withDaemon(
    new Command('set-aside').description(
      'List entries of the event log that could not be read, the oldest first.',
    ),
  )
    .action(list)
    .addCommand(replayCommand);
}

async function list(options: DaemonOptions): Promise<void> {
  const raw = isRemote(options)
    ? (await (await clientOf(options)).ask(listOfSetAside)).body
    : await withDeliveries(options.config ?? CONFIG_DEFAULT, async (parts) => ({
        entries: await listSetAside(parts),
      }));
  const text = (): string => {
    if (raw.entries.length === 0) return 'nothing is set aside';
    const rows = raw.entries.map(({ id, at, kind, subject, reason }) => [
      id,
      utcTimeOfIso(at),
      kind,
      subject ?? '',
      reason ?? 'can be read: intentwatch set-aside replay',
    ]);
    return table([['ENTRY', 'TIME', 'KIND', 'SUBJECT', 'REASON'], ...rows]);
  };
  print(options, { raw, text });
}

async function replay(options: DaemonOptions): Promise<void> {
  const { raw, remark } = isRemote(options)
    ? { raw: (await (await clientOf(options)).ask(replayOfSetAside)).body, remark: '' }
    : await withDeliveries(options.config ?? CONFIG_DEFAULT, async (parts) => {
        const done = await replaySetAside(parts);
        return { raw: done, remark: done.returned === 0 ? '' : await unlessRelayed(parts) };
      });
  const text = () => `${raw.returned} of ${raw.setAside} entries are back in the log${remark}`;
  print(options, { raw, text });
}
