import type { JsonObject, JsonValue } from '../../domain/json.ts';
import type { Notice } from '../notice/notice.ts';
import type { NoticeRow } from '../notice/rows.ts';
import { printableLine } from '../printable.ts';

/** Slack's own limits: characters of a header, fields of a section, characters of a field's text. Two sections of them. */
const MAX_HEADER_LENGTH = 150;
const MAX_FIELDS = 10;
const MAX_SECTIONS = 2;
const MAX_FIELD_LENGTH = 2_000;
const MAX_VALUE_LENGTH = 300;

/** Renders a Slack message. Upstream text is plain text, which Slack does not interpret, or escaped in a link's markup. */
export function slackMessage({ title, summary, sections: [first = []] }: Notice): JsonObject {
  const blocks: JsonValue[] = [
    { type: 'header', text: plainText(printableLine(title, MAX_HEADER_LENGTH)) },
    { type: 'section', text: plainText(summary) },
  ];
  for (let section = 0; section < MAX_SECTIONS; section += 1) {
    const fields = first.slice(section * MAX_FIELDS, (section + 1) * MAX_FIELDS).map(field);
    if (fields.length > 0) blocks.push({ type: 'section', fields });
  }
  // Notifications and old clients show this.
  return { text: escapeSlack(title), blocks };
}

function field({ label, value, url }: NoticeRow): JsonObject {
  const shown = printableLine(value, MAX_VALUE_LENGTH);
  const linked = `${escapeSlack(label)}: <${url}|${escapeSlack(shown)}>`;
  if (url === null || linked.length > MAX_FIELD_LENGTH) return plainText(`${label}: ${shown}`);
  // Verbatim: no names, channels or addresses become links or mentions.
  return { type: 'mrkdwn', verbatim: true, text: linked };
}

function plainText(text: string): JsonObject {
  return { type: 'plain_text', emoji: false, text: printableLine(text, MAX_FIELD_LENGTH) };
}

/** Escapes the three characters of Slack's markup; a mention or link needs `<` and `>`. */
function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
