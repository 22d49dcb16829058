import type { WebhookFormat } from '../../config/fields/receiver.ts';
import type { RenderedEvent } from '../../domain/events/event.ts';
import { canonicalJson, type JsonObject } from '../../domain/json.ts';
import { MAX_WEBHOOK_BYTES } from '../../domain/limits.ts';
import { COMMON, type Directory } from '../../domain/transfers/chains.ts';
import { makeNotice } from '../notice/notice.ts';
import { cutEvent } from './cut.ts';
import { discordMessage } from './discord.ts';
import { slackMessage } from './slack.ts';
import { teamsMessage } from './teams.ts';

/** How a body is made: `recordUrl` is where the whole event can be read, `directory` what chains and tokens are called. */
export type Rendering = { format: WebhookFormat; recordUrl: string | null; directory?: Directory };

/**
 * The bytes that are sent, and signed: the event as canonical JSON of `{ id, type, timestamp, data }`, cut where it is
 * larger than webhooks should be, or a message for people.
 */
export function renderBody(event: RenderedEvent, rendering: Rendering): Buffer {
  if (rendering.format === 'standard') {
    // Most are small enough, and are written once.
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
