/** @import { ConfigState, ConsoleUser, LiveState, RenderedEvent } from './types.ts' */

import { call, read } from './api.js';
import { Clock, Loading, useData, useSlowTick } from './components.js';
import { short } from './format.js';
import { html, render, useCallback, useEffect, useRef, useState } from './htm.js';
import { follow } from './live.js';
import { Receivers } from './receivers.js';
import { Routes } from './routes.js';
import { SubjectView } from './subject.js';
import { SuspendedView } from './suspended.js';
import { Search, Transfers } from './transfers.js';
import { UndeliveredView } from './undelivered.js';

/** Shortest interval between two reads of the shown data. */
const REFRESH_MS = 1_500;
/** Longest interval: data that is reported late causes no event here. */
const IDLE_MS = 30_000;
const TOAST_MS = 6_000;
/** Wait before a page that could not begin tries again. */
const AGAIN_MS = 2_000;

const NAV = /** @type {const} */ ([
  ['transfers', 'Transfers', '#/'],
  ['undelivered', 'Undelivered', '#/undelivered'],
  ['suspended', 'Suspended', '#/suspended'],
  ['receivers', 'Receivers', '#/receivers'],
  ['routes', 'Routes', '#/routes'],
]);

/** @type {readonly string[]} */
const VIEWS = [...NAV.map(([view]) => view), 'search', 'subject'];

/** View and argument of the address. */
function placeOf() {
  const [view = '', ...rest] = location.hash.replace(/^#\/?/, '').split('/');
  let argument = rest.join('/');
  try {
    argument = decodeURIComponent(argument);
  } catch {
    // Undecoded: an author of the address recognises the searched text.
  }
  return { view: view || 'transfers', argument };
}

function App() {
  const [session, setSession] = useState(/** @type {ConsoleUser | null} */ (null));
  const [error, setError] = useState(/** @type {string | null} */ (null));
  const load = useCallback(async () => {
    try {
      setSession(await call('console/session'));
      setError(null);
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : 'The daemon gives no answer.');
    }
  }, []);
  useEffect(() => void load(), [load]);
  useEffect(() => {
    if (session !== null || error === null) return undefined;
    const timer = setInterval(load, AGAIN_MS);
    return () => clearInterval(timer);
  }, [session, error, load]);
  if (session === null) return html`<main class="plain"><${Loading} error=${error} /></main>`;
  if (session.scope === null) return html`<${SignIn} onSignedIn=${load} />`;
  return html`<${Console} session=${session} onSignedOut=${load} />`;
}

/** @param {{ onSignedIn: () => void }} props */
function SignIn({ onSignedIn }) {
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.currentTarget);
    const token = String(new FormData(form).get('token') ?? '').trim();
    if (token === '') return setProblem('Enter a token.');
    setBusy(true);
    try {
      await call('console/session', { method: 'POST', body: { token } });
      onSignedIn();
    } catch (failure) {
      const status = failure instanceof Error && 'status' in failure ? failure.status : 0;
      setProblem(
        status === 401
          ? 'This is no token of the config.'
          : failure instanceof Error
            ? failure.message
            : 'It failed.',
      );
    } finally {
      setBusy(false);
    }
  };
  return html`<main class="sign-in">
    <form class="sign-in-card" onSubmit=${submit}>
      <div class="brand"><img src="console/icon.svg" alt="" width="32" height="32" />Intentwatch</div>
      <h1>Sign in</h1>
      <input type="text" name="user" value="intentwatch" autocomplete="username" hidden />
      <label for="token">Token of the API</label>
      <input id="token" name="token" type="password" autocomplete="current-password" autofocus aria-describedby="token-hint token-problem" aria-invalid=${problem !== ''} />
      <p id="token-hint" class="dim">From the config: <code>server.token</code> or one of <code>server.tokens</code>.</p>
      <p id="token-problem" class="problem-text" role="alert">${problem}</p>
      <button class="button primary wide" type="submit" aria-busy=${busy}>Sign in</button>
    </form>
  </main>`;
}

