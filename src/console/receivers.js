/** @import { ReceiverAnswers, ReceiverView, ViewProps } from './types.ts' */

import { act, read } from './api.js';
import { Action, Ago, Empty, Loading, Pill, useData } from './components.js';
import { span } from './format.js';
import { html, useState } from './htm.js';

const STATES = /** @type {Record<string, string>} */ ({ ok: 'healthy' });
const DISABLED_BY = { failures: 'failures', gone: 'an answer of 410', operator: 'the operator' };

/** Receivers and their states. @param {ViewProps} props */
export function Receivers(props) {
  const { data, error } = useData(
    async (signal) => /** @type {Promise<{ receivers: ReceiverView[] }>} */ (read('/receivers', signal)),
    'receivers',
    props.tick,
  );
  return html`
    <h1 tabindex="-1">Receivers</h1>
    ${error !== null && html`<p class="problem" role="alert">${error}</p>`}
    ${
      data === null
        ? error === null && html`<${Loading} error=${null} />`
        : data.receivers.length === 0
          ? html`<${Empty} title="There is no receiver.">Name one in the config under <code>receivers</code>.<//>`
          : html`<ul class="cards">${data.receivers.map((one) => html`<${Card} key=${one.name} receiver=${one} ...${props} />`)}</ul>`
    }
  `;
}

/** @param {ViewProps & { receiver: ReceiverView }} props */
function Card({ receiver, canAct, notify, refresh }) {
  const { name, type, origin, state, backlog, backlogIsMore, deadLetters, removed, leftOut } = receiver;
  const [since, setSince] = useState('1h');
  /** @template {keyof ReceiverAnswers} W @param {W} word @param {(result: ReceiverAnswers[W]) => string} done @param {unknown} [body] */
  const send = async (word, done, body) => {
    try {
      /** @type {ReceiverAnswers[W]} */
      const result = await act(`/receivers/${name}/${word}`, body);
      notify(done(result), 'outcome' in result && result.outcome !== 'delivered');
      refresh();
    } catch (failure) {
      notify(failure instanceof Error ? failure.message : 'It could not be done.', true);
    }
  };
  /** @param {ReceiverAnswers['test']} result */
  const tested = ({ outcome, httpStatus, smtpCode, durationMs, reason }) =>
    outcome === 'delivered'
      ? `${name} answered ${httpStatus ?? smtpCode ?? reason} in ${span(durationMs / 1_000)}.`
      : `${name}: ${reason}`;
  const isHeld = state === 'paused' || state === 'disabled' || state === 'enabling';
  return html`<li class="card" aria-label=${name}>
    <header class="card-head">
      <h2>${name}</h2>
      <span class="dim">${type}${origin === 'api' ? ', made by API' : ''}</span>
      <${Pill} word=${STATES[state] ?? state} />
      ${removed && html`<span class="dim">left the config</span>`}
      ${leftOut !== null && html`<span class="dim">left out: ${leftOut}</span>`}
    </header>
    <dl class="numbers">
      <div><dt>Waiting</dt><dd>${backlog}${backlogIsMore ? '+' : ''}</dd></div>
      <div class=${deadLetters > 0 ? 'bad-number' : ''}><dt>Given up</dt><dd>${deadLetters}</dd></div>
      <div><dt>Oldest waits</dt><dd>${receiver.oldestUndeliveredAt === null ? '–' : html`<${Ago} at=${receiver.oldestUndeliveredAt} />`}</dd></div>
      <div><dt>Last success</dt><dd><${Ago} at=${receiver.lastSuccessAt} /></dd></div>
    </dl>
    ${receiver.lastError !== null && receiver.failingSince !== null && html`<p class="card-error wrap"><${Ago} at=${receiver.lastErrorAt} />: ${receiver.lastError}</p>`}
    ${state === 'disabled' && html`<p class="card-error">Disabled by ${DISABLED_BY[receiver.disabledBy ?? 'operator']}. Its events are stored; enabling it sends them.</p>`}
    ${
      canAct &&
      !removed &&
      html`<div class="actions">
      <${Action} label=${`Send a test event to ${name}`} onAct=${() => send('test', tested)}>Test<//>
      ${
        state === 'paused'
          ? html`<${Action} kind="primary" label=${`Resume ${name}`} onAct=${() => send('resume', () => `${name} goes on.`)}>Resume<//>`
          : state === 'disabled'
            ? html`<${Action} kind="primary" label=${`Enable ${name}`} onAct=${() => send('enable', () => `${name} gets what it missed.`)}>Enable<//>`
            : html`<${Action} label=${`Pause ${name}`} onAct=${() => send('pause', () => `${name} is paused; its events wait.`)}>Pause<//>`
      }
      ${deadLetters > 0 && html`<${Action} label=${`Retry ${deadLetters} given up for ${name}`} onAct=${() => send('retry', (result) => `${result.renewed} of ${result.deadLetters} are queued again.`, {})}>Retry ${deadLetters}<//>`}
      <span class="field">
        <label class="visually-hidden" for=${`since-${name}`}>Resend to ${name} the events of the last</label>
        <select id=${`since-${name}`} value=${since} onChange=${(/** @type {{ currentTarget: HTMLSelectElement }} */ event) => setSince(event.currentTarget.value)}>
          <option value="10m">last 10 min</option><option value="1h">last hour</option><option value="24h">last day</option>
        </select>
        <${Action} label=${`Resend to ${name}`} disabled=${isHeld} onAct=${() => send('resend', () => `Events of that time are sent to ${name} once more.`, { since })}>Resend<//>
      </span>
    </div>`
    }
  </li>`;
}
