import { redactor } from '../redact.ts';

// Control characters, line and paragraph separators, and the marks that reorder or hide text.
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]+/gu;

/**
 * Turns a text from outside into one harmless line: no control characters, line breaks, bidirectional marks or halves of
 * surrogate pairs; at most `maxLength` UTF-16 units, cut with `…`.
 */
export function printableLine(text: string, maxLength = 1_000): string {
  const line = text.toWellFormed().replace(UNPRINTABLE, ' ').replace(/ {2,}/g, ' ').trim();
  return line.length <= maxLength ? line : `${line.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** Makes one printable line of an answer's first bytes: UTF-8, no cut-off last character, no longer than the bytes. */
export function printableAnswer(bytes: Uint8Array): string {
  const text = new TextDecoder('utf-8').decode(bytes, { stream: true });
  return printableLine(text.replaceAll('\ufffd', '?'), bytes.length);
}

/** Most bytes of an answer that are stored. */
export const MAX_ANSWER_BYTES = 1_024;

const MAX_REASON_LENGTH = 300;

/** Most characters that are read: a secret shrinks a text, so the stored part may come from beyond its limit. */
export const MAX_READ = 4_096;

/**
 * Limits the stored and logged text of a receiver's answers, and of errors that quote it or us: one printable line, without
 * secrets, and cut only after that. `cut`: the text may have ended within a secret.
 */
export type TextLimiter = {
  /** At most 1 KiB. */
  answer(text: string, options?: { cut?: boolean }): string;
  /** At most 300 UTF-16 units, and no mail addresses: reasons are logged. */
  reason(text: string): string;
};

/** Builds the limits that remove these secrets. */
export function limiterWithout(secrets: readonly string[]): TextLimiter {
  const redact = redactor(secrets);
  const shown = (text: string, cut: boolean): string =>
    text === ''
      ? ''
      : redact(printableLine(text.slice(0, MAX_READ), MAX_READ + 1), { cut: cut || text.length > MAX_READ });
  return {
    answer: (text, { cut = false } = {}) =>
      printableAnswer(Buffer.from(shown(text, cut), 'utf8').subarray(0, MAX_ANSWER_BYTES)),
    reason: (text) => printableLine(withoutAddresses(shown(text, false)), MAX_REASON_LENGTH),
  };
}

/**
 * Replaces each mail address by `[address]`, from the beginning of its run to the next space. Reads each character once: an
 * expression for the whole address would restart at each character before an `@`.
 */
export function withoutAddresses(text: string): string {
  return text.replace(/[^\s<>"',;]+/g, (word) => {
    let start = 0;
    for (const run of word.split(/[=:]/)) {
      const at = run.indexOf('@', 1);
      if (at !== -1 && start + at + 1 < word.length) return `${word.slice(0, start)}[address]`;
      start += run.length + 1;
    }
    return word;
  });
}
