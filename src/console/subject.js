/** @import { DeliveryPage, SubjectAnswers, SubjectDelivery, SubjectDetails, TimelineEntry, ViewProps } from './types.ts' */

import { act, read } from './api.js';
import {
  Action,
  Ago,
  Clock,
  Loading,
  Metadata,
  NextAttempt,
  Pill,
  Status,
  searchLink,
  useData,
} from './components.js';
import { amount, sentence, short, span, titleOf } from './format.js';
import { html, useState } from './htm.js';
import { readCorridors, Waiting } from './transfers.js';

/** Usual steps of a kind: the name of each, and the statuses that have reached it. */
const WAYS = /** @type {Record<string, [string, string[]][]>} */ ({
  intent: [
    ['Quoted', []],
    ['Funded', ['pending', 'filled', 'settled', 'expired', 'refundable', 'refunded', 'failed']],
    ['Filled', ['filled', 'settled']],
    ['Settled', ['settled']],
  ],
  quote: [
    ['Quoted', ['active', 'submitted', 'expired', 'failed']],
    ['Submitted', ['submitted']],
  ],
  gasless: [
    ['Accepted', ['pending', 'submitted', 'permit_sent', 'published', 'completed', 'failed']],
    ['Submitted', ['submitted', 'permit_sent', 'published', 'completed']],
    ['Published', ['published', 'completed']],
  ],
});

const FAILED = ['failed', 'expired', 'refundable', 'refunded', 'error', 'expired_unfunded'];

/** Events per page of the timeline, and pages of deliveries that are read for it at first. */
const EVENTS_OF_PAGE = 50;
const PAGES_OF_DELIVERIES = 5;

/**
 * Shown data of a subject: some pages of its timeline. `partial`: events with further deliveries.
 * @typedef {{ subject: SubjectDetails, timeline: TimelineEntry[], more: boolean, deliveries: Map<string, SubjectDelivery[]>, partial: Set<string> }} Shown
 */

/** @param {string} path @param {{ pages: number, deliveryPages: number }} wanted @param {AbortSignal} signal @returns {Promise<Shown>} */
async function readShown(path, { pages, deliveryPages }, signal) {
  const query = `limit=${EVENTS_OF_PAGE}`;
  /** @type {SubjectDetails} */
  const subject = await read(`${path}?${query}`, signal);
  let page = subject;
  /** @type {Shown} */
  const shown = { subject, timeline: [], more: false, deliveries: new Map(), partial: new Set() };
  for (let count = 1, after = ''; ; count += 1) {
    shown.timeline.push(...page.timeline);
    const until = page.next === null ? '' : `&until=${page.next}`;
    await readDeliveries(`${path}/deliveries?limit=200${until}`, {
      after,
      page,
      deliveryPages,
      shown,
      signal,
    });
    if (page.next === null || count === pages) return { ...shown, more: page.next !== null };
    after = `&after=${page.next}`;
    page = await read(`${path}?${query}${after}`, signal);
  }
}

/**
 * Reads the deliveries of a page of the timeline, up to a limit.
 * @param {string} path
 * @param {{ after: string, page: SubjectDetails, deliveryPages: number, shown: Shown, signal: AbortSignal }} options
 */
async function readDeliveries(path, { after, page, deliveryPages, shown, signal }) {
  let cursor = after;
  let last = page.timeline[0]?.event;
  for (let count = 0; count < deliveryPages; count += 1) {
    /** @type {DeliveryPage} */
    const { deliveries, next } = await read(`${path}${cursor}`, signal);
    for (const delivery of deliveries) {
      last = delivery.event;
      shown.deliveries.set(last, [...(shown.deliveries.get(last) ?? []), delivery]);
    }
    if (next === null) return;
    cursor = `&after=${next}`;
  }
  const from = page.timeline.findIndex(({ event }) => event === last);
  for (const { event } of page.timeline.slice(from)) shown.partial.add(event);
}

