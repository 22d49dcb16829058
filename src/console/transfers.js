/** @import { Corridor, Subject, ViewProps } from './types.ts' */

import { ApiError, read, readList } from './api.js';
import {
  Ago,
  Empty,
  Loading,
  Metadata,
  Pill,
  SHOWN,
  Status,
  SubjectName,
  useData,
  useNow,
  usePages,
  useSlowTick,
} from './components.js';
import { span } from './format.js';
import { html } from './htm.js';

/** For each page the daemon reads about 500 subjects. */
const PAGES = 4;
const FAILED = ['failed', 'expired', 'refundable', 'error', 'expired_unfunded']
  .map((status) => `status=${status}`)
  .join('&');

/** Lists of the first page: their names, and their texts when empty. */
const LISTS = /** @type {const} */ ([
  [
    'in-flight',
    'In flight',
    'Nothing is in flight.',
    'Transfers show up here once they are funded, until they are filled.',
  ],
  [
    'slow',
    'Slow',
    'Nothing is slow.',
    'A transfer is slow once it is overdue, or has waited longer than 9 of 10 on its route.',
  ],
  [
    'failed',
    'Failed',
    'Nothing has failed.',
    'Transfers that failed, expired or can be claimed back show up here.',
  ],
  [
    'disputed',
    'Disputed',
    'Nothing is disputed.',
    'Transfers show up here whose payment is not on its chain as the upstream states it. The checks need RPC endpoints (chains).',
  ],
  [
    'recent',
    'All',
    'Nothing is watched yet.',
    'Name wallets or transfers in the config, or track one through the API.',
  ],
]);

/** Results of checks on the chain that a list shows. @type {Set<Subject['proof']>} */
const DOUBTED = new Set(/** @type {const} */ (['disputed', 'unproven']));

/** Counts of the first page, for all lists. */
const TILES = [
  ...LISTS.slice(0, 4).map(([name, label]) => [name, label, `#/transfers/${name}`]),
  ['undelivered', 'Undelivered', '#/undelivered'],
  ...LISTS.slice(4).map(([name, label]) => [name, label, `#/transfers/${name}`]),
].map(([name = '', label = '', href = '']) => /** @type {const} */ ([name, label, href]));

/** @param {Subject} subject @param {Map<string, Corridor>} corridors */
function timingOf({ corridor }, corridors) {
  return (corridor === null ? null : corridors.get(corridor)?.fill) ?? corridors.get('*')?.fill ?? null;
}

/** @param {Subject} subject @param {Map<string, Corridor>} corridors @param {number} nowMs */
function isSlow(subject, corridors, nowMs) {
  if (subject.overdue) return true;
  const timing = subject.kind === 'intent' ? timingOf(subject, corridors) : null;
  if (timing === null || subject.pendingSince === null) return false;
  return nowMs - Date.parse(subject.pendingSince) > timing.p90Seconds * 1_000;
}

/** @typedef {{ items: Subject[], more: boolean }} Found */
/** @typedef {Map<string, Corridor>} Corridors */

/** Interval at which learned values are read, as they change slowly. */
const LEARNED_MS = 60_000;
let learned = { atMs: Number.NEGATIVE_INFINITY, corridors: /** @type {Corridors} */ (new Map()) };

/** Learned values of the routes, by corridor. @param {AbortSignal} signal @returns {Promise<Corridors>} */
export async function readCorridors(signal) {
  if (performance.now() - learned.atMs < LEARNED_MS) return learned.corridors;
  /** @type {{ corridors: Corridor[] }} */
  const { corridors } = await read('/corridors', signal);
  learned = { atMs: performance.now(), corridors: new Map(corridors.map((one) => [one.corridor, one])) };
  return learned.corridors;
}

