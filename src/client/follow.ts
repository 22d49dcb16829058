import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { type EventSourceMessage, EventSourceParserStream, ParseError } from 'eventsource-parser/stream';
import type { RenderedEvent } from '../domain/events/event.ts';
import { LIMITS } from '../domain/limits.ts';
import { TryAgainError } from '../exit.ts';
import { listEvents, streamEvents } from '../server/api/routes/log.ts';
import { EVENT } from '../server/api/shapes.ts';
import type { ApiClient } from './api-client.ts';

/** Filter of the followed events and their start: after a cursor, since a time, or (neither) from now on. */
export type EventQuery = {
  type?: string[] | undefined;
  subject?: string | undefined;
  since?: string | undefined;
  cursor?: string | null;
};

/** An event as it came, and the cursor after it. */
export type FollowedEvent = { event: RenderedEvent; raw: unknown; cursor: string };

/** Callbacks of the connection's state, and `signal`, which ends it. */
export type FollowOptions = {
  signal: AbortSignal;
  /** Called when the stream begins: no later event is missed. */
  onStart?: () => void;
  onCut: (reason: string) => void;
  onBack: () => void;
};

const RETRY_MS = 1_000;

/** A daemon whose Redis answers sends a sign of life every 5 s. */
const SILENT_MS = 1_000 * LIMITS.daemonEvent.seconds;

const MOST_CHARACTERS = LIMITS.daemonEvent.bytes;

/**
 * Yields the events of a daemon as they are made. A lost connection is made again without missing an event: there is
 * a cursor from the start. Throws when the first connection fails, and when the daemon refuses a later one.
 */
export async function* followDaemon(
  client: ApiClient,
  wanted: EventQuery,
  { signal, onStart, onCut, onBack }: FollowOptions,
): AsyncGenerator<FollowedEvent> {
  const filter = { type: wanted.type, subject: wanted.subject };
  let cursor = wanted.cursor ?? null;
  if (cursor === null) {
    const { body } = await client.call(listEvents, {
      query: { ...filter, since: wanted.since ?? '1ms', limit: 1 },
    });
    cursor = body.next ?? '';
    onStart?.();
    for (const event of body.events) yield { event, raw: event, cursor };
  } else onStart?.();
  for (let isCut = false; !signal.aborted; ) {
    try {
      for await (const one of streamOnce(client, { ...filter, after: cursor }, signal)) {
        if (isCut) onBack();
        isCut = false;
        if (one === null) continue;
        yield one;
        cursor = one.cursor;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof CutError) && !(isCut && error instanceof TryAgainError)) throw error;
      if (!isCut) onCut(error.message);
    }
    if (signal.aborted) return;
    isCut = true;
    await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined);
  }
}

class CutError extends Error {
  override readonly name = 'CutError';
}

/** Events of one connection; null once it is established. Throws a CutError when it ends. */
async function* streamOnce(
  client: ApiClient,
  query: { type: string[] | undefined; subject: string | undefined; after: string },
  signal: AbortSignal,
): AsyncGenerator<FollowedEvent | null> {
  const silent = new AbortController();
  let timer = setTimeout(() => silent.abort(), SILENT_MS);
  const response = await client
    .send(streamEvents, { query }, { signal: AbortSignal.any([signal, silent.signal]) })
    .finally(() => clearTimeout(timer));
  yield null;
  const alive = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => silent.abort(), SILENT_MS);
  };
  alive();
  const messages = Readable.toWeb(response)
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream({ onComment: alive, maxBufferSize: MOST_CHARACTERS }))
    .getReader();
  for (;;) {
    const next = await messages.read().catch((error: unknown) => {
      // After a reconnect the same event would come again.
      if (!(error instanceof ParseError)) return undefined;
      throw new Error(`found an event that is too long, expected at most ${MOST_CHARACTERS} characters`);
    });
    clearTimeout(timer);
    if (next?.value === undefined) break;
    yield eventOf(next.value);
    alive();
  }
  throw new CutError(silent.signal.aborted ? 'nothing came any more' : 'the connection was cut');
}

function eventOf({ id, data }: EventSourceMessage): FollowedEvent {
  const raw: unknown = JSON.parse(data);
  const event = EVENT.safeParse(raw);
  if (event.success && id !== undefined) return { event: event.data, raw, cursor: id };
  throw new Error('found an event that cannot be read, expected one as this version makes it');
}
