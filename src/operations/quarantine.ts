import { z } from 'zod';
import { readBatch } from '../queues/deliveries/log-batch.ts';
import type { RawEntry } from '../store/quarantine.ts';
import { isoTime } from './moment.ts';
import type { OperationParts } from './parts.ts';

/** An entry of the event log that was quarantined. */
export const QUARANTINED_ENTRY = z.object({
  id: z.string().describe('Where it stood in the log.'),
  at: z.iso.datetime(),
  kind: z.string().describe('What it says it is.'),
  subject: z.string().nullable(),
  reason: z.string().nullable().describe('Why it cannot be read; null when it can be by now.'),
});

/** What came of putting entries back. */
export const QUARANTINE_REPLAYED = z.object({
  returned: z.int().describe('How many are back in the log.'),
  quarantined: z.int().describe('How many there were.'),
});

/** An entry as it is stored, and as it is shown. */
type Kept = { entry: RawEntry; shown: z.infer<typeof QUARANTINED_ENTRY> };

/** The entries that could not be read, the oldest first. */
export async function listQuarantined(parts: OperationParts): Promise<z.infer<typeof QUARANTINED_ENTRY>[]> {
  return (await readKept(parts)).map(({ shown }) => shown);
}

/** Puts what can be read by now back into the log: receivers get it that have not got it yet. */
export async function replayQuarantined(parts: OperationParts): Promise<z.infer<typeof QUARANTINE_REPLAYED>> {
  const kept = await readKept(parts);
  let returned = 0;
  for (const { entry, shown } of kept) {
    if (shown.reason === null && (await parts.stores.quarantine.putBack(entry))) returned += 1;
  }
  return { returned, quarantined: kept.length };
}

async function readKept({ stores: { quarantine, events } }: OperationParts): Promise<Kept[]> {
  const kept: Kept[] = [];
  for (const entry of await quarantine.list()) {
    const { unreadable, stoppedBy } = await readBatch([entry], events);
    const reason = stoppedBy?.reason ?? unreadable[0]?.reason ?? null;
    const at = isoTime(Number(entry.id.split('-')[0]));
    const [kind, subject] = [fieldOf(entry, 'kind') ?? '', fieldOf(entry, 'subject')];
    kept.push({ entry, shown: { id: entry.id, at, kind, subject, reason } });
  }
  return kept;
}

function fieldOf({ fields }: RawEntry, name: string): string | null {
  const index = fields.findIndex((field, at) => at % 2 === 0 && field === name);
  return index === -1 ? null : (fields[index + 1] ?? null);
}