/** @param {{ name: string, corridors: Corridors, pages?: number, signal: AbortSignal }} wanted @returns {Promise<Found>} */
async function readOne({ name, corridors, pages = 1, signal }) {
  const options = /** @type {const} */ ({
    key: 'subjects',
    most: SHOWN * pages,
    pages: PAGES * pages,
    signal,
  });
  /** @param {string} query @returns {Promise<Found>} */
  const list = (query) => readList(`/subjects${query}`, options);
  if (name === 'recent') return list('');
  if (name === 'failed') return list(`?${FAILED}`);
  if (name === 'disputed') return list('?proof=disputed');
  if (name === 'in-flight') return list('?age=0s');
  const overdue = await list('?overdue=true');
  const p90s = [...corridors.values()].flatMap(({ fill }) => (fill === null ? [] : [fill.p90Seconds]));
  const age = Math.ceil(Math.min(...p90s));
  const old = p90s.length === 0 ? { items: [], more: false } : await list(`?kind=intent&age=${age}s`);
  const found = new Map([...overdue.items, ...old.items].map((one) => [one.subject, one]));
  const nowMs = Date.now();
  const items = [...found.values()].filter((one) => isSlow(one, corridors, nowMs));
  return { items, more: overdue.more || old.more };
}

/**
 * Counts every list, one after another, as each reads many subjects.
 * @param {AbortSignal} signal @returns {Promise<Record<string, string>>}
 */
async function readCounts(signal) {
  const corridors = await readCorridors(signal);
  /** @type {Record<string, string>} */
  const counts = {};
  for (const [name] of LISTS) counts[name] = countOf(await readOne({ name, corridors, signal }));
  const options = /** @type {const} */ ({ key: 'undelivered', most: SHOWN, pages: 4 });
  counts.undelivered = countOf(await readList('/undelivered', { ...options, signal }));
  return counts;
}

/** "0 or more" has no meaning: then the count is unknown. @param {Found} found */
const countOf = ({ items, more }) => (more && items.length === 0 ? '–' : `${items.length}${more ? '+' : ''}`);