/** @param {{ session: ConsoleUser, onSignedOut: () => void }} props */
function Console({ session, onSignedOut }) {
  const [place, setPlace] = useState(placeOf());
  const [live, setLive] = useState(/** @type {LiveState} */ ('connecting'));
  const [tick, setTick] = useState(0);
  const [reported, setReported] = useState('');
  const [toast, setToast] = useState(/** @type {{ text: string, isError: boolean } | null} */ (null));
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  const search = useRef(/** @type {HTMLInputElement | null} */ (null));
  const refresh = useCallback(() => setTick((before) => before + 1), []);
  const notify = useCallback(
    (/** @type {string} */ text, isError = false) => setToast({ text, isError }),
    [],
  );

  useEffect(() => {
    if (toast === null) return undefined;
    const timer = setTimeout(() => setToast(null), TOAST_MS);
    return () => clearTimeout(timer);
  }, [toast]);

  useEffect(() => {
    const moved = () => {
      setPlace(placeOf());
      scrollTo(0, 0);
      // Notifies a screen reader of the new view.
      requestAnimationFrame(() => main.current?.querySelector('h1')?.focus());
    };
    /** @param {KeyboardEvent} event */
    const pressed = (event) => {
      const isTyping = event.target instanceof Element && event.target.matches('input, select, textarea');
      if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      search.current?.focus();
    };
    addEventListener('hashchange', moved);
    addEventListener('keydown', pressed);
    // The address may have changed between the first read and the listener.
    setPlace(placeOf());
    return () => {
      removeEventListener('hashchange', moved);
      removeEventListener('keydown', pressed);
    };
  }, []);

  useEffect(() => {
    let due = false;
    const later = () => {
      if (due) return;
      due = true;
      setTimeout(() => {
        due = false;
        if (!document.hidden) refresh();
      }, REFRESH_MS);
    };
    const idle = setInterval(later, IDLE_MS);
    document.addEventListener('visibilitychange', refresh);
    const end = follow({
      onState: (state) => {
        setLive(state);
        if (state === 'live') refresh();
      },
      onEvents: (events) => {
        setReported(announcementOf(events));
        later();
      },
      onSignedOut,
    });
    return () => {
      clearInterval(idle);
      document.removeEventListener('visibilitychange', refresh);
      end();
    };
  }, [refresh, onSignedOut]);

  useEffect(() => {
    document.title = `${NAV.find(([view]) => view === place.view)?.[1] ?? 'Transfer'} · Intentwatch`;
  }, [place]);

  const signOut = async () => {
    try {
      await call('console/session', { method: 'DELETE' });
    } finally {
      onSignedOut();
    }
  };
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    event.preventDefault();
    const text = search.current?.value.trim() ?? '';
    if (text !== '') location.hash = `#/search/${encodeURIComponent(text)}`;
  };
  const props = { canAct: session.scope === 'admin', tick, notify, refresh };
  const current = ['subject', 'search'].includes(place.view) ? 'transfers' : place.view;
  return html`
    <a class="skip" href="#main" onClick=${(/** @type {Event} */ event) => {
      event.preventDefault();
      main.current?.querySelector('h1')?.focus();
    }}>Skip to content</a>
    <header class="top">
      <a class="brand" href="#/"><img src="console/icon.svg" alt="" width="26" height="26" />Intentwatch</a>
      <form class="search" role="search" onSubmit=${submit}>
        <label class="visually-hidden" for="search">Search by hash, wallet or metadata</label>
        <input id="search" ref=${search} type="search" placeholder="Hash, wallet or order=1042" autocomplete="off" spellcheck=${false} />
        <kbd aria-hidden="true">/</kbd>
      </form>
      <div class="top-end">
        <span class=${`live ${live}`} role="status">${{ connecting: 'Connecting', live: 'Live', stale: 'Not current', full: 'Not live' }[live]}</span>
        ${session.signIn && html`<button type="button" class="button quiet" onClick=${signOut}>Sign out</button>`}
      </div>
      <nav class="nav" aria-label="Pages">
        ${NAV.map(([view, label, href]) => html`<a key=${view} href=${href} aria-current=${view === current ? 'page' : undefined}>${label}</a>`)}
      </nav>
    </header>
    ${live === 'stale' && html`<p class="stale-banner" role="alert">The daemon gives no answer, or its Redis gives it none. What you see may be old; it is tried again.</p>`}
    ${live === 'full' && html`<p class="stale-banner" role="alert">Too many pages of this token are open: this one is read anew every ${IDLE_MS / 1_000} s, and is live once another is closed.</p>`}
    <${UnappliedConfig} />
    <main id="main" ref=${main}>
      ${place.view === 'transfers' && html`<${Transfers} list=${place.argument} ...${props} />`}
      ${place.view === 'search' && html`<${Search} key=${place.argument} text=${place.argument} ...${props} />`}
      ${place.view === 'subject' && html`<${SubjectView} id=${place.argument} ...${props} />`}
      ${place.view === 'undelivered' && html`<${UndeliveredView} ...${props} />`}
      ${place.view === 'suspended' && html`<${SuspendedView} ...${props} />`}
      ${place.view === 'receivers' && html`<${Receivers} ...${props} />`}
      ${place.view === 'routes' && html`<${Routes} ...${props} />`}
      ${!VIEWS.includes(place.view) && html`<h1 tabindex="-1">Not found</h1><p>There is no such page. <a href="#/">Transfers</a></p>`}
    </main>
    <footer class="foot dim">Intentwatch ${session.version}${session.scope === 'admin' ? '' : ' · signed in to read'}</footer>
    <div class="visually-hidden" aria-live="polite">${reported}</div>
    <div class="toasts" role="status">${toast !== null && html`<div class=${`toast ${toast.isError ? 'toast-bad' : ''}`}>${toast.text}</div>`}</div>
  `;
}

