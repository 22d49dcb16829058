import type { AnyEvent, EventKind, EventOf, EventType } from './event.ts';
import { EVENT_TYPES } from './event-types.ts';

/** Handles an event. The webhook is answered 2xx when the handler has succeeded; when it throws, the event is sent again. */
export type Handler<Event extends AnyEvent, C> = (event: Event, context: C) => unknown;

/** A handler for each type. With `satisfies Handlers<C>` the compiler names the missing ones. */
export type Handlers<C> = { readonly [Type in EventType]: Handler<EventOf<Type>, C> };

/** Scope of a handler: a type, all types of a kind, or all events without a handler of their own. */
export type Pattern = EventType | `${EventKind}.*` | '*';

/** Events that a pattern matches. */
export type EventsOf<P extends Pattern> = P extends EventType
  ? EventOf<P>
  : P extends `${infer Kind}.*`
    ? AnyEvent & { data: { subject: { kind: Kind } } }
    : AnyEvent;

/** Handlers by pattern. */
export class HandlerTable<C> {
  readonly #handlers = new Map<string, Handler<AnyEvent, C>>();

  /** Throws where the pattern has a handler already: only one would run. */
  add<P extends Pattern>(pattern: P, handler: Handler<EventsOf<P>, C>): void {
    const isOne = (event: AnyEvent): event is AnyEvent & EventsOf<P> => isFor(event, pattern);
    this.#set(pattern, { isOne, handler });
  }

  #set<Event extends AnyEvent>(
    pattern: Pattern,
    { isOne, handler }: { isOne: (event: AnyEvent) => event is Event; handler: Handler<Event, C> },
  ): void {
    if (this.#handlers.has(pattern)) throw new Error(`found a second handler for ${pattern}, expected one`);
    this.#handlers.set(pattern, (event, context) => (isOne(event) ? handler(event, context) : undefined));
  }

  addAll(handlers: Partial<Handlers<C>>): void {
    const unknown = Object.keys(handlers).find((type) => !EVENT_TYPES.some((one) => one === type));
    if (unknown !== undefined)
      throw new Error(`found a handler for ${unknown}, expected event types of this version`);
    for (const type of EVENT_TYPES) this.#addOf(type, handlers);
  }

  #addOf<Type extends EventType>(type: Type, handlers: Partial<Handlers<C>>): void {
    const handler = handlers[type];
    const isOne = (event: AnyEvent): event is AnyEvent & EventOf<Type> => isFor(event, type);
    if (handler !== undefined) this.#set(type, { isOne, handler });
  }

  /** The most specific handler of an event: of its type, of its kind, or of all. Null for none. */
  for(event: AnyEvent): Handler<AnyEvent, C> | null {
    const [kind] = event.type.split('.');
    return (
      this.#handlers.get(event.type) ?? this.#handlers.get(`${kind}.*`) ?? this.#handlers.get('*') ?? null
    );
  }
}

function isFor(event: AnyEvent, pattern: Pattern): boolean {
  return pattern === '*' || event.type === pattern || `${event.type.split('.')[0]}.*` === pattern;
}
