/** @import { Corridor, ViewProps } from './types.ts' */

import { read } from './api.js';
import { Empty, Loading, useData } from './components.js';
import { span } from './format.js';
import { html } from './htm.js';

const TICKS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 86_400, 604_800];
const SHOWN = 30;

/** Durations of transfers between two chains, as a picture and as a table. @param {ViewProps} props */
export function Routes({ tick }) {
  const { data, error } = useData(
    async (signal) =>
      /** @type {Promise<{ corridors: Corridor[], chains: Record<string, string> }>} */ (
        read('/corridors', signal)
      ),
    'corridors',
    tick,
  );
  if (data === null) return html`<h1 tabindex="-1">Routes</h1><${Loading} error=${error} />`;
  const { corridors, chains } = data;
  const learned = corridors
    .flatMap((one) => (one.fill === null ? [] : [{ ...one, fill: one.fill }]))
    .slice(0, SHOWN);
  /** @param {string} id */
  const nameOf = (id) => (id === '*' ? 'any chain' : (chains[id] ?? `chain ${id}`));
  /** @param {Corridor} corridor */
  const titleOf = ({ corridor }) =>
    corridor === '*' ? 'All routes' : corridor.split(':').map(nameOf).join(' → ');
  return html`
    <h1 tabindex="-1">Routes</h1>
    <p class="lead">How long transfers take to be filled, as learned here. What was seen a day ago counts half.</p>
    ${error !== null && html`<p class="problem" role="alert">${error}</p>`}
    ${
      learned.length === 0
        ? html`<${Empty} title="Nothing learned yet.">A route shows up here once 20 of its transfers were filled.<//>`
        : html`<${Picture} corridors=${learned} titleOf=${titleOf} />`
    }
    ${
      corridors.length > 0 &&
      html`<div class="table-frame" tabindex="0" role="region" aria-label="Table of routes"><table>
      <thead><tr><th scope="col">Route</th>${COLUMNS.map(([name]) => html`<th key=${name} scope="col">${name}</th>`)}</tr></thead>
      <tbody>
        ${corridors.map(
          (one) => html`<tr key=${one.corridor}>
            <th scope="row">${titleOf(one)}</th>
            ${COLUMNS.map(([name, textOf]) => html`<td key=${name} data-label=${name}>${textOf(one)}</td>`)}
          </tr>`,
        )}
      </tbody>
    </table></div>`
    }
  `;
}

/** @param {number | undefined} seconds */
const timed = (seconds) => (seconds === undefined ? '–' : span(seconds));

/** @param {number} count @param {number | null} share */
const shared = (count, share) =>
  share === null ? `${Math.round(count)}` : `${Math.round(count)} (${(share * 100).toFixed(1)} %)`;

/** Columns of the table: their names, and their texts. @type {[string, (one: Corridor) => string][]} */
const COLUMNS = [
  ['Half within', ({ fill }) => timed(fill?.p50Seconds)],
  ['9 of 10', ({ fill }) => timed(fill?.p90Seconds)],
  ['99 of 100', ({ fill }) => timed(fill?.p99Seconds)],
  ['Settled, 9 of 10', ({ settlement }) => timed(settlement?.p90Seconds)],
  ['Filled', ({ filled }) => String(Math.round(filled))],
  ['Not filled', ({ unfilled, unfilledShare }) => shared(unfilled, unfilledShare)],
  ['Overdue', ({ overdue, overdueShare }) => shared(overdue, overdueShare)],
  ['Refunded', ({ refunded, refundedShare }) => shared(refunded, refundedShare)],
];

/**
 * A bar per route on a logarithmic scale: dark to the time within which 9 of 10 are filled, light to 99 of 100, a mark at
 * the median. The table beside it has the same values.
 * @param {{ corridors: (Corridor & { fill: NonNullable<Corridor['fill']> })[], titleOf: (corridor: Corridor) => string }} props
 */
function Picture({ corridors, titleOf }) {
  const low = Math.min(...corridors.map(({ fill }) => fill.p50Seconds));
  const high = Math.max(...corridors.map(({ fill }) => fill.p99Seconds));
  const from = TICKS.findLast((one) => one <= low) ?? 0.5;
  const to = TICKS.find((one) => one >= high) ?? high;
  /** @param {number} seconds */
  const x = (seconds) =>
    (Math.log(Math.max(seconds, from) / from) / Math.log(Math.max(to, from * 2) / from)) * 100;
  const ticks = TICKS.filter((one) => one >= from && one <= to);
  return html`<figure class="picture" aria-label="Fill times per route">
    <div class="legend" aria-hidden="true"><span class="key-median">half</span><span class="key-p90">9 of 10</span><span class="key-p99">99 of 100</span></div>
    <ul>
      ${corridors.map((one) => {
        const { p50Seconds, p90Seconds, p99Seconds } = one.fill;
        return html`<li key=${one.corridor}>
          <span class="picture-name">${titleOf(one)}</span>
          <svg class="bar" width="100%" height="22" role="img" aria-label=${`half within ${span(p50Seconds)}, 9 of 10 within ${span(p90Seconds)}, 99 of 100 within ${span(p99Seconds)}`}>
            ${ticks.map((seconds) => html`<line key=${seconds} class="grid" x1=${`${x(seconds)}%`} x2=${`${x(seconds)}%`} y1="0" y2="22" />`)}
            <rect class="bar-p99" y="8" height="6" rx="3" width=${`${Math.max(0.5, x(p99Seconds))}%`} />
            <rect class="bar-p90" y="6" height="10" rx="4" width=${`${Math.max(0.5, x(p90Seconds))}%`} />
            <circle class="bar-p50" cx=${`${x(p50Seconds)}%`} cy="11" r="5" />
          </svg>
          <span class="picture-value">${span(p90Seconds)}</span>
        </li>`;
      })}
      <li class="axis" aria-hidden="true"><span></span>
        <svg width="100%" height="16">${ticks.map((seconds, index) => html`<text key=${seconds} x=${`${x(seconds)}%`} y="12" text-anchor=${index === 0 ? 'start' : index === ticks.length - 1 ? 'end' : 'middle'}>${span(seconds)}</text>`)}</svg>
      <span></span></li>
    </ul>
  </figure>`;
}