/** One subject, from quote to settlement. @param {ViewProps & { id: string }} props */
export function SubjectView({ id, tick, canAct, notify, refresh }) {
  const path = `/subjects/${encodeURIComponent(id)}`;
  const [wanted, setWanted] = useState({ path, pages: 1, deliveryPages: PAGES_OF_DELIVERIES });
  const { pages, deliveryPages } =
    wanted.path === path ? wanted : { pages: 1, deliveryPages: PAGES_OF_DELIVERIES };
  const { data, error } = useData(
    async (signal) => ({
      shown: await readShown(path, { pages, deliveryPages }, signal),
      corridors: await readCorridors(signal),
    }),
    path,
    tick + pages + deliveryPages,
  );
  if (data === null) return html`<h1 tabindex="-1">${short(id)}</h1><${Loading} error=${error} />`;
  const { shown, corridors } = data;
  const { subject } = shown;
  /** @template {keyof SubjectAnswers} W @param {W} word @param {(result: SubjectAnswers[W]) => string} done @param {unknown} [body] */
  const send = async (word, done, body) => {
    try {
      notify(done(await act(`${path}/${word}`, body)));
      refresh();
    } catch (failure) {
      notify(failure instanceof Error ? failure.message : 'It could not be done.', true);
    }
  };
  /** @param {SubjectAnswers['resend']} result */
  const resent = ({ leftOut }) =>
    leftOut === 0
      ? 'Its events are sent once more.'
      : `Its events are sent once more, but for ${leftOut} old ones.`;
  const { status } = subject;
  return html`
    <p class="crumb"><a href="#/">Transfers</a></p>
    <header class="subject-head">
      <div>
        <h1 tabindex="-1">${titleOf(subject)}</h1>
        <p class="mono dim wrap">${subject.subject}</p>
      </div>
      <div class="subject-state">
        <${Status} subject=${subject} />${subject.overdue && html`<${Pill} word="overdue" />`}
        ${subject.proof !== null && html`<${Pill} word=${subject.proof} />`}
      </div>
    </header>
    <${Metadata} metadata=${subject.metadata} />
    ${error !== null && html`<p class="problem" role="alert">${error}</p>`}
    <${Way} subject=${subject} timeline=${shown.timeline.toReversed()} />
    ${status === 'pending' && html`<p class="expect"><${Waiting} subject=${subject} corridors=${corridors} /></p>`}
    ${
      canAct &&
      html`<div class="actions">
      <${Action} onAct=${() => send('recheck', () => 'It is polled next.')}>Poll now<//>
      <${Action} onAct=${() => send('resend', resent, {})} disabled=${subject.events === 0}>Resend all events<//>
    </div>`
    }
    <div class="columns">
      <section aria-labelledby="timeline-title">
        <h2 id="timeline-title">Timeline</h2>
        <${Timeline} shown=${shown} canAct=${canAct} notify=${notify} refresh=${refresh} />
        ${shown.partial.size > 0 && html`<p class="timeline-more"><button type="button" class="button" onClick=${() => setWanted({ path, pages, deliveryPages: deliveryPages * 2 })}>Show more deliveries</button></p>`}
        ${shown.more && html`<p class="timeline-more"><button type="button" class="button" onClick=${() => setWanted({ path, pages: pages + 1, deliveryPages })}>Show older events</button></p>`}
      </section>
      <section aria-labelledby="facts-title">
        <h2 id="facts-title">Facts</h2>
        <${Facts} subject=${subject} />
        <details class="raw"><summary>The last record of the upstream</summary><pre tabindex="0">${JSON.stringify(subject.record, null, 2)}</pre></details>
      </section>
    </div>
  `;
}

/**
 * Progress of a subject on its usual steps.
 * @param {{ subject: SubjectDetails, timeline: TimelineEntry[] }} props the oldest event first
 */
function Way({ subject, timeline }) {
  const { kind, status, transfer } = subject;
  const way = WAYS[kind];
  if (way === undefined) return null;
  const reached = status ?? '';
  const quoted = timeline.find((entry) => entry.subject.startsWith('quote:'));
  const hasQuote = kind !== 'intent' || quoted !== undefined || transfer?.quote !== undefined;
  const steps = way.filter(([label]) => label !== 'Quoted' || hasQuote);
  const last = steps.findLastIndex(
    ([label, words]) => words.includes(reached) || (label === 'Quoted' && hasQuote),
  );
  const isFailure = FAILED.includes(reached);
  const failure = firstIn(timeline, subject.subject, [reached], false);
  return html`<ol class="way" aria-label="Progress">
    ${steps.map(([label, words], index) => {
      const isDone = index <= last;
      const entry =
        label === 'Quoted' && kind === 'intent'
          ? quoted
          : firstIn(timeline, subject.subject, words, index === 0 || label === 'Funded');
      const state = isDone ? 'done' : index === last + 1 && !isFailure && subject.underWay ? 'next' : 'open';
      return html`<li key=${label} class=${`way-step ${state}`}>
        <span class="way-mark" aria-hidden="true"></span>
        <span class="way-label">${label}<span class="visually-hidden">${isDone ? ', done' : ', not yet'}</span></span>
        <span class="way-time dim">${isDone && entry !== undefined ? html`<${Clock} at=${timeOf(entry)} />` : ' '}</span>
      </li>`;
    })}
    ${isFailure && html`<li class="way-step failed"><span class="way-mark" aria-hidden="true"></span><span class="way-label">${sentence(reached)}</span><span class="way-time dim">${failure === undefined ? ' ' : html`<${Clock} at=${timeOf(failure)} />`}</span></li>`}
  </ol>`;
}

