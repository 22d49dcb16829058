import type { WebhookFormat } from '../../config/config.ts';
import type { RenderedEvent } from '../../domain/event.ts';
import { canonicalJson, type JsonObject } from '../../domain/json.ts';
import { makeNotice } from '../notice/notice.ts';
import { cutEvent } from './cut.ts';
import { discordMessage } from './discord.ts';
import { slackMessage } from './slack.ts';

/**
 * The bytes that are sent, and signed: the event as canonical JSON of `{ id, type, timestamp, data }`, cut where it is
 * larger than webhooks should be, or a message for people. `recordUrl` is where the whole event can be read.
 */
export function renderBody(
  event: RenderedEvent,
  { format, recordUrl }: { format: WebhookFormat; recordUrl: string | null },
): Buffer {
  return Buffer.from(canonicalJson(render(event, { format, recordUrl })), 'utf8');
}

function render(
  event: RenderedEvent,
  { format, recordUrl }: { format: WebhookFormat; recordUrl: string | null },
): JsonObject {
  switch (format) {
    case 'standard': {
      const { id, type, timestamp, data } = cutEvent(event, recordUrl);
      return { id, type, timestamp, data };
    }
    case 'slack':
      return slackMessage(makeNotice(event));
    case 'discord':
      return discordMessage(makeNotice(event), event.timestamp);
    default:
      return format satisfies never;
  }
}
