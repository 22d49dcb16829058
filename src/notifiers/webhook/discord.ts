import type { JsonObject } from '../../domain/json.ts';
import type { Notice } from '../notice/notice.ts';
import type { NoticeRow } from '../notice/rows.ts';
import { printableLine } from '../printable.ts';

/** Within Discord's limits (25 fields, 256 and 1,024 characters, 6,000 in all), also when every character is escaped. */
const MAX_FIELDS = 20;
const MAX_TITLE_LENGTH = 128;
const MAX_LABEL_LENGTH = 60;
const MAX_VALUE_LENGTH = 120;
const MAX_SUMMARY_LENGTH = 500;

/** A link that makes a field longer is omitted: 10 such fields fit beside title and summary. */
const MAX_LINKED_LENGTH = 340;

/** Most characters of all fields, beside a title and a summary in which every character is escaped. */
const MAX_FIELDS_LENGTH = 4_700;

/** Renders a Discord message. Upstream text is escaped: no markup, links or mentions. `timestamp` is the event's, ISO 8601. */
export function discordMessage(
  { title, summary, sections: [first = []] }: Notice,
  timestamp: string,
): JsonObject {
  const fields = withinLimit(first.slice(0, MAX_FIELDS).map(field));
  const embed = {
    title: escapeDiscord(printableLine(title, MAX_TITLE_LENGTH)),
    description: escapeDiscord(printableLine(summary, MAX_SUMMARY_LENGTH)),
    fields,
    timestamp,
  };
  return { embeds: [embed], allowed_mentions: { parse: [] } };
}

type Field = { name: string; value: string; inline: boolean };

function withinLimit(fields: readonly Field[]): Field[] {
  let length = 0;
  const first = fields.findIndex(({ name, value }) => {
    length += name.length + value.length;
    return length > MAX_FIELDS_LENGTH;
  });
  return fields.slice(0, first === -1 ? fields.length : first);
}

function field({ label, value, url }: NoticeRow): Field {
  const shown = escapeDiscord(printableLine(value, MAX_VALUE_LENGTH));
  const linked = `[${shown}](${url})`;
  return {
    name: escapeDiscord(printableLine(label, MAX_LABEL_LENGTH)),
    value: url === null || linked.length > MAX_LINKED_LENGTH ? shown : linked,
    inline: false,
  };
}

function escapeDiscord(text: string): string {
  return text.replace(/[\\`*_~|>#[\]()<@:/-]/g, '\\$&');
}
