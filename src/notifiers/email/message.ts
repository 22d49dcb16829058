import { createHash } from 'node:crypto';
import { domainToASCII } from 'node:url';
import type { SendMailOptions } from 'nodemailer';
import type { RenderedEvent } from '../../domain/events/event.ts';
import { isTrouble } from '../../domain/events/event-types.ts';
import type { Directory } from '../../domain/transfers/chains.ts';
import { briefRows, makeNotice, type Notice } from '../notice/notice.ts';
import { formatTime, type NoticeRow, shownTransfer } from '../notice/rows.ts';
import { renderAbout, renderElapsed, renderHappening, renderTitle } from '../notice/title.ts';
import type { Digest } from '../notifier.ts';
import { printableLine } from '../printable.ts';

type DigestGroup = { heading: string; lines: string[]; rows: NoticeRow[] };

type DigestNotice = { title: string; summary: string; groups: DigestGroup[] };

const MAX_TITLE_LENGTH = 150;

/**
 * Builds a digest of several events, subject by subject. A subject whose last event reports trouble comes first; the others
 * follow in the order of their first events. `events` are oldest first, at least one.
 */
export function makeDigestNotice(events: readonly RenderedEvent[], directory: Directory): DigestNotice {
  const bySubject = [...Map.groupBy(events, ({ data }) => data.subject.id).values()];
  const isTroubled = (group: readonly RenderedEvent[]) =>
    group.some((event, index) => index === group.length - 1 && isTrouble(event.type));
  const ordered = [...bySubject.filter(isTroubled), ...bySubject.filter((group) => !isTroubled(group))];
  const [only, ...others] = ordered;
  const last = only?.at(-1);
  const title =
    last !== undefined && others.length === 0
      ? renderOneSubject(last, { count: events.length, directory })
      : renderCounts(ordered.flatMap((group) => group.at(-1) ?? []));
  const form = timeForm(events);
  return {
    title,
    summary: renderSummary(events, ordered.length),
    groups: ordered.map((group) => makeGroup(group, { directory, form })),
  };
}

function renderOneSubject(last: RenderedEvent, view: { count: number; directory: Directory }): string {
  const title = renderTitle(last, {
    transfer: shownTransfer(last),
    directory: view.directory,
  });
  const end = view.count === 1 ? '' : ` (${view.count} notices)`;
  return `${printableLine(title, MAX_TITLE_LENGTH - end.length)}${end}`;
}

/** Title such as `Digest: 1 failed, 2 still pending, 9 filled`: last states, troubles first, then by count. */
function renderCounts(lasts: readonly RenderedEvent[]): string {
  const kinds = [...Map.groupBy(lasts, renderHappening)]
    .map(([happening, same]) => ({
      text: `${same.length} ${happening.charAt(0).toLowerCase()}${happening.slice(1)}`,
      count: same.length,
      trouble: same.some(({ type }) => isTrouble(type)),
    }))
    .sort((one, other) => Number(other.trouble) - Number(one.trouble) || other.count - one.count);
  const head = 'Digest: ';
  let shown = kinds.length;
  for (; shown > 1; shown -= 1) {
    const text = join(kinds.slice(0, shown), kinds.slice(shown));
    if (head.length + text.length <= MAX_TITLE_LENGTH) break;
  }
  return printableLine(`${head}${join(kinds.slice(0, shown), kinds.slice(shown))}`, MAX_TITLE_LENGTH);
}

function join(shown: readonly { text: string }[], rest: readonly { count: number }[]): string {
  const more = rest.reduce((sum, { count }) => sum + count, 0);
  return [...shown.map(({ text }) => text), ...(more === 0 ? [] : [`${more} others`])].join(', ');
}

function renderSummary(events: readonly RenderedEvent[], subjects: number): string {
  const [first, last] = [events[0], events.at(-1)].map((event) => formatTime(timeOf(event)) ?? '');
  const what = subjects === 1 ? 'one subject' : `${subjects} subjects`;
  const when = first === last ? `at ${first}` : `from ${first} to ${last}`;
  const order = subjects === 1 ? '' : ' What may need somebody comes first.';
  return printableLine(
    `${events.length === 1 ? 'One event' : `${events.length} events`} of ${what}, ${when}.${order}`,
  );
}

