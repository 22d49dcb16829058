import { JsonLimitError, type JsonValue, parseJson, splitJson } from '../../domain/json.ts';
import { readChains, readTokens } from '../wire/chain-list.ts';
import { readOpenQuotes } from '../wire/open-quote.ts';
import { readQuoteAnswer } from '../wire/quote.ts';
import {
  type EarlierContent,
  RESULTS,
  readSameBody,
  readSplitPage,
  readStatusPage,
  type StatusPage,
} from '../wire/status-page.ts';
import type { Parsed } from '../wire/wire.ts';
import { type Endpoint, type ListEndpoint, limitsOf } from './endpoint.ts';

/** A parsed body; `beyond`: it exceeds its limits. */
export type ParsedBody<T> = Parsed<T> | { beyond: string };

/** The received bytes of a body, which are decoded when their text is first read. */
export type ReceivedBody = { bytes: Uint8Array; readonly text: string };

const READERS: { readonly [list in ListEndpoint]: (body: JsonValue) => Parsed<unknown> } = {
  chains: readChains,
  tokens: readTokens,
  quotes: readQuoteAnswer,
  'open-quotes': readOpenQuotes,
};

/** This module, for a thread. */
export const LIST_MODULE = import.meta.url;

/** A list whose text is parsed in a thread. */
export type ListTask = { endpoint: ListEndpoint; text: string };

/** Reads a list: the work of a thread (thread.ts). */
export function work({ endpoint, text }: ListTask): ParsedBody<unknown> {
  return readText(text, { endpoint, read: READERS[endpoint] });
}

/** Reads a body. A parser's message quotes the body, so it is not passed on; that of a limit does not. */
export function readText<T>(
  text: string,
  { endpoint, read }: { endpoint: Endpoint; read: (body: JsonValue) => Parsed<T> },
): ParsedBody<T> {
  if (text.trim() === '') return { mismatch: 'an empty body' };
  let body: JsonValue;
  try {
    body = parseJson(text, { limits: limitsOf(endpoint), longNumber: 'drop' });
  } catch (error) {
    return unparsed(error);
  }
  return read(body);
}

/** Reads a page of the status endpoint, except for the results of an earlier one. */
export function readPageText(body: ReceivedBody, earlier: EarlierContent): ParsedBody<StatusPage> {
  const same = readSameBody(body.bytes, earlier);
  if (same !== null) return { value: same };
  const { bytes, text } = body;
  try {
    const split = splitJson(text, RESULTS, { limits: limitsOf('status'), longNumber: 'drop' });
    if (split !== null) return readSplitPage(split, { bytes, earlier });
  } catch (error) {
    return unparsed(error);
  }
  return readText(text, { endpoint: 'status', read: readStatusPage });
}

function unparsed(error: unknown): { beyond: string } | { mismatch: string } {
  if (!(error instanceof SyntaxError)) throw error;
  return error instanceof JsonLimitError ? { beyond: error.found } : { mismatch: 'a body that is not JSON' };
}
