import { redactor, secretsOfUrl } from '../../redact.ts';
import type { Secret } from '../../secret.ts';

/** Enough text for the longest excerpt, however much white space it shrinks by. */
const SCAN_CHARS = 4096;

/** Turns what the upstream said into printable text of at most so many characters, without the API key. */
export type Excerpt = (text: string, maxChars: number) => string;

/** An excerpt maker for texts that may echo the key or the proxy's login, in any spelling or cut off in its middle. */
export function excerptWithout({ apiKey, proxy }: { apiKey: Secret | null; proxy: Secret | null }): Excerpt {
  const redact = redactor([
    ...(apiKey === null ? [] : [apiKey.reveal()]),
    ...(proxy === null ? [] : secretsOfUrl(new URL(proxy.reveal()))),
  ]);
  return (text, maxChars) => {
    const printable = text
      .slice(0, SCAN_CHARS)
      .replace(/[\p{C}\p{Z}\s]+/gu, ' ')
      .trim();
    return [...redact(printable, { cut: true })].slice(0, maxChars).join('');
  };
}
