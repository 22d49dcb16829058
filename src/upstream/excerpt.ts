import type { Secret } from '../config/secret.ts';

/** Enough text for the longest excerpt, however much white space it shrinks by. */
const SCAN_CHARS = 4096;

/** The shortest beginning of a key that is worth hiding where a cut text ends in it. */
const MIN_KEY_PART = 4;

/** Turns what the upstream said into printable text of at most so many characters, without the API key. */
export type Excerpt = (text: string, maxChars: number) => string;

/** An excerpt maker for texts that may echo this key: plainly, in a URL, in JSON, or cut off in its middle. */
export function excerptWithout(apiKey: Secret): Excerpt {
  const key = apiKey.reveal();
  const spellings = [...new Set([key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1)])]
    .filter((spelling) => spelling !== '')
    .map((spelling) => new RegExp(RegExp.escape(spelling), 'gi'));
  return (text, maxChars) => {
    const printable = text
      .slice(0, SCAN_CHARS)
      .replace(/[\p{C}\p{Z}\s]+/gu, ' ')
      .trim();
    const whole = spellings.reduce((rest, spelling) => rest.replace(spelling, '[secret]'), printable);
    return [...withoutCutKey(whole, key)].slice(0, maxChars).join('');
  };
}

function withoutCutKey(text: string, key: string): string {
  for (let length = key.length - 1; length >= MIN_KEY_PART; length--) {
    if (text.endsWith(key.slice(0, length))) return `${text.slice(0, -length)}[secret]`;
  }
  return text;
}
