import { ACCEPTED, type Answer, answerOf } from './answer.ts';
import { bodyTooLarge, RetryLater, WebhookError } from './error.ts';
import type { AnyEvent } from './event.ts';
import { MAX_WEBHOOK_BYTES } from './event-types.ts';
import { type EventsOf, type Handler, type Handlers, HandlerTable, type Pattern } from './handlers.ts';
import type { Claim, Inbox } from './inbox/inbox.ts';
import { createVerifier, type VerifiedWebhook, type VerifyOptions, type WebhookRequest } from './verify.ts';

/** Context of a handler beside the event. `attemptedAt` is the time of this attempt; `isReplay`: an operator sends it again. */
export type Context = { attemptedAt: Date; isReplay: boolean };

/** Context of a handler with an inbox. */
export type InboxContext<Tx> = Context &
  Claim & {
    /** Connection for writes, which are stored together with the event's id, or not at all. */
    tx: Tx;
  };

/** Options of a consumer. */
export type ConsumerOptions = VerifyOptions & {
  /** The largest body that is read. Default: 19,999, the largest that the daemon sends. */
  maxBodyBytes?: number;
  /** Called for every webhook that is not answered 2xx. Default: `console.error`. */
  onError?: (error: unknown, webhook: { id: string | null }) => void;
};

/** Options of a consumer with an inbox. */
export type InboxOptions<Tx> = {
  inbox: Inbox<Tx>;
  /** Treatment of an event that is older than a handled one about the same fact. Default: `handle`. */
  stale?: 'handle' | 'skip';
};

/** Receives webhooks. The adapters pass it the requests, and send its answers. */
export type Consumer<C> = {
  readonly maxBodyBytes: number;
  /**
   * Registers a handler for a type (`intent.filled`), for the types of a kind that have none (`intent.*`), or for all others
   * (`*`), including types that this version does not know. Of the matching handlers, only the most specific runs.
   */
  on<const P extends Pattern>(pattern: P, handler: Handler<EventsOf<P>, C>): Consumer<C>;
  /** Registers handlers for several types. */
  on(handlers: Partial<Handlers<C>>): Consumer<C>;
  /** Verifies and handles a webhook. It never rejects: the answer states the error. */
  receive(request: WebhookRequest): Promise<Answer>;
  /** Answer for a webhook that could not even be read; calls `onError`. */
  refuse(error: unknown): Answer;
};

type Run<C> = (webhook: VerifiedWebhook, handler: Handler<AnyEvent, C>) => Promise<void>;

/** Makes a consumer whose handlers run once in effect: the inbox stores the handled events. */
export function createConsumer<Tx>(options: ConsumerOptions & InboxOptions<Tx>): Consumer<InboxContext<Tx>>;
/** Makes a consumer whose handlers may run more than once for an event: they have to recognise its id. */
export function createConsumer(options: ConsumerOptions & { inbox?: never }): Consumer<Context>;
export function createConsumer<Tx>(
  options: ConsumerOptions & Partial<InboxOptions<Tx>>,
): Consumer<InboxContext<Tx>> | Consumer<Context> {
  const { inbox, stale = 'handle' } = options;
  if (inbox === undefined)
    return consumerOf<Context>(options, async ({ event, attemptedAt, isReplay }, handler) => {
      await handler(event, { attemptedAt, isReplay });
    });
  return consumerOf<InboxContext<Tx>>(options, async ({ event, attemptedAt, isReplay }, handler) => {
    await inbox.run(event, async (tx, claim) => {
      if (claim.isStale && stale === 'skip') return;
      await handler(event, { attemptedAt, isReplay, tx, ...claim });
    });
  });
}

function consumerOf<C>(options: ConsumerOptions, run: Run<C>): Consumer<C> {
  const { maxBodyBytes = MAX_WEBHOOK_BYTES, onError = reportOnConsole } = options;
  const verify = createVerifier(options);
  const handlers = new HandlerTable<C>();
  /** By event id: a repeated delivery during the handling waits for the same end, without a connection of its own. */
  const underWay = new Map<string, Promise<void>>();

  const handle = async (webhook: VerifiedWebhook): Promise<void> => {
    const handler = handlers.for(webhook.event);
    if (handler === null) return;
    const { id } = webhook;
    const running = underWay.get(id);
    if (running !== undefined) return running;
    const ending = run(webhook, handler).finally(() => underWay.delete(id));
    underWay.set(id, ending);
    return ending;
  };

  const fail = (error: unknown, id: string | null): Answer => {
    onError(error, { id });
    if (error instanceof WebhookError)
      return answerOf(error.status, { code: error.code, detail: error.message });
    if (error instanceof RetryLater)
      return answerOf(503, {
        code: 'retry_later',
        detail: 'to be sent again later',
        retryAfter: error.seconds,
      });
    return answerOf(500, { code: 'handler_failed', detail: 'the handler failed; its log has the reason' });
  };

  const consumer: Consumer<C> = {
    maxBodyBytes,
    on<const P extends Pattern>(
      first: P | Partial<Handlers<C>>,
      handler?: Handler<EventsOf<P>, C>,
    ): Consumer<C> {
      if (typeof first === 'object') handlers.addAll(first);
      else if (handler !== undefined) handlers.add(first, handler);
      return consumer;
    },
    async receive(request) {
      let id: string | null = null;
      try {
        if (request.body?.byteLength > maxBodyBytes) throw bodyTooLarge(maxBodyBytes);
        const webhook = verify(request);
        id = webhook.id;
        await handle(webhook);
        return ACCEPTED;
      } catch (error) {
        return fail(error, id);
      }
    },
    refuse: (error) => fail(error, null),
  };
  return consumer;
}

function reportOnConsole(error: unknown, { id }: { id: string | null }): void {
  // For a refused webhook the reason is enough; for a failed handler, the stack is needed.
  const reason = error instanceof WebhookError ? `${error.code}: ${error.message}` : error;
  console.error(`webhook ${id ?? 'refused'}:`, reason);
}
