const REDACTED = '[secret]';

/** Parts of an URL shorter than this are words rather than tokens. */
const MIN_TOKEN_LENGTH = 12;

/** A header's value shorter than this is found in any text. */
const MIN_VALUE_LENGTH = 4;

/** Replaces every secret in a text by `[secret]`, longest first so that none leaves a rest. */
export function redact(text: string, secrets: readonly string[]): string {
  return [...secrets]
    .filter((secret) => secret !== '')
    .sort((a, b) => b.length - a.length)
    .reduce((redacted, secret) => redacted.replaceAll(secret, REDACTED), text);
}

/**
 * What may be secret in an URL: the whole of it, path with query, and each path segment or query
 * value that is long enough to be a token; as written and decoded.
 */
export function secretsOfUrl(url: URL): string[] {
  const pathAndQuery = `${url.pathname}${url.search}`;
  const parts = [
    ...url.pathname.split('/'),
    ...[...url.searchParams.values()],
    ...url.search.slice(1).split(/[&=]/),
  ].filter((part) => part.length >= MIN_TOKEN_LENGTH);
  const found = [url.href, ...parts, ...(pathAndQuery.length >= MIN_TOKEN_LENGTH ? [pathAndQuery] : [])];
  return [...new Set(found.flatMap((part) => [part, decodeOrKeep(part)]))].filter((part) => part !== '');
}

/** What may be secret in a header's value: the whole of it, and its words that are long enough to be a token. */
export function secretsOfHeader(value: string): string[] {
  const words = value.split(/[ ,;=]+/).filter((word) => word.length >= MIN_TOKEN_LENGTH);
  return value.length >= MIN_VALUE_LENGTH ? [value, ...words] : words;
}

/** Percent-decoded text, or the text itself where the escapes are broken. */
export function decodeOrKeep(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
