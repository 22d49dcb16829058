/** @import { ComponentChildren } from './htm.js' */
/** @import { ListName, Subject } from './types.ts' */

import { ApiError, readList } from './api.js';
import { ago, clock, short, titleOf, toneOf } from './format.js';
import { html, useEffect, useRef, useState } from './htm.js';

/**
 * A state; its colour means no more than its name.
 * @param {{ word: string | null, children?: ComponentChildren }} props
 */
export function Pill({ word, children }) {
  return html`<span class=${`pill ${toneOf(word)}`}>${children ?? (word ?? 'not seen yet').replaceAll('_', ' ')}</span>`;
}

/** The status of a subject. A wallet has none: it is watched. @param {{ subject: Subject }} props */
export function Status({ subject: { kind, status, underWay } }) {
  return html`<${Pill} word=${status ?? (kind === 'wallet' && underWay ? 'watched' : null)} />`;
}

/** A time as text, and as a date. @param {{ at: string | null }} props */
export function Ago({ at }) {
  const nowMs = useNow();
  return at === null
    ? html`<span>–</span>`
    : html`<time dateTime=${at} title=${new Date(at).toLocaleString()}>${ago(at, nowMs)}</time>`;
}

/** The next attempt of a failed delivery: one that is due waits until its receiver works again. @param {{ at: string | null }} props */
export function NextAttempt({ at }) {
  const nowMs = useNow();
  if (at === null || Date.parse(at) <= nowMs) return 'waits for the receiver';
  return html`next <${Ago} at=${at} />`;
}

/** @param {{ at: string }} props */
export function Clock({ at }) {
  return html`<time dateTime=${at} title=${new Date(at).toLocaleString()}>${clock(at, Date.now())}</time>`;
}

/** An empty list. @param {{ title: string, children?: ComponentChildren }} props */
export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children && html`<p>${children}</p>`}</div>`;
}

/**
 * A button that is busy until its action is done.
 * @param {{ onAct: () => Promise<void>, children: ComponentChildren, kind?: string, label?: string, disabled?: boolean }} props
 */
export function Action({ onAct, children, kind = '', label, disabled = false }) {
  const [busy, setBusy] = useState(false);
  const run = async () => {
    if (busy) return;
    setBusy(true);
    try {
      await onAct();
    } finally {
      setBusy(false);
    }
  };
  return html`<button type="button" class=${`button ${kind}`} aria-label=${label} aria-busy=${busy} disabled=${disabled} onClick=${run}>${children}</button>`;
}

/** @param {{ metadata: Record<string, string> }} props */
export function Metadata({ metadata }) {
  const pairs = Object.entries(metadata);
  if (pairs.length === 0) return null;
  return html`<ul class="chips" aria-label="Metadata">
    ${pairs.map(([key, value]) => html`<li key=${key} class="chip"><span class="dim">${key}</span> ${value}</li>`)}
  </ul>`;
}

/** The address of a subject's view. @param {string} id */
export const subjectLink = (id) => `#/subject/${encodeURIComponent(id)}`;

/** The search for a named subject. @param {string} id */
export const searchLink = (id) => `#/search/${encodeURIComponent(id.slice(id.lastIndexOf(':') + 1))}`;

/** The name of a subject, as a link. @param {{ subject: Subject }} props */
export function SubjectName({ subject }) {
  return html`<a class="row-link" href=${subjectLink(subject.subject)}>
    <span class="row-title">${titleOf(subject)}</span>
    <span class="mono dim">${short(subject.subject)}</span>
  </a>`;
}

/** The time, updated every second. */
export function useNow() {
  const [nowMs, setNowMs] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return nowMs;
}

const SLOW_MS = 20_000;

/** A number that grows every 20 s. */
export function useSlowTick() {
  const [tick, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTick((before) => before + 1), SLOW_MS);
    return () => clearInterval(timer);
  }, []);
  return tick;
}

/** Waits `ms`, or until `signal` aborts. @param {number} ms @param {AbortSignal} signal @returns {Promise<void>} */
function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/**
 * Data of a view, read when it begins, whenever `key` changes, and whenever `tick` grows. Earlier data stays until then. A
 * temporary failure is retried after the time that the refusal names.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} read
 * @param {string} key
 * @param {number} tick
 * @returns {{ data: T | null, error: string | null }}
 */
export function useData(read, key, tick) {
  const [state, setState] = useState(
    /** @type {{ key: string, data: T | null, error: string | null }} */ ({ key, data: null, error: null }),
  );
  const running = useRef(/** @type {{ key: string, again: boolean } | null} */ (null));
  const latest = useRef(read);
  latest.current = read;
  const ended = useRef(/** @type {AbortController | null} */ (null));
  useEffect(() => () => ended.current?.abort(), []);
  useEffect(() => {
    // One at a time: more events do not cause more requests to a slow daemon.
    if (running.current?.key === key) {
      running.current.again = true;
      return;
    }
    ended.current?.abort();
    const own = new AbortController();
    ended.current = own;
    const mine = { key, again: true };
    running.current = mine;
    const run = async () => {
      while (mine.again && !own.signal.aborted) {
        mine.again = false;
        try {
          const data = await latest.current(own.signal);
          if (!own.signal.aborted) setState({ key, data, error: null });
        } catch (error) {
          if (own.signal.aborted) return;
          const text = error instanceof ApiError ? error.message : 'The page has failed; load it again.';
          setState((before) => ({ key, data: before.key === key ? before.data : null, error: text }));
          if (error instanceof ApiError && error.retryMs !== null) {
            await pause(error.retryMs, own.signal);
            mine.again = true;
          }
        }
      }
      if (running.current === mine) running.current = null;
    };
    void run();
  }, [key, tick]);
  return state.key === key ? state : { data: null, error: null };
}

/** Items of a list that are shown at first. */
export const SHOWN = 100;

/**
 * The number of shown pages of a list, and a button that doubles it. Another `key` begins with one page.
 * @param {string} key @returns {{ pages: number, showMore: ComponentChildren }}
 */
export function usePages(key) {
  const [shown, setShown] = useState({ key, pages: 1 });
  const pages = shown.key === key ? shown.pages : 1;
  const double = () => setShown({ key, pages: pages * 2 });
  return {
    pages,
    showMore: html`<p><button type="button" class="button" onClick=${double}>Show more</button></p>`,
  };
}

/**
 * A list of the API; `showMore` is a button where there is more.
 * @template T
 * @param {ListName} key its name in the answer
 * @param {string} path
 * @param {number} tick
 * @returns {{ items: T[] | null, error: string | null, showMore: ComponentChildren }}
 */
export function useList(key, path, tick) {
  const { pages, showMore } = usePages(path);
  const { data, error } = useData(
    async (signal) =>
      /** @type {Promise<{ items: T[], more: boolean }>} */ (
        readList(path, { key, most: SHOWN * pages, pages: 8 * pages, signal })
      ),
    path,
    tick + pages,
  );
  return { items: data?.items ?? null, error, showMore: data?.more && showMore };
}

/** A view that loads, or failed to load. @param {{ error: string | null }} props */
export function Loading({ error }) {
  if (error !== null) return html`<p class="problem" role="alert">${error}</p>`;
  return html`<div class="loading" role="status"><span class="visually-hidden">Loading</span><i></i><i></i><i></i></div>`;
}
