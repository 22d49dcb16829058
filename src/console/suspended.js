/** @import { Dropped, Suspended, ViewProps } from './types.ts' */

import { Ago, Empty, Loading, Pill, searchLink, subjectLink, useList } from './components.js';
import { short } from './format.js';
import { html } from './htm.js';

/** Suspended subjects and receivers, and the events that were dropped with them. @param {ViewProps} props */
export function SuspendedView({ tick }) {
  /** @type {ReturnType<typeof useList<Suspended>>} */
  const { items, error, showMore } = useList('suspended', '/suspended', tick);
  return html`
    <h1 tabindex="-1">Suspended</h1>
    <p class="lead">What left the config. Its events wait, and are delivered when it comes back before it is removed.</p>
    ${error !== null && html`<p class="problem" role="alert">${error}</p>`}
    ${
      items === null
        ? error === null && html`<${Loading} error=${null} />`
        : items.length === 0
          ? html`<${Empty} title="Nothing is suspended.">A wallet or an id that leaves the config shows up here until its time is over.<//>`
          : html`<ul class="list" aria-label="Suspended">
            ${items.map((one) => html`<${SuspendedRow} key=${`${one.subscription} ${one.subject}`} one=${one} />`)}
          </ul>`
    }
    ${showMore}
    <${DroppedEvents} tick=${tick} />
  `;
}

/** @param {{ one: Suspended }} props */
function SuspendedRow({ one: { subject, subscription, receivers, state, since, until, events } }) {
  return html`<li class="row">
    <div class="row-status"><${Pill} word=${state === 'back' ? 'enabling' : 'paused'}>${state === 'back' ? 'back' : 'suspended'}<//></div>
    <div class="row-main">
      <a class="row-link" href=${searchLink(subject)}><span class="row-title">${subscription}${receivers !== null && html` → ${receivers.join(', ')}`}</span><span class="mono dim">${short(subject)}</span></a>
    </div>
    <div class="row-meta dim">${events === 1 ? '1 event waits' : `${events} events wait`}</div>
    <div class="row-time dim">${
      until === null ? html`since <${Ago} at=${since} />` : html`removed <${Ago} at=${until} />`
    }</div>
  </li>`;
}

/** Dropped events; nothing where there are none. @param {{ tick: number }} props */
function DroppedEvents({ tick }) {
  /** @type {ReturnType<typeof useList<Dropped>>} */
  const { items, error, showMore } = useList('dropped', '/suspended/dropped', tick);
  if (error !== null) return html`<p class="problem" role="alert">${error}</p>`;
  if (items === null || items.length === 0) return null;
  return html`
    <h2>Waited in vain</h2>
    <p class="lead">Events that were dropped, for what they waited for was removed. Put it back into the config, then <code>intentwatch resend</code> sends those that are still in the log.</p>
    <ul class="list" aria-label="Events that waited in vain">
      ${items.map(
        ({
          event,
          type,
          subject,
          subscription,
          named,
          droppedAt,
        }) => html`<li key=${`${event} ${subscription} ${named}`} class="row">
          <div class="row-status"><${Pill} word="dead">dropped<//></div>
          <div class="row-main">
            ${
              subject === null
                ? html`<span class="row-title">${short(event)}</span><span class="dim">has left the log</span>`
                : html`<a class="row-link" href=${subjectLink(subject)}><span class="row-title">${type}</span><span class="mono dim">${short(subject)}</span></a>`
            }
          </div>
          <div class="row-meta dim">${subscription}, <span class="mono">${short(named)}</span></div>
          <div class="row-time dim"><${Ago} at=${droppedAt} /></div>
        </li>`,
      )}
    </ul>
    ${showMore}
  `;
}