/** Explains why the present config file is not the running config. */
function UnappliedConfig() {
  const { data } = useData(
    async (signal) => /** @type {Promise<ConfigState>} */ (read('/config', signal)),
    'config',
    useSlowTick(),
  );
  if (data === null) return null;
  const { state, changed, removal, lastReload } = data;
  if (state === 'changed' && changed !== null) {
    return html`<div class="stale-banner" role="alert">
      <p>The config file has changed at <${Clock} at=${changed.at} />; <code>intentwatch reload</code> applies it.</p>
      <${Lines} text=${changed.error ?? ''} />
    </div>`;
  }
  if (state === 'refused' && lastReload !== null) {
    return html`<div class="stale-banner" role="alert">
      <p>The config file was refused at <${Clock} at=${lastReload.at} />; the one before it goes on.</p>
      <${Lines} text=${lastReload.error ?? ''} />
    </div>`;
  }
  if (removal === null) return null;
  const gone = /** @type {const} */ (['wallets', 'subjects', 'receivers'])
    .filter((kind) => removal[kind].removed > 0)
    .map((kind) => `${removal[kind].removed} of ${removal[kind].of} ${kind}`)
    .join(', ');
  return html`<div class="stale-banner" role="alert">
    ${
      removal.held
        ? html`<p>The config file is held since <${Clock} at=${removal.at} />: it would remove ${gone}. The one before it goes on. <code>intentwatch reload</code> lists what would go.</p>
          <${Lines} text=${`intentwatch reload --confirm ${removal.digest}`} />`
        : html`<p>The start at <${Clock} at=${removal.at} /> has removed ${gone}, for the config file names them no more. Put them back, or <code>intentwatch reload</code>.</p>`
    }
  </div>`;
}

/** @param {{ text: string }} props */
function Lines({ text }) {
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line) => html`<p class="mono wrap" key=${line}>${line}</p>`);
}

/** A sentence about new events for screen readers. @param {RenderedEvent[]} events */
function announcementOf(events) {
  const [first] = events;
  if (events.length !== 1 || first === undefined) return `${events.length} events`;
  return `${first.type.replace('.', ' ')}, ${short(first.data.subject.id)}`;
}

const root = document.getElementById('app');
if (root !== null) {
  root.replaceChildren();
  render(html`<${App} />`, root);
}
