import type { WebhookFormat } from '../../config/fields/receiver.ts';
import type { RenderedEvent } from '../../domain/events/event.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../../domain/json.ts';
import { MAX_WEBHOOK_BYTES } from '../../domain/limits.ts';
import { COMMON, type Directory } from '../../domain/transfers/chains.ts';
import { makeNotice } from '../notice/notice.ts';
import { discordMessage } from './discord.ts';
import { slackMessage } from './slack.ts';
import { teamsMessage } from './teams.ts';

/** Members of a record that are removed last. */
const CORE: ReadonlySet<string> = new Set(['id', 'type', 'status', 'state', 'vaultAddress', 'updatedAt']);

/**
 * Shortens an event over 20 kB. It removes members of `record`, the largest first, then `transfer`, which is made from it, then
 * the last of `changes`, then the record's core, then members of `metadata` (`truncated` has their names), at last the ends of
 * lists. The same event is always cut the same way.
 */
function cutEvent(event: RenderedEvent, recordUrl: string | null): RenderedEvent {
  if (sizeOf(event) <= MAX_WEBHOOK_BYTES) return event;
  const link = recordUrl === null ? {} : { recordUrl };
  const marked: RenderedEvent = { ...event, data: { ...event.data, ...link, recordTruncated: true } };
  const { record, changes } = marked.data;
  const bySize = largestFirst(record);
  let excess = sizeOf(marked) - MAX_WEBHOOK_BYTES;
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
  let count = changes.length;
  for (; excess > 0 && count > 0; count -= 1) excess -= sizeOf(changes[count - 1] ?? '');
  leaveOut(bySize.filter(({ key }) => CORE.has(key)));
  const rest = Object.fromEntries(Object.entries(record).filter(([key]) => !left.has(key)));
  const { transfer: _, ...others } = marked.data;
  const data = isTransferLeft ? others : marked.data;
  const cut = { ...marked, data: { ...data, record: rest, changes: changes.slice(0, count) } };
  return excess > 0 ? cutMetadata(cut) : cut;
}

/** Removes members of the merged metadata, the largest first, then the ends of lists that are still too long. */
function cutMetadata(event: RenderedEvent): RenderedEvent {
  const { metadata, wallets, subscriptions } = event.data;
  let excess = sizeOf({ ...event, data: { ...event.data, truncated: [] } }) - MAX_WEBHOOK_BYTES;
  const truncated: string[] = [];
  for (const { key, bytes } of largestFirst(metadata)) {
    if (excess <= 0) break;
    truncated.push(key);
    // A comma leaves with the member and another comes with its name: an estimate that is never too high.
    excess -= bytes - 2 - sizeOf(key);
  }
  const left = new Set(truncated);
  const shortened = (list: readonly string[]): string[] => {
    let count = list.length;
    for (; excess > 0 && count > 0; count -= 1) excess -= sizeOf(list[count - 1] ?? '');
    return list.slice(0, count);
  };
  const data = {
    ...event.data,
    metadata: Object.fromEntries(Object.entries(metadata).filter(([key]) => !left.has(key))),
    truncated: shortened(truncated),
    wallets: shortened(wallets),
    subscriptions: shortened(subscriptions),
  };
  return { ...event, data };
}

function largestFirst(members: JsonObject): { key: string; bytes: number }[] {
  return Object.entries(members)
    .map(([key, value]) => ({ key, bytes: sizeOf({ [key]: value }) }))
    .sort((a, b) => b.bytes - a.bytes || (a.key < b.key ? -1 : 1));
}

function sizeOf(value: JsonValue): number {
  return Buffer.byteLength(canonicalJson(value), 'utf8');
}

/** Form of a body: `recordUrl` is the address of the whole event, `directory` has the names of chains and tokens. */
export type Rendering = { format: WebhookFormat; recordUrl: string | null; directory?: Directory };

/** Renders the bytes to send and sign: canonical JSON of `{ id, type, timestamp, data }`, cut if too large, or a chat message. */
export function renderBody(event: RenderedEvent, rendering: Rendering): Buffer {
  if (rendering.format === 'standard') {
    // Most are small enough, and are serialised once.
    const whole = Buffer.from(canonicalJson(event), 'utf8');
    if (whole.length <= MAX_WEBHOOK_BYTES) return whole;
  }
  return Buffer.from(canonicalJson(render(event, rendering)), 'utf8');
}

function render(event: RenderedEvent, { format, recordUrl, directory = COMMON }: Rendering): JsonObject {
  switch (format) {
    case 'standard':
      return cutEvent(event, recordUrl);
    case 'slack':
      return slackMessage(makeNotice(event, directory));
    case 'discord':
      return discordMessage(makeNotice(event, directory), event.timestamp);
    case 'teams':
      return teamsMessage(makeNotice(event, directory));
    default:
      return format satisfies never;
  }
}