function makeGroup(
  group: readonly RenderedEvent[],
  { directory, form }: { directory: Directory; form: (event: RenderedEvent) => string },
): DigestGroup {
  // An earlier record may report what a later one omits.
  const reported = group.map((event) => renderAbout(event, { transfer: shownTransfer(event), directory }));
  const heading = reported.reduce((best, about) => (about.length > best.length ? about : best), '');
  const last = group.at(-1);
  return {
    heading: printableLine(heading === '' ? (last?.data.subject.id ?? '') : heading, MAX_TITLE_LENGTH),
    lines: group.map((event) => {
      const took = renderElapsed(event);
      return `${form(event)}  ${renderHappening(event)}${took === '' ? '' : `, ${took}`}`;
    }),
    rows: last === undefined ? [] : briefRows(last, directory),
  };
}

function timeForm(events: readonly RenderedEvent[]): (event: RenderedEvent) => string {
  const full = (event: RenderedEvent | undefined) => formatTime(timeOf(event)) ?? '';
  const days = new Set(events.map((event) => full(event).slice(0, 10)));
  return (event) =>
    full(event)
      .slice(days.size === 1 ? 11 : 0)
      .replace(/ UTC$/, '');
}

function timeOf(event: RenderedEvent | undefined): number {
  return Date.parse(event?.timestamp ?? '');
}

/** Renders a mail as plain text; links are on lines of their own. */
export function renderText({ title, summary, sections }: Notice): string {
  const width = Math.max(0, ...sections.flat().map(({ label }) => label.length)) + 2;
  const line = ({ label, value, url }: NoticeRow) => {
    const fact = `${`${label}:`.padEnd(width)}${value}`;
    return url === null ? fact : `${fact}\n${' '.repeat(width)}${url}`;
  };
  const blocks = [title, summary, ...sections.map((rows) => rows.map(line).join('\n'))];
  return `${blocks.join('\n\n')}\n`;
}

/** Renders a digest as plain text: a paragraph per subject. */
export function renderDigestText({ title, summary, groups }: DigestNotice): string {
  const blocks = groups.map(({ heading, lines, rows }) => {
    const width = Math.max(0, ...rows.map(({ label }) => label.length)) + 2;
    // The link contains the value.
    const facts = rows.map(({ label, value, url }) => `  ${`${label}:`.padEnd(width)}${url ?? value}`);
    return [heading, ...lines.map((line) => `  ${line}`), ...facts].join('\n');
  });
  return `${[title, summary, ...blocks].join('\n\n')}\n`;
}

const LINE = 'border-top:1px solid #e4e7eb;';

/** Renders a mail as HTML: one table, inline styles only, since mail programs drop style sheets. */
export function renderHtml({ title, summary, sections }: Notice): string {
  const cell = `padding:6px 12px 6px 0;vertical-align:top;${LINE}`;
  const row = ({ label, value, url }: NoticeRow) =>
    `<tr><td style="${cell}color:#5c6670;">${escapeHtml(label)}</td>` +
    `<td style="${cell}color:#1c2126;word-break:break-word;">${linked(value, url)}</td></tr>`;
  const gap = '<tr><td colspan="2" style="height:16px;font-size:0;line-height:0;">&nbsp;</td></tr>';
  const rows = sections.map((section) => section.map(row).join('\n')).join(`\n${gap}\n`);
  return page({ title, summary, columns: 2, rows });
}

/** Renders a digest as HTML: one cell per subject, so that it fits narrow screens and stays small. */
export function renderDigestHtml({ title, summary, groups }: DigestNotice): string {
  const cell = `padding:12px 0;${LINE}color:#1c2126;word-break:break-word;`;
  const group = ({ heading, lines: reported, rows }: DigestGroup) => {
    const happened = reported.map(escapeHtml).join('<br>');
    const facts = rows.map(({ label, value, url }) =>
      url === null ? escapeHtml(`${label}: ${value}`) : linked(label, url),
    );
    // The last one names the subject; it is long, and has a line of its own.
    const lines = [facts.slice(0, -1).join(' &middot; '), ...facts.slice(-1)].filter((line) => line !== '');
    return (
      `<tr><td style="${cell}"><b>${escapeHtml(heading)}</b><br>${happened}<br>` +
      `<span style="color:#5c6670;font-size:13px;">${lines.join('<br>')}</span></td></tr>`
    );
  };
  return page({ title, summary, columns: 1, rows: groups.map(group).join('\n') });
}