/** @param {TimelineEntry[]} timeline @param {string} subject @param {string[]} words @param {boolean} isFirst */
function firstIn(timeline, subject, words, isFirst) {
  const own = timeline.filter((entry) => entry.subject === subject);
  const found = own.find(({ status }) => status === words[0]);
  const [first] = own;
  // A later step proves only that this one is over, not its time. An unknown first status is the first step.
  return found ?? (isFirst && !words.includes(first?.status ?? '') ? first : undefined);
}

/** The upstream's time, else the time of the observation. @param {TimelineEntry} entry */
function timeOf({ upstreamUpdatedAt, at }) {
  return upstreamUpdatedAt === null ? at : new Date(upstreamUpdatedAt * 1_000).toISOString();
}

/** @param {{ shown: Shown, canAct: boolean, notify: ViewProps['notify'], refresh: () => void }} props */
function Timeline({ shown, canAct, notify, refresh }) {
  const { subject, timeline, deliveries, partial } = shown;
  if (timeline.length === 0) return html`<p class="dim">${nothingReported(subject)}</p>`;
  return html`<ol class="timeline">
    ${timeline.map(
      (entry) => html`<li key=${entry.event} class="entry">
        <div class="entry-head">
          <${Pill} word=${wordOf(entry)} />
          <span class="mono">${entry.type}</span>
          <span class="dim"><${Clock} at=${entry.at} /></span>
        </div>
        <p class="entry-text dim">${textOf(entry, subject.subject)}</p>
        ${partial.has(entry.event) ? html`<p class="dim">Not all of its deliveries are shown.</p>` : !deliveries.has(entry.event) && html`<p class="dim">No receiver is notified of it.</p>`}
        <ul class="deliveries" aria-label="Deliveries">
          ${(deliveries.get(entry.event) ?? []).map(
            (delivery) => html`<li key=${delivery.id + delivery.receiver}>
            <${DeliveryView} delivery=${delivery} event=${entry.event} canAct=${canAct} notify=${notify} refresh=${refresh} />
          </li>`,
          )}
        </ul>
      </li>`,
    )}
  </ol>`;
}

/** Explains why there is no event. @param {SubjectDetails} subject */
function nothingReported({ kind, status, subject }) {
  if (kind === 'wallet')
    return html`Its events are those of <a href=${searchLink(subject)}>its transfers</a>.`;
  if (status === null) return 'Nothing has been seen of it yet.';
  return 'The log has no event of it: it was so when it was first seen, or its events are older than the retention.';
}

/** @param {TimelineEntry} entry */
function wordOf({ type }) {
  return type.slice(type.indexOf('.') + 1);
}

/** @param {TimelineEntry} entry @param {string} subject */
function textOf(
  { previousStatus, status, changes, subject: of, detectionDelaySeconds, skipped, regression, proof },
  subject,
) {
  const parts = [];
  if (of !== subject) parts.push(short(of));
  if (previousStatus !== null && previousStatus !== status) parts.push(`was ${previousStatus}`);
  const others = changes.filter((change) => change !== 'status' && change !== 'state');
  if (others.length > 0 && previousStatus !== null) parts.push(`${others.slice(0, 4).join(', ')} changed`);
  if (skipped) parts.push('a step between was not seen');
  if (regression) parts.push('went back');
  if (proof !== undefined) {
    parts.push(`${proof.payment}${proof.reason === undefined ? '' : `: ${proof.reason}`}`);
    parts.push(`by ${proof.endpoints.join(', ')}`);
  } else if (detectionDelaySeconds !== null) parts.push(`seen after ${span(detectionDelaySeconds)}`);
  return parts.join(' · ');
}

/**
 * A delivery with its attempts.
 * @param {{ delivery: SubjectDelivery, event: string, canAct: boolean, notify: ViewProps['notify'], refresh: () => void }} props
 */
