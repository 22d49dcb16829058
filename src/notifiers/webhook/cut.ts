import type { RenderedEvent } from '../../domain/events/event.ts';
import { canonicalJson, type JsonValue } from '../../domain/json.ts';

/** Standard Webhooks asks for less than 20 kB. */
export const MAX_BODY_BYTES = 19_999;

/** Members of a record that are kept as long as anything else can go. */
const CORE: ReadonlySet<string> = new Set(['id', 'type', 'status', 'state', 'vaultAddress', 'updatedAt']);

/**
 * The event, or where it is larger than 20 kB what of it is smaller: members of `record` are left out, the largest
 * first, then `transfer`, which is made from it, then the last of `changes`, at last the record's core. The same event is always cut the same way. What the
 * operator's own config adds (metadata, names) is never left out; an event that is too large by that alone stays whole.
 */
export function cutEvent(event: RenderedEvent, recordUrl: string | null): RenderedEvent {
  if (sizeOf(event) <= MAX_BODY_BYTES) return event;
  const link = recordUrl === null ? {} : { recordUrl };
  const marked: RenderedEvent = { ...event, data: { ...event.data, ...link, recordTruncated: true } };
  const { record, changes } = marked.data;
  const bySize = Object.entries(record)
    .map(([key, value]) => ({ key, bytes: sizeOf({ [key]: value }) }))
    .sort((a, b) => b.bytes - a.bytes || (a.key < b.key ? -1 : 1));
  let excess = sizeOf(marked) - MAX_BODY_BYTES;
  const left = new Set<string>();
  const leaveOut = (members: readonly { key: string; bytes: number }[]): void => {
    for (const { key, bytes } of members) {
      if (excess <= 0) return;
      left.add(key);
      // Without the braces around it, and at times with a comma: an estimate that is never too high.
      excess -= bytes - 2;
    }
  };
  leaveOut(bySize.filter(({ key }) => !CORE.has(key)));
  const { transfer } = marked.data;
  const isTransferLeft = excess > 0 && transfer !== undefined;
  if (isTransferLeft) excess -= sizeOf(transfer);
  let kept = changes.length;
  for (; excess > 0 && kept > 0; kept -= 1) excess -= sizeOf(changes[kept - 1] ?? '');
  leaveOut(bySize.filter(({ key }) => CORE.has(key)));
  // It is the operator's own metadata that is too large: leaving out the rest would be for nothing.
  if (excess > 0) return event;
  const rest = Object.fromEntries(Object.entries(record).filter(([key]) => !left.has(key)));
  const { transfer: _, ...others } = marked.data;
  const data = isTransferLeft ? others : marked.data;
  return { ...marked, data: { ...data, record: rest, changes: changes.slice(0, kept) } };
}

function sizeOf(value: JsonValue): number {
  return Buffer.byteLength(canonicalJson(value), 'utf8');
}
