/** @import { Corridor, Subject, ViewProps } from './types.ts' */

import { read, readList } from './api.js';
import { span } from './format.js';
import { html, useState } from './htm.js';
import { Ago, Empty, Loading, Metadata, Pill, SubjectName, useData, useNow } from './parts.js';

const SHOWN = 100;
const FAILED = ['failed', 'expired', 'refundable', 'error', 'expired_unfunded']
  .map((status) => `status=${status}`)
  .join('&');

/** The lists of the first page: what they are called, and what they say when they are empty. */
export const LISTS = /** @type {const} */ ([
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
    'recent',
    'All',
    'Nothing is watched yet.',
    'Name wallets or transfers in the config, or track one through the API.',
  ],
]);

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

/** @param {AbortSignal} signal */
async function load(signal) {
  const options = { key: 'subjects', most: SHOWN, pages: 4, signal };
  /** @param {string} query @returns {Promise<{ items: Subject[], more: boolean }>} */
  const list = (query) => readList(`/subjects?limit=${SHOWN}${query}`, options);
  /** @type {[{ corridors: Corridor[] }, ...{ items: Subject[], more: boolean }[]]} */
  const [learned, inFlight, failed, recent, overdue] = await Promise.all([
    read('/corridors', signal),
    list('&age=0s'),
    list(`&${FAILED}`),
    readList(`/subjects?limit=${SHOWN}`, { ...options, pages: 1 }),
    list('&overdue=true'),
  ]);
  const corridors = new Map(learned.corridors.map((one) => [one.corridor, one]));
  const p90s = learned.corridors.flatMap(({ fill }) => (fill === null ? [] : [fill.p90Seconds]));
  // Those that changed long ago come last: of many in flight, the slow ones are asked for by their age.
  const old =
    p90s.length === 0
      ? { items: [], more: false }
      : await list(`&kind=intent&age=${Math.ceil(Math.min(...p90s))}s`);
  const nowMs = Date.now();
  const slow = new Map([...(overdue?.items ?? []), ...old.items].map((one) => [one.subject, one]));
  return {
    corridors,
    lists: {
      'in-flight': inFlight ?? { items: [], more: false },
      slow: {
        items: [...slow.values()].filter((one) => isSlow(one, corridors, nowMs)),
        more: old.more || (overdue?.more ?? false),
      },
      failed: failed ?? { items: [], more: false },
      recent: recent ?? { items: [], more: false },
    },
  };
}

/** The first page: how many are in flight, slow, failed, and a list of one of these. @param {ViewProps & { list: string }} props */
export function Transfers({ list, tick }) {
  const { data, error } = useData(load, 'transfers', tick);
  const [, title, none, hint] = LISTS.find(([name]) => name === list) ?? LISTS[0];
  const name = LISTS.find(([one]) => one === list)?.[0] ?? 'in-flight';
  const shown = data?.lists[name];
  return html`
    <h1 tabindex="-1">Transfers</h1>
    <nav class="tiles" aria-label="Lists">
      ${LISTS.map(([one, label]) => {
        const of = data?.lists[one];
        const count = of === undefined ? '–' : `${of.items.length}${of.more ? '+' : ''}`;
        const alarm = one !== 'in-flight' && one !== 'recent' && of !== undefined && of.items.length > 0;
        return html`<a key=${one} class=${`tile ${alarm ? `tile-${one}` : ''}`} href=${`#/transfers/${one}`} aria-current=${one === name ? 'page' : undefined}>
          <span class="tile-count">${count}</span><span class="tile-label">${label}</span>
        </a>`;
      })}
    </nav>
    ${error !== null && html`<p class="problem" role="alert">${error}</p>`}
    ${
      shown === undefined || data === null
        ? error === null && html`<${Loading} error=${null} />`
        : shown.items.length === 0
          ? html`<${Empty} title=${none}>${hint}<//>`
          : html`<${SubjectList} subjects=${shown.items} corridors=${data.corridors} title=${title} />`
    }
  `;
}

/** Subjects as rows; on a phone, as cards. @param {{ subjects: Subject[], corridors: Map<string, Corridor>, title: string }} props */
export function SubjectList({ subjects, corridors, title }) {
  return html`<ul class="list" aria-label=${title}>
    ${subjects.map(
      (subject) => html`<li key=${subject.subject} class="row">
        <div class="row-status"><${Pill} word=${subject.status} />${subject.overdue && html`<${Pill} word="overdue" />`}</div>
        <div class="row-main"><${SubjectName} subject=${subject} /></div>
        <div class="row-meta"><${Metadata} metadata=${subject.metadata} /></div>
        <div class="row-time"><${Waiting} subject=${subject} corridors=${corridors} /></div>
      </li>`,
    )}
  </ul>`;
}

/** How long a transfer has waited, against what is usual on its route. @param {{ subject: Subject, corridors: Map<string, Corridor> }} props */
export function Waiting({ subject, corridors }) {
  const nowMs = useNow();
  const { pendingSince, status, changedAt } = subject;
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

const STEP = 8;

/** What a search finds: by a hash, an address, or the user's own metadata. @param {ViewProps & { text: string }} props */
export function Search({ text, tick }) {
  const [pages, setPages] = useState(STEP);
  const isPair = /^[^=\s]+=.+$/.test(text) && !text.startsWith('0x');
  const query = `${isPair ? 'metadata' : 'mentions'}=${encodeURIComponent(text)}`;
  const { data, error } = useData(
    async (signal) => {
      /** @type {[{ items: Subject[], more: boolean }, { corridors: Corridor[] }]} */
      const [found, learned] = await Promise.all([
        readList(`/subjects?limit=${SHOWN}&${query}`, { key: 'subjects', most: SHOWN, pages, signal }),
        read('/corridors', signal),
      ]);
      return { ...found, corridors: new Map(learned.corridors.map((one) => [one.corridor, one])) };
    },
    `search ${text} ${pages}`,
    tick,
  );
  return html`
    <h1 tabindex="-1">Search</h1>
    <p class="lead">${data === null ? 'Looking for' : `${data.items.length}${data.more ? '+' : ''} found for`} <q>${text}</q></p>
    ${
      data === null
        ? html`<${Loading} error=${error} />`
        : data.items.length === 0
          ? html`<${Empty} title="Nothing found.">Search by a hash, an address, an id, or metadata as <code>1042</code> or <code>order=1042</code>.<//>`
          : html`<${SubjectList} subjects=${data.items} corridors=${data.corridors} title="Found" />`
    }
    ${data?.more && data.items.length < SHOWN && html`<p><button type="button" class="button" onClick=${() => setPages(pages * 2)}>Search further back</button></p>`}
  `;
}
