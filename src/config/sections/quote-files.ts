import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import {
  canonicalJson,
  JsonLimitError,
  type JsonValue,
  parseJson,
  UnstorableJsonError,
} from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type ImportedQuote, readImportedQuote } from '../../domain/quotes/promised.ts';
import { quoteVault } from '../../domain/quotes/quote-vault.ts';
import type { SubjectId } from '../../domain/subjects/subject.ts';
import { codeOf } from '../../errors.ts';
import { whyEndless } from '../../files.ts';
import { type ConfigPath, type Fault, items, member } from '../file/errors.ts';
import type { FilePlace } from '../file/expand.ts';

/** Quotes that a config imports: the content of each `file`, and findings for those that cannot be read. */
export type QuoteFiles = { quotes: ReadonlyMap<string, ImportedQuote>; findings: Fault[] };

/** Reads every `file` under `quotes` in a config's values. */
export async function readQuoteFiles(tree: JsonValue, { folder, onFile }: FilePlace): Promise<QuoteFiles> {
  const quotes = new Map<string, ImportedQuote>();
  const findings: Fault[] = [];
  for (const { path, file } of quoteFilesOf(tree)) {
    const at = resolve(folder, file);
    onFile?.(at);
    const read = quotes.get(file) ?? (await readQuote(at));
    if ('subject' in read) quotes.set(file, read);
    else findings.push({ path, ...read });
  }
  return { quotes, findings };
}

/**
 * Finds files that hold one quote with two contents, of which the upstream can have signed only one, and quotes without the
 * vault that is to be watched.
 */
export function checkQuoteFiles(tree: JsonValue, quotes: ReadonlyMap<string, ImportedQuote>): Fault[] {
  const first = new Map<SubjectId, string>();
  return quoteFilesOf(tree).flatMap(({ path, file, isVaultWatched }) => {
    const quote = quotes.get(file);
    if (quote === undefined) return [];
    const vault = quoteVault(quote);
    if (isVaultWatched && 'found' in vault) return [{ path: [...path.slice(0, -1), 'watchVault'], ...vault }];
    const content = canonicalJson(quote.raw);
    const earliest = first.get(quote.subject) ?? content;
    first.set(quote.subject, earliest);
    if (earliest === content) return [];
    return [
      {
        path,
        found: `${quote.subject} with another content than in a file before`,
        expected: 'one content of each quote',
      },
    ];
  });
}

function quoteFilesOf(tree: JsonValue): { path: ConfigPath; file: string; isVaultWatched: boolean }[] {
  return items(member(tree, 'subscriptions')).flatMap((subscription, at) =>
    items(member(subscription, 'quotes')).flatMap((item, index) => {
      const file = member(item, 'file');
      // A value that is no path already has its finding.
      if (typeof file !== 'string' || !QUOTE_FILE.test(file)) return [];
      const path = ['subscriptions', at, 'quotes', index, 'file'];
      return [{ path, file, isVaultWatched: member(item, 'watchVault') === true }];
    }),
  );
}

export const QUOTE_FILE = /^[^\0]+$/;

async function readQuote(file: string): Promise<ImportedQuote | { found?: string; expected: string }> {
  const endless = whyEndless(file, LIMITS.quoteFile.bytes);
  if (endless !== null) return { found: endless.found, expected: `${endless.expected} with a quote as JSON` };
  let bytes: Buffer;
  try {
    bytes = await readFile(file);
  } catch (error) {
    const code = codeOf(error) ?? 'unknown reason';
    if (code === 'ENOENT') return { expected: 'a file that exists, relative to the config file' };
    if (code === 'EISDIR') return { found: 'a folder', expected: 'a file with a quote as JSON' };
    return { found: `a file that cannot be read (${code})`, expected: 'a file with a quote as JSON' };
  }
  let json: JsonValue;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    // A repaired quote would differ from the signed one.
    json = parseJson(text, { limits: LIMITS.quoteFile, unstorable: 'refuse' });
  } catch (error) {
    if (error instanceof UnstorableJsonError) {
      const expected = 'a quote as POST /v1/quotes answered it';
      return { found: 'a member "__proto__", or a text with half of a surrogate pair', expected };
    }
    if (error instanceof JsonLimitError) return { found: error.found, expected: error.expected };
    return { found: 'a file that is not JSON', expected: 'a quote as POST /v1/quotes answered it' };
  }
  const expected = 'a quote as POST /v1/quotes answered it, with an id of "quote:" and a UUID';
  return readImportedQuote(json) ?? { found: 'a file without the id of a quote', expected };
}