/** The first page: counts of the lists, and one of them. @param {ViewProps & { list: string }} props */
export function Transfers({ list, tick }) {
  const [name, title, none, hint] = LISTS.find(([one]) => one === list) ?? LISTS[0];
  const { pages, showMore } = usePages(name);
  const { data, error } = useData(
    async (signal) => {
      const corridors = await readCorridors(signal);
      return { corridors, found: await readOne({ name, corridors, pages, signal }) };
    },
    `transfers ${name}`,
    tick + pages,
  );
  const minute = useSlowTick();
  const { data: counts } = useData(readCounts, 'counts', minute);
  const shown = data?.found;
  return html`
    <h1 tabindex="-1">Transfers</h1>
    <nav class="tiles" aria-label="Lists">
      ${TILES.map(([one, label, href]) => {
        const count = one === name && shown !== undefined ? countOf(shown) : (counts?.[one] ?? '–');
        const alarm = one !== 'in-flight' && one !== 'recent' && Number.parseInt(count, 10) > 0;
        return html`<a key=${one} class=${`tile ${alarm ? `tile-${one}` : ''}`} href=${href} aria-current=${one === name ? 'page' : undefined}>
          <span class="tile-count">${count}</span><span class="tile-label">${label}</span>
        </a>`;
      })}
    </nav>
    ${error !== null && html`<p class="problem" role="alert">${error}</p>`}
    ${
      shown === undefined || data === null
        ? error === null && html`<${Loading} error=${null} />`
        : shown.items.length === 0
          ? html`<${Empty} title=${shown.more ? 'None among the newest.' : none}>${hint}<//>`
          : html`<${SubjectList} subjects=${shown.items} corridors=${data.corridors} title=${title} />`
    }
    ${shown?.more && showMore}
  `;
}

/** Subjects as rows; on a phone, as cards. @param {{ subjects: Subject[], corridors: Map<string, Corridor>, title: string }} props */
function SubjectList({ subjects, corridors, title }) {
  return html`<ul class="list" aria-label=${title}>
    ${subjects.map(
      (subject) => html`<li key=${subject.subject} class="row">
        <div class="row-status"><${Status} subject=${subject} />${subject.overdue && html`<${Pill} word="overdue" />`}${DOUBTED.has(subject.proof) && html`<${Pill} word=${subject.proof} />`}</div>
        <div class="row-main"><${SubjectName} subject=${subject} /></div>
        <div class="row-meta"><${Metadata} metadata=${subject.metadata} /></div>
        <div class="row-time"><${Waiting} subject=${subject} corridors=${corridors} /></div>
      </li>`,
    )}
  </ul>`;
}

/**
 * The wait of a transfer, against the usual one on its route.
 * @param {{ subject: Subject, corridors: Map<string, Corridor> }} props
 */
export function Waiting({ subject, corridors }) {
  const nowMs = useNow();
  const { pendingSince, status, changedAt, polledAt } = subject;
  if (status === null && polledAt !== null)
    return html`<span class="dim">polled <${Ago} at=${polledAt} /></span>`;
  if (pendingSince === null || status !== 'pending')
    return html`<span class="dim"><${Ago} at=${changedAt} /></span>`;
  const seconds = (nowMs - Date.parse(pendingSince)) / 1_000;
  const timing = subject.kind === 'intent' ? timingOf(subject, corridors) : null;
  if (timing === null) return html`<span>for ${span(Math.round(seconds))}</span>`;
  const share = Math.min(100, (seconds / timing.p90Seconds) * 100);
  const isLate = seconds > timing.p90Seconds;
  return html`<span class=${`waiting ${isLate ? 'late' : ''}`}>
    <span>for ${span(Math.round(seconds))}</span>
    <svg class="meter" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
      <rect class="meter-track" width="100" height="4" rx="2" /><rect class="meter-fill" width=${share.toFixed(1)} height="4" rx="2" />
    </svg>
    <span class="dim">${isLate ? 'longer than' : 'mostly within'} ${span(timing.p90Seconds)}</span>
  </span>`;
}

const SEARCHED_PAGES = 8;

/** An address of an EVM chain, Solana or Tron. */
const ADDRESS = /^(0x[0-9a-f]{40}|[1-9A-HJ-NP-Za-km-z]{32,44})$/i;

/** The watched wallet with an address; the list has it behind all transfers. @param {string} text @param {AbortSignal} signal @returns {Promise<Subject[]>} */
async function readWallet(text, signal) {
  if (!ADDRESS.test(text)) return [];
  try {
    return [await read(`/subjects/${encodeURIComponent(`wallet:${text}`)}?limit=1`, signal)];
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return [];
    throw error;
  }
}

/** Results of a search by a hash, an address, or the user's own metadata. @param {ViewProps & { text: string }} props */
export function Search({ text, tick }) {
  const { pages, showMore } = usePages(text);
  const isPair = /^[^=\s]+=.+$/.test(text) && !text.startsWith('0x');
  const query = `${isPair ? 'metadata' : 'mentions'}=${encodeURIComponent(text)}`;
  const { data, error } = useData(
    async (signal) => {
      const corridors = await readCorridors(signal);
      const wallets = await readWallet(text, signal);
      /** @type {Found} */
      const { items, more } = await readList(`/subjects?${query}`, {
        key: 'subjects',
        most: SHOWN * pages,
        pages: SEARCHED_PAGES * pages,
        signal,
      });
      const others = items.filter(({ subject }) => subject !== wallets[0]?.subject);
      return { items: [...wallets, ...others], more, corridors };
    },
    `search ${text}`,
    tick + pages,
  );
  return html`
    <h1 tabindex="-1">Search</h1>
    <p class="lead">${data === null ? 'Looking for' : `${data.items.length}${data.more ? '+' : ''} found for`} <q>${text}</q></p>
    ${error !== null && data !== null && html`<p class="problem" role="alert">${error}</p>`}
    ${
      data === null
        ? html`<${Loading} error=${error} />`
        : data.items.length === 0
          ? html`<${Empty} title=${data.more ? 'None among the newest.' : 'Nothing found.'}>Search by a hash, an address, an id, or metadata as <code>1042</code> or <code>order=1042</code>.<//>`
          : html`<${SubjectList} subjects=${data.items} corridors=${data.corridors} title="Found" />`
    }
    ${data?.more && showMore}
  `;
}
