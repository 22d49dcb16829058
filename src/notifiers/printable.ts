// Control characters, line and paragraph separators, and the marks that reorder or hide text.
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]+/gu;

/**
 * A text from outside as one harmless line: no control characters, no line breaks, no bidirectional marks, no halves
 * of surrogate pairs; at most `maxLength` UTF-16 units, cut with `…`.
 */
export function printableLine(text: string, maxLength = 1_000): string {
  const line = text.toWellFormed().replace(UNPRINTABLE, ' ').replace(/ {2,}/g, ' ').trim();
  return line.length <= maxLength ? line : `${line.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** The first bytes of an answer as one printable line: read as UTF-8, a cut-off last character left out, no longer than the bytes. */
export function printableAnswer(bytes: Uint8Array): string {
  const text = new TextDecoder('utf-8').decode(bytes, { stream: true });
  return printableLine(text.replaceAll('\ufffd', '?'), bytes.length);
}
