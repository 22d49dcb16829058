/** @import { Undelivered, Unmatched, ViewProps } from './types.ts' */

import { act } from './api.js';
import { Action, Ago, Empty, Loading, NextAttempt, Pill, subjectLink, useList } from './components.js';
import { short } from './format.js';
import { html } from './htm.js';
import { Attempts } from './subject.js';

/** Undelivered events of all receivers. @param {ViewProps} props */
export function UndeliveredView({ tick, canAct, notify, refresh }) {
  /** @type {ReturnType<typeof useList<Undelivered>>} */
  const { items, error, showMore } = useList('undelivered', '/undelivered', tick);
  /** @param {Undelivered} one */
  const retry = async ({ receiver, event, replay }) => {
    try {
      if (replay === null) await act(`/receivers/${receiver}/retry`, { events: [event] });
      else await act(`/events/${event}/resend`, { receivers: [receiver] });
      notify(`Sent to ${receiver} once more.`);
      refresh();
    } catch (failure) {
      notify(failure instanceof Error ? failure.message : 'It could not be sent.', true);
    }
  };
  return html`
    <h1 tabindex="-1">Undelivered</h1>
    <p class="lead">What failed and is tried again, and what was given up.</p>
    ${error !== null && html`<p class="problem" role="alert">${error}</p>`}
    ${
      items === null
        ? error === null && html`<${Loading} error=${null} />`
        : items.length === 0
          ? html`<${Empty} title="Everything was delivered.">What fails shows up here with what the receiver answered.<//>`
          : html`<ul class="list" aria-label="Undelivered">
            ${items.map(
              (one) => html`<li key=${one.receiver + one.id} class="row">
                <div class="row-status"><${Pill} word=${one.state}>${one.state === 'dead' ? 'given up' : one.state}<//></div>
                <div class="row-main">
                  ${
                    one.subject === null
                      ? html`<span class="row-title">${short(one.event)}</span>`
                      : html`<a class="row-link" href=${subjectLink(one.subject)}><span class="row-title">${one.type ?? 'event'} → ${one.receiver}</span><span class="mono dim">${short(one.subject)}</span></a>`
                  }
                  <details class="attempts"><summary>${one.attempts} ${one.attempts === 1 ? 'attempt' : 'attempts'}: ${one.lastAttempts.at(-1)?.reason ?? ''}</summary><${Attempts} attempts=${one.lastAttempts} /></details>
                </div>
                <div class="row-meta dim">${one.state === 'dead' ? html`<${Ago} at=${one.at} />` : html`<${NextAttempt} at=${one.nextAttemptAt} />`}</div>
                <div class="row-time">
                  ${canAct && one.state === 'dead' && html`<${Action} kind="small" label=${`Resend ${one.type ?? 'the event'} to ${one.receiver}`} onAct=${() => retry(one)}>Resend<//>`}
                </div>
              </li>`,
            )}
          </ul>`
    }
    ${showMore}
    <${NobodysEvents} tick=${tick} />
  `;
}

/** Reasons why no receiver gets an event. @type {Record<Unmatched['reason'], string>} */
const REASONS = {
  'no-receiver': 'no receiver',
  'not-in-config': 'not in config',
};

/** Events that no receiver gets; nothing where there are none. @param {{ tick: number }} props */
function NobodysEvents({ tick }) {
  /** @type {ReturnType<typeof useList<Unmatched>>} */
  const { items, error, showMore } = useList('unmatched', '/unmatched', tick);
  if (error !== null) return html`<p class="problem" role="alert">${error}</p>`;
  if (items === null || items.length === 0) return null;
  return html`
    <h2>No receiver gets these</h2>
    <p class="lead">No subscription leads to them any more, or the receiver that it names is not there.</p>
    <ul class="list" aria-label="Events that no receiver gets">
      ${items.map(
        (one) => html`<li key=${one.event} class="row">
          <div class="row-status"><${Pill} word="dead">${REASONS[one.reason]}<//></div>
          <div class="row-main">
            <a class="row-link" href=${subjectLink(one.subject)}><span class="row-title">${one.type}</span><span class="mono dim">${short(one.subject)}</span></a>
          </div>
          <div class="row-meta dim">${one.subscriptions.join(', ')}</div>
          <div class="row-time dim"><${Ago} at=${one.at} /></div>
        </li>`,
      )}
    </ul>
    ${showMore}
  `;
}
