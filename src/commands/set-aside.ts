import { Command } from 'commander';
import { readBatch } from '../queues/deliveries/log-batch.ts';
import type { RawEntry } from '../store/set-aside.ts';
import { type Deliveries, unlessRelayed, withDeliveries } from './deliveries-of.ts';
import { CONFIG_DEFAULT } from './start.ts';
import { table, utcTimeOfMs } from './table.ts';

/** An entry that was set aside; `reason` says why it cannot be read, null when it can by now. */
type Kept = { entry: RawEntry; reason: string | null };

/** `set-aside`: entries of the event log that could not be read, and the way to deliver them all the same. */
export function setAsideCommand(): Command {
  const replayCommand = new Command('replay')
    .description(
      'Put what can be read by now back into the event log: receivers get it that have not got it yet.',
    )
    .action(async (_options: object, self: Command) => {
      const { config } = self.optsWithGlobals<{ config: string }>();
      await withDeliveries(config, replay);
    });
  return new Command('set-aside')
    .description('List entries of the event log that could not be read, the oldest first.')
    .option('-c, --config <file>', 'config file', CONFIG_DEFAULT)
    .action(async ({ config }: { config: string }) => withDeliveries(config, list))
    .addCommand(replayCommand);
}

async function list(parts: Deliveries): Promise<void> {
  const kept = await read(parts);
  const rows = kept.map(({ entry, reason }) => [
    entry.id,
    utcTimeOfMs(Number(entry.id.split('-')[0])),
    fieldOf(entry, 'kind'),
    fieldOf(entry, 'subject'),
    reason ?? 'can be read: intentwatch set-aside replay',
  ]);
  say(
    kept.length === 0
      ? 'nothing is set aside'
      : table([['ENTRY', 'TIME', 'KIND', 'SUBJECT', 'REASON'], ...rows]),
  );
}

async function replay(parts: Deliveries): Promise<void> {
  const kept = await read(parts);
  let back = 0;
  for (const { entry, reason } of kept) {
    if (reason === null && (await parts.stores.setAside.putBack(entry))) back += 1;
  }
  say(`${back} of ${kept.length} entries are back in the log${back === 0 ? '' : await unlessRelayed(parts)}`);
}

async function read({ stores: { setAside, events } }: Deliveries): Promise<Kept[]> {
  const kept: Kept[] = [];
  for (const entry of await setAside.list()) {
    const { unreadable, stoppedBy } = await readBatch([entry], events);
    kept.push({ entry, reason: stoppedBy?.reason ?? unreadable[0]?.reason ?? null });
  }
  return kept;
}

function fieldOf({ fields }: RawEntry, name: string): string {
  const index = fields.findIndex((field, at) => at % 2 === 0 && field === name);
  return index === -1 ? '' : (fields[index + 1] ?? '');
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