function DeliveryView({ delivery, event, canAct, notify, refresh }) {
  const { receiver, state, attempts, lastAttempts, nextAttemptAt, replay } = delivery;
  const resend = async () => {
    try {
      if (state === 'dead' && replay === null) await act(`/receivers/${receiver}/retry`, { events: [event] });
      else await act(`/events/${event}/resend`, { receivers: [receiver] });
      notify(`Sent to ${receiver} once more.`);
      refresh();
    } catch (failure) {
      notify(failure instanceof Error ? failure.message : 'It could not be sent.', true);
    }
  };
  return html`<div class="delivery">
    <span class="delivery-head">
      <a href="#/receivers">${receiver}</a> <${Pill} word=${state}>${state === 'dead' ? 'given up' : state}<//>
      ${replay !== null && html`<span class="dim">sent once more</span>`}
      ${attempts > 1 && html`<span class="dim">${attempts} attempts</span>`}
      ${nextAttemptAt !== null && html`<span class="dim"><${NextAttempt} at=${nextAttemptAt} /></span>`}
    </span>
    ${canAct && (state === 'dead' || state === 'delivered') && html`<${Action} kind="small" label=${`Resend to ${receiver}`} onAct=${resend}>Resend<//>`}
    ${
      lastAttempts.length > 0 &&
      html`<details class="attempts"><summary>Attempts</summary><${Attempts} attempts=${lastAttempts} /></details>`
    }
  </div>`;
}

/** Attempts with their answers. @param {{ attempts: SubjectDelivery['lastAttempts'] }} props */
export function Attempts({ attempts }) {
  return html`<ol class="attempt-list">
    ${attempts.map(
      (attempt) => html`<li key=${attempt.at}>
        <span><${Clock} at=${attempt.at} /> <b>${attempt.httpStatus ?? attempt.smtpCode ?? (attempt.outcome === 'delivered' ? 'delivered' : 'no answer')}</b> <span class="dim">${attempt.durationMs < 1_000 ? `${Math.round(attempt.durationMs)} ms` : span(attempt.durationMs / 1_000)}</span></span>
        <span class="wrap">${attempt.reason}</span>
        ${attempt.answer !== '' && html`<code class="wrap">${attempt.answer}</code>`}
      </li>`,
    )}
  </ol>`;
}

/** Facts about the transfer. @param {{ subject: SubjectDetails }} props */
function Facts({ subject }) {
  const { transfer } = subject;
  /** @type {[string, unknown][]} */
  const rows = [
    ['From', endOf(transfer?.source, subject.source)],
    ['To', endOf(transfer?.destination, subject.destination)],
    ['Refund', transfer?.refund && endOf(transfer.refund, null)],
    ['To send', amount(transfer?.toSend)],
    ['Sent', amount(transfer?.sent)],
    ['Promised', amount(transfer?.promised)],
    ['Delivered', amount(transfer?.delivered)],
    ['Missing', amount(transfer?.shortfall)],
    ['Sender', transfer?.funder && html`<span class="mono wrap">${transfer.funder}</span>`],
    ['Recipient', transfer?.recipient && html`<span class="mono wrap">${transfer.recipient}</span>`],
    ...subject.checks.map(checkOf),
    ['Error', transfer?.error],
    ['Subscriptions', subject.subscriptions.join(', ')],
    [
      'Led to it',
      subject.related.map(
        (id) =>
          html`<a key=${id} class="mono" href=${`#/subject/${encodeURIComponent(id)}`}>${short(id)}</a>`,
      ),
    ],
    ['Last polled at', subject.polledAt && html`<${Ago} at=${subject.polledAt} />`],
  ];
  return html`<dl class="facts">
    ${rows
      .filter(
        ([, value]) =>
          value !== null &&
          value !== undefined &&
          value !== '' &&
          (!Array.isArray(value) || value.length > 0),
      )
      .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

/** The chain's verdict on a payment so far. @param {SubjectDetails['checks'][number]} check @returns {[string, unknown]} */
function checkOf({ payment, state, because, polls, moved, responses }) {
  const why = because === null ? '' : ` (${because})`;
  const times = state === 'waiting' ? `, polled ${polls} ${polls === 1 ? 'time' : 'times'}` : '';
  const states = responses.map(({ endpoint, outcome }) => `${endpoint}: ${outcome}`).join(', ');
  const moves = moved.map(
    (move) => html` · moved ${amount(move)} to <span class="mono wrap">${move.to}</span>`,
  );
  return [
    `${sentence(payment)} on the chain`,
    html`${state}${why}${times}${moves}${states === '' ? '' : ` · ${states}`}`,
  ];
}

/** A chain with its transaction. @param {{ chain?: string, chainId?: string, txHash?: string, txUrl?: string } | undefined} end @param {string | null} name */
function endOf(end, name) {
  const chain = end?.chain ?? name ?? end?.chainId;
  if (chain === undefined || chain === null) return null;
  const { txHash, txUrl } = end ?? {};
  if (txHash === undefined) return chain;
  const text = html`<span class="mono">${short(txHash)}</span>`;
  // Only to an explorer of the config or the built-in ones, and only by http or https.
  const isLink = txUrl !== undefined && /^https?:\/\//.test(txUrl);
  return html`${chain} ${isLink ? html`<a href=${txUrl} target="_blank" rel="noopener noreferrer">${text}<span class="visually-hidden"> (opens the explorer)</span></a>` : text}`;
}
