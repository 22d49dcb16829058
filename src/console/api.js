/** @import { ApiProblem, ListName, ListPage } from './types.ts' */

/** A refused request; its message is the problem's detail. `retryMs`: wait before a retry; null: no automatic retry. */
export class ApiError extends Error {
  /** @param {number} status @param {string} detail @param {number | null} retryMs */
  constructor(status, detail, retryMs) {
    super(detail);
    this.status = status;
    this.retryMs = retryMs;
  }
}

/** The server ends every request sooner: a longer one has lost its connection. */
const LONGEST_MS = 30_000;
const UNANSWERED = 'The daemon gives no answer.';
const RETRY_MS = 2_000;
const LONGEST_RETRY_MS = 60_000;

/** Event of the window: a request got no answer, or the daemon could not read what it requested. */
export const UNAVAILABLE = 'intentwatch-unavailable';

/** The wait that an answer requests, in ms. @param {Response} answer */
export function retryMsOf(answer) {
  const seconds = Number(answer.headers.get('retry-after') ?? 'none');
  return Number.isFinite(seconds)
    ? Math.min(Math.max(seconds * 1_000, RETRY_MS), LONGEST_RETRY_MS)
    : RETRY_MS;
}

/** The refusal in an answer. @param {Response} answer @param {ApiProblem | null} problem */
function refusal(answer, problem) {
  const passes = answer.status === 429 || answer.status >= 500;
  const detail = problem?.detail ?? `The server answered ${answer.status}.`;
  return new ApiError(answer.status, detail, passes ? retryMsOf(answer) : null);
}

/** Relative to the page, so that it also works below a path of a proxy. */
export const API = 'api/v1';

/**
 * Sends a request. Rejects with an ApiError when the server refuses. The answer has the type that types.ts gives the path.
 * @template T
 * @param {string} path
 * @param {{ method?: string, body?: unknown, signal?: AbortSignal }} [options]
 * @returns {Promise<T>}
 */
export async function call(path, { method = 'GET', body, signal } = {}) {
  const headers = body === undefined ? undefined : { 'content-type': 'application/json' };
  const cut = AbortSignal.timeout(LONGEST_MS);
  /** @type {RequestInit} */
  const init = {
    method,
    ...(headers && { headers, body: JSON.stringify(body) }),
    signal: signal ? AbortSignal.any([signal, cut]) : cut,
  };
  let answer;
  let text;
  try {
    answer = await fetch(path, init);
    text = await answer.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    dispatchEvent(new Event(UNAVAILABLE));
    throw new ApiError(0, UNANSWERED, RETRY_MS);
  }
  const isJson = /json/.test(answer.headers.get('content-type') ?? '');
  const content = isJson && text !== '' ? JSON.parse(text) : null;
  if (answer.ok) return content;
  if (answer.status === 503) dispatchEvent(new Event(UNAVAILABLE));
  throw refusal(answer, content);
}

/** @template T @param {string} path @param {AbortSignal} [signal] @returns {Promise<T>} */
export const read = (path, signal) => call(`${API}${path}`, signal ? { signal } : {});

/**
 * Requests an action of the daemon, which is done once even when the request is repeated.
 * @template T @param {string} path @param {unknown} [body] @returns {Promise<T>}
 */
export const act = (path, body) =>
  call(`${API}${path}`, { method: 'POST', ...(body === undefined ? {} : { body }) });

/** Most items of a page. */
const PAGE = 200;

/**
 * Reads at most `most` items of a list with pages, of which some are empty; `more`: there are further items.
 * @template T
 * @param {string} path with its query, but for `limit`
 * @param {{ key: ListName, most: number, pages?: number, signal?: AbortSignal }} options
 * @returns {Promise<{ items: T[], more: boolean }>}
 */
export async function readList(path, { key, most, pages = 8, signal }) {
  /** @type {T[]} */
  const items = [];
  const start = `${path}${path.includes('?') ? '&' : '?'}limit=${Math.min(most, PAGE)}`;
  let cursor = '';
  for (let page = 0; page < pages && items.length < most; page += 1) {
    /** @type {ListPage<T>} */
    const content = await read(`${start}${cursor}`, signal);
    items.push(...content[key]);
    if (content.next === null) return { items, more: false };
    cursor = `&cursor=${encodeURIComponent(content.next)}`;
  }
  return { items: items.slice(0, most), more: true };
}
