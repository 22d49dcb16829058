import { Command } from 'commander';
import { CONFIG_DEFAULT } from '../config/file/load.ts';
import { listQuarantined, replayQuarantined } from '../operations/quarantine.ts';
import { listOfQuarantine, replayOfQuarantine } from '../server/api/routes/quarantine.ts';
import { clientOf, type DaemonOptions, isRemote, print, withDaemon } from './daemon.ts';
import { unlessRelayed, withDeliveries } from './deliveries-of.ts';
import { table, utcTimeOfIso } from './table.ts';

/** `quarantine`: entries of the event log that could not be read, and the way to deliver them all the same. */
export function quarantineCommand(): Command {
  const replayCommand = new Command('replay')
    .description(
      'Put what can be read by now back into the event log: receivers get it that have not got it yet.',
    )
    .action(async (_options: object, self: Command) => replay(self.optsWithGlobals<DaemonOptions>()));
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
    ? (await (await clientOf(options)).ask(listOfQuarantine)).body
    : await withDeliveries(options.config ?? CONFIG_DEFAULT, async (parts) => ({
        entries: await listQuarantined(parts),
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
    ? { raw: (await (await clientOf(options)).ask(replayOfQuarantine)).body, remark: '' }
    : await withDeliveries(options.config ?? CONFIG_DEFAULT, async (parts) => {
        const done = await replayQuarantined(parts);
        return { raw: done, remark: done.returned === 0 ? '' : await unlessRelayed(parts) };
      });
  const text = () => `${raw.returned} of ${raw.quarantined} entries are back in the log${remark}`;
  print(options, { raw, text });
}
