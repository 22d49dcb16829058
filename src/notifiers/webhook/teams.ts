import type { JsonObject, JsonValue } from '../../domain/json.ts';
import type { Notice } from '../notice/notice.ts';
import type { NoticeRow } from '../notice/rows.ts';
import { printableLine } from '../printable.ts';

/**
 * Most bytes of rows. A workflow fails to post a message beyond 28 kB after it has answered 202: nobody would notice. The rows
 * that fit are sent; the rest of the message takes less than the remaining bytes.
 */
const MAX_ROWS_BYTES = 24_000;
const MAX_TITLE_LENGTH = 150;
const MAX_SUMMARY_LENGTH = 500;
const MAX_LABEL_LENGTH = 60;
const MAX_VALUE_LENGTH = 300;

/** The version that Teams shows on phones as well; `RichTextBlock` came with it. */
const CARD_VERSION = '1.2';

/**
 * Renders a message with an Adaptive Card for a workflow of Microsoft Teams ("When a Teams webhook request is received"). All
 * text is in text runs: Teams reads Markdown in a `TextBlock` and a `FactSet`, which has no dependable escape.
 */
export function teamsMessage({ title, summary, sections: [first = []] }: Notice): JsonObject {
  const heading = { size: 'Large', weight: 'Bolder' };
  const content = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: CARD_VERSION,
    msteams: { width: 'Full' },
    body: [
      line(textRun(title, MAX_TITLE_LENGTH, heading)),
      line(textRun(summary, MAX_SUMMARY_LENGTH)),
      ...withinLimit(first.map(row)),
    ],
  };
  return {
    type: 'message',
    attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content }],
  };
}

function withinLimit(rows: readonly JsonObject[]): JsonObject[] {
  let bytes = 0;
  const first = rows.findIndex((one) => {
    bytes += Buffer.byteLength(JSON.stringify(one));
    return bytes > MAX_ROWS_BYTES;
  });
  return rows.slice(0, first === -1 ? rows.length : first);
}

function row({ label, value, url }: NoticeRow): JsonObject {
  const link = url === null ? {} : { selectAction: { type: 'Action.OpenUrl', url } };
  const name = textRun(label, MAX_LABEL_LENGTH, { weight: 'Bolder' });
  return { ...line(name, ': ', textRun(value, MAX_VALUE_LENGTH, link)), spacing: 'Small' };
}

function line(...inlines: JsonValue[]): JsonObject {
  return { type: 'RichTextBlock', inlines };
}

/** Builds a run of plain text. Two braces would begin a date that clients format their own way, so no two follow each other. */
function textRun(text: string, maxLength: number, style: JsonObject = {}): JsonObject {
  const shown = printableLine(text, maxLength).replace(/\{(?=\{)/g, '{\u200b');
  return { type: 'TextRun', text: shown, ...style };
}
