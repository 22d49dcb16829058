import type { Notice } from '../notice/notice.ts';
import type { Row } from '../notice/row.ts';
import type { DigestGroup, DigestNotice } from './digest.ts';

/** The mail as plain text; links stand on lines of their own. */
export function renderText({ title, summary, sections }: Notice): string {
  const width = Math.max(0, ...sections.flat().map(({ label }) => label.length)) + 2;
  const line = ({ label, value, url }: Row) => {
    const fact = `${`${label}:`.padEnd(width)}${value}`;
    return url === null ? fact : `${fact}\n${' '.repeat(width)}${url}`;
  };
  const blocks = [title, summary, ...sections.map((rows) => rows.map(line).join('\n'))];
  return `${blocks.join('\n\n')}\n`;
}

/** A digest as plain text: a paragraph per subject. */
export function renderDigestText({ title, summary, groups }: DigestNotice): string {
  const blocks = groups.map(({ heading, lines, rows }) => {
    const width = Math.max(0, ...rows.map(({ label }) => label.length)) + 2;
    // A link contains what the value says.
    const facts = rows.map(({ label, value, url }) => `  ${`${label}:`.padEnd(width)}${url ?? value}`);
    return [heading, ...lines.map((line) => `  ${line}`), ...facts].join('\n');
  });
  return `${[title, summary, ...blocks].join('\n\n')}\n`;
}

const LINE = 'border-top:1px solid #e4e7eb;';

/** The mail as HTML: one table, inline styles only, since mail programs drop style sheets. */
export function renderHtml({ title, summary, sections }: Notice): string {
  const cell = `padding:6px 12px 6px 0;vertical-align:top;${LINE}`;
  const row = ({ label, value, url }: Row) =>
    `<tr><td style="${cell}color:#5c6670;">${escapeHtml(label)}</td>` +
    `<td style="${cell}color:#1c2126;word-break:break-word;">${linked(value, url)}</td></tr>`;
  const gap = '<tr><td colspan="2" style="height:16px;font-size:0;line-height:0;">&nbsp;</td></tr>';
  const rows = sections.map((section) => section.map(row).join('\n')).join(`\n${gap}\n`);
  return page({ title, summary, columns: 2, rows });
}

/** A digest as HTML: one cell per subject, so that it is narrow where the reader's screen is, and small. */
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

function page(parts: { title: string; summary: string; columns: number; rows: string }): string {
  const { title, summary, columns, rows } = parts;
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
