import type { Notice, Row } from '../notice/notice.ts';

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

/** The mail as HTML: one table, inline styles only, since mail programs drop style sheets. */
export function renderHtml({ title, summary, sections }: Notice): string {
  const cell = 'padding:6px 12px 6px 0;vertical-align:top;border-top:1px solid #e4e7eb;';
  const row = ({ label, value, url }: Row) => {
    const shown = escapeHtml(value);
    const content = url === null ? shown : `<a href="${escapeHtml(url)}" style="color:#1a5fb4;">${shown}</a>`;
    return (
      `<tr><td style="${cell}color:#5c6670;white-space:nowrap;">${escapeHtml(label)}</td>` +
      `<td style="${cell}color:#1c2126;word-break:break-word;">${content}</td></tr>`
    );
  };
  const gap = '<tr><td colspan="2" style="height:16px;font-size:0;line-height:0;">&nbsp;</td></tr>';
  return [
    '<!DOCTYPE html>',
    `<html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(title)}</title></head>`,
    '<body style="margin:0;padding:24px;background:#f4f5f7;">',
    '<table role="presentation" cellpadding="0" cellspacing="0" style="max-width:680px;margin:0 auto;padding:24px;' +
      'background:#ffffff;border:1px solid #e4e7eb;font-family:Helvetica,Arial,sans-serif;font-size:14px;line-height:1.45;">',
    `<tr><td colspan="2" style="font-size:19px;font-weight:bold;color:#1c2126;padding-bottom:8px;">${escapeHtml(title)}</td></tr>`,
    `<tr><td colspan="2" style="color:#3b444c;padding-bottom:16px;">${escapeHtml(summary)}</td></tr>`,
    sections.map((rows) => rows.map(row).join('\n')).join(`\n${gap}\n`),
    '</table>',
    '</body></html>',
    '',
  ].join('\n');
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