function page(content: { title: string; summary: string; columns: number; rows: string }): string {
  const { title, summary, columns, rows } = content;
  const head = (style: string, text: string) =>
    `<tr><td colspan="${columns}" style="${style}">${escapeHtml(text)}</td></tr>`;
  return [
    '<!DOCTYPE html>',
    '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">' +
      `<title>${escapeHtml(title)}</title></head>`,
    '<body style="margin:0;padding:12px;background:#f4f5f7;">',
    '<table role="presentation" cellpadding="0" cellspacing="0" style="width:100%;max-width:680px;margin:0 auto;' +
      'padding:20px;background:#ffffff;border:1px solid #e4e7eb;font-family:Helvetica,Arial,sans-serif;' +
      'font-size:14px;line-height:1.45;">',
    head('font-size:19px;font-weight:bold;color:#1c2126;padding-bottom:8px;', title),
    head('color:#3b444c;padding-bottom:16px;', summary),
    rows,
    '</table>',
    '</body></html>',
    '',
  ].join('\n');
}

function linked(text: string, url: string | null): string {
  const shown = escapeHtml(text);
  return url === null ? shown : `<a href="${escapeHtml(url)}" style="color:#1a5fb4;">${shown}</a>`;
}

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&#39;'],
]);

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES.get(character) ?? '');
}

/** Addresses and date of a mail, and the source of its texts. `remaining`: the recipients of this attempt; none: all. */
export type Envelope = {
  receiverName: string;
  from: string;
  to: string[];
  remaining: readonly string[];
  nowMs: number;
  directory: Directory;
};

/**
 * Builds the mail about an event. The same event for the same receiver always has the same `Message-ID`, so that a repeated mail
 * is recognisable. All events of one subject refer to the same message, so that they make one thread.
 */
export function makeMessage(event: RenderedEvent, envelope: Envelope): SendMailOptions {
  const notice = makeNotice(event, envelope.directory);
  return {
    ...common(notice.title, [event], envelope),
    text: renderText(notice),
    html: renderHtml(notice),
    messageId: messageId(eventIdOf(event), envelope),
  };
}

/** Builds the mail about several events, oldest first: with a stable `Message-ID`, in a subject's thread if about no other. */
export function makeDigestMessage({ id, events }: Digest, envelope: Envelope): SendMailOptions {
  const notice = makeDigestNotice(events, envelope.directory);
  return {
    ...common(notice.title, events, envelope),
    text: renderDigestText(notice),
    html: renderDigestHtml(notice),
    messageId: messageId(`digest.${id}`, envelope),
  };
}

function common(title: string, events: readonly RenderedEvent[], envelope: Envelope): SendMailOptions {
  const { from, to, remaining, nowMs } = envelope;
  const subjects = new Set(events.map(({ data }) => data.subject.id));
  const [subject] = subjects;
  const first =
    subject === undefined || subjects.size > 1 ? null : messageId(`thread.${hashOf(subject)}`, envelope);
  return {
    from,
    to,
    ...(remaining.length === 0 ? {} : { envelope: { from, to: [...remaining] } }),
    date: new Date(nowMs),
    // A text of the upstream that resembles an encoded word would be decoded by the reader's mail program.
    subject: title.replaceAll('=?', '= ?'),
    ...(first === null ? {} : { inReplyTo: first, references: first }),
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Intentwatch-Event': events.map(eventIdOf) },
  };
}

function messageId(name: string, { receiverName, from }: Envelope): string {
  return mailId(`${name}.${receiverName}`, from);
}

/** Formats the `Message-ID` of a mail from a sender's address. */
export function mailId(name: string, from: string): string {
  return `<${name}@intentwatch.${senderDomain(from)}>`;
}

function eventIdOf({ id }: RenderedEvent): string {
  return id.replace(/[^A-Za-z0-9_-]/g, '');
}

function senderDomain(from: string): string {
  const domain = /@([^@<>\s]+)>?\s*$/.exec(from)?.[1] ?? '';
  return domainToASCII(domain) || 'localhost';
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
