/** @import { LiveState, RenderedEvent } from './types.ts' */
import { API, retryMsOf, UNAVAILABLE } from './api.js';

/** The stream sends data at least every 5 s while Redis answers; one that is silent for longer than this is cut off. */
const SILENT_MS = 12_000;
const RETRY_MS = 2_000;

/**
 * Follows the events of the daemon. After a cut it reconnects by itself and gets all events since. A request that the daemon
 * could not serve cuts it off too.
 * @param {{ onState: (state: LiveState) => void, onEvents: (events: RenderedEvent[]) => void, onSignedOut: () => void }} handlers
 * @returns {() => void} ends it
 */
export function follow({ onState, onEvents, onSignedOut }) {
  const ended = new AbortController();
  let lastId = '';
  const run = async () => {
    while (!ended.signal.aborted) {
      let retryMs = RETRY_MS;
      /** @type {LiveState} */
      let state = 'stale';
      try {
        const { status, afterMs } = await listen();
        if (status === 401) return onSignedOut();
        // The place has expired from the log: the page reads its data again anyway.
        if (status === 410 || status === 400) lastId = '';
        if (status === 429) state = 'full';
        retryMs = afterMs;
      } catch {
        // Cut off: it is retried.
      }
      if (ended.signal.aborted) return;
      onState(state);
      await new Promise((done) => setTimeout(done, retryMs));
    }
  };

  /** Reads one connection to its end. Resolves with its status, and the wait in ms before the next. */
  async function listen() {
    const cut = new AbortController();
    const abort = () => cut.abort();
    ended.signal.addEventListener('abort', abort);
    addEventListener(UNAVAILABLE, abort);
    let timer = setTimeout(abort, SILENT_MS);
    try {
      const headers = lastId === '' ? undefined : { 'last-event-id': lastId };
      const answer = await fetch(`${API}/events/stream`, { signal: cut.signal, ...(headers && { headers }) });
      const ending = { status: answer.status, afterMs: retryMsOf(answer) };
      if (!answer.ok || answer.body === null) return ending;
      onState('live');
      let rest = '';
      for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
        clearTimeout(timer);
        timer = setTimeout(abort, SILENT_MS);
        const blocks = (rest + chunk).split('\n\n');
        rest = blocks.pop() ?? '';
        const events = blocks.flatMap(eventOf);
        if (events.length > 0) onEvents(events);
      }
      return ending;
    } finally {
      clearTimeout(timer);
      ended.signal.removeEventListener('abort', abort);
      removeEventListener(UNAVAILABLE, abort);
    }
  }

  /** @param {string} block @returns {RenderedEvent[]} */
  function eventOf(block) {
    const fields = new Map(block.split('\n').map((line) => pairOf(line)));
    const data = fields.get('data');
    if (data === undefined) return [];
    lastId = fields.get('id') ?? lastId;
    return [JSON.parse(data)];
  }

  void run();
  return () => ended.abort();
}

/** @param {string} line @returns {[string, string]} */
function pairOf(line) {
  const at = line.indexOf(': ');
  return at === -1 ? [line, ''] : [line.slice(0, at), line.slice(at + 2)];
}
