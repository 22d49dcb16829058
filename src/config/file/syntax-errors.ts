import type { YAMLError } from 'yaml';

/** What is said of a text in which more sections stand in each other than can be read. */
export const TOO_DEEP = 'found YAML that is nested too deeply, expected a config';

/** What is said of a key that stands in its mapping again. `rest` is the text from it on; only its name is taken from it. */
export function describeRepeatedKey(rest: string): string {
  // Without a colon, or with digits, it may be a secret that a slip made a key of.
  const key = /^([A-Za-z][A-Za-z-]{0,39})\s*:\s/.exec(rest)?.[1];
  return `found ${key === undefined ? 'a key' : `the key "${key}"`} again, expected each key once`;
}

/** What a YAML error means, in our words: the parser's own messages quote the text, which may be a secret. */
export function describeSyntaxError(error: YAMLError): string {
  switch (error.code) {
    case 'TAB_AS_INDENT':
      return 'found a tab before the text, expected spaces';
    case 'BAD_INDENT':
      return 'found text in an unexpected column, expected the keys or items of one section in the same column and brackets closed';
    case 'MISSING_CHAR':
      return 'found text that goes on where something is missing, expected a closing quote or bracket, a comma or a colon';
    case 'BAD_ALIAS':
      return 'found a YAML alias without a name, expected quotes around text that begins with "*"';
    case 'TAG_RESOLVE_FAILED':
      return 'found a YAML tag, expected quotes around text that begins with "!"';
    case 'BAD_SCALAR_START':
      return 'found a character that cannot begin a value, expected quotes around the text';
    case 'BAD_DQ_ESCAPE':
      return 'found a backslash before a character that has no escape, expected single quotes or a doubled backslash';
    case 'BLOCK_AS_IMPLICIT_KEY':
      return 'found a second key on one line, expected a new line or quotes around text with ": "';
    case 'MULTILINE_IMPLICIT_KEY':
      return 'found a key over several lines, expected "key: value" (is a colon missing above?)';
    case 'MULTIPLE_DOCS':
      return 'found a second YAML document (---), expected one';
    case 'NON_STRING_KEY':
      return 'found a key that is a list or a mapping, expected text';
    case 'RESOURCE_EXHAUSTION':
      return TOO_DEEP;
    default:
      return `found text that is no YAML (${error.code}), expected "key: value" lines, lists and quotes that are closed`;
  }
}
