import { z } from 'zod';
import type { BooksReader } from '../../books/reader.ts';
import type { AddedReceiverDeps } from '../../operations/added-receivers.ts';
import type { ConfigControl } from '../../operations/config-state.ts';
import type { FindEvent } from '../../operations/events.ts';
import type { LogTail } from '../../operations/log-tail.ts';
import type { OperationContext } from '../../operations/operation.ts';
import type { ReceiverSetup } from '../../operations/test-receiver.ts';
import type { Settled } from '../../store/suspensions.ts';

export const API_BASE = '/api/v1';

/** Rights of tokens; each includes those before it. `read` changes nothing, `consume` changes consumers of the log. */
export const SCOPES = ['read', 'consume', 'admin'] as const;

/** The right that a route needs, and that a token has. */
export type Scope = (typeof SCOPES)[number];

/** True when a token with one right may use a route that needs another. */
export function includesScope(held: Scope, needed: Scope): boolean {
  return SCOPES.indexOf(held) >= SCOPES.indexOf(needed);
}

/** An answer of a route: a body as JSON, or a text that is sent in parts for as long as it is read. */
export type RouteAnswer =
  | { status: number; body: unknown; headers?: Readonly<Record<string, string>> }
  | { status: number; stream: AsyncIterable<string>; contentType: string };

/** One kind of answer of a route. */
export type AnswerShape<T = unknown> = { description: string; schema: z.ZodType<T>; contentType?: string };

/** Components of a running daemon that the API uses. `setup`: the receivers of its config under their current names. */
export type ApiContext = {
  operations: OperationContext;
  tail: LogTail;
  setup: () => ReceiverSetup;
  apiReceivers: AddedReceiverDeps;
  /** Null where no books are stored. */
  books: BooksReader | null;
  control: ConfigControl;
  /** Ends at once all suspensions under the subscription keys that `isMeant` selects. */
  endSuspended: (isMeant: (key: string) => boolean) => Promise<Settled[]>;
};

/**
 * The context of a route. `deps` throws a problem before the daemon has started. `signal` aborts when the client has gone.
 * `key` names the request, so that a repeated request is done once; null: it has no name. `routes` is the whole table.
 */
export type RouteContext = {
  deps: () => ApiContext;
  findEvent: FindEvent;
  signal: AbortSignal;
  key: string | null;
  lastEventId: string | null;
  routes: readonly ApiRoute[];
};

/** Description and access rules of a route. */
export type RouteFacts = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `/api/v1`, with parameters as `{name}`. */
  path: string;
  /** Its name in clients that are made from the document. */
  operation: string;
  group: 'events' | 'subjects' | 'corridors' | 'receivers' | 'deliveries' | 'books' | 'config' | 'document';
  summary: string;
  description?: string;
  scope: Scope;
  /** A signed link to this event replaces the token. */
  acceptsLink?: true;
  /** The route follows the log, always or when the request waits. It may then take longer, and holds a stream slot. */
  follows?: 'always' | 'waiting';
  /** The answer holds a secret: it is encrypted where it is stored for a repeated request. */
  answerHasSecret?: true;
  timeoutMs?: number;
  answers: Readonly<Record<number, AnswerShape>>;
  problems?: Readonly<Record<number, string>>;
};

type Shapes<P, Q, B, T> = {
  params: P;
  query: Q;
  body: B;
  answers: Readonly<Record<number, AnswerShape<T>>>;
};

type RouteSpec<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, T> = RouteFacts &
  Shapes<P, Q, B, T> & {
    handle: (
      input: { params: z.output<P>; query: z.output<Q>; body: z.output<B> },
      context: RouteContext,
    ) => Promise<RouteAnswer>;
  };

/** A request as received, not yet parsed. */
export type RawInput = { params: unknown; query: unknown; body: unknown };

/** A fault of a request; `place` is like `query.limit`. */
export type InputIssue = { place: string; found: string; expected: string };

/** A route of the API. Server, document and tests use this one declaration. */
export type ApiRoute = RouteFacts & {
  params: z.ZodType;
  query: z.ZodType;
  body: z.ZodType;
  takesBody: boolean;
  /** Reads the request; returns a list of its faults, or the call. */
  read: (raw: RawInput) => InputIssue[] | ((context: RouteContext) => Promise<RouteAnswer>);
};

/**
 * True when a request of a route may carry an `Idempotency-Key`: only a route that needs an admin token. A consumer that is
 * moved or removed twice ends up the same. So a token without that right stores no keys, and cannot use up their number.
 */
export function acceptsIdempotencyKey({ method, scope }: RouteFacts): boolean {
  return method === 'POST' && scope === 'admin';
}

const NO_BODY = z.undefined({ error: 'no body' });

/** Shapes of routes without parameters, query and body; each is replaced where a route has one. */
export const NO_INPUT = { params: z.strictObject({}), query: z.strictObject({}), body: NO_BODY };

/** A route whose shapes its caller knows. */
export type TypedRoute<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, T> = ApiRoute &
  Shapes<P, Q, B, T>;

/** Declares a route. */
export function defineRoute<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, T>({
  handle,
  ...route
}: RouteSpec<P, Q, B, T>): TypedRoute<P, Q, B, T> {
  const { params, query, body } = route;
  return {
    ...route,
    takesBody: !Object.is(body, NO_BODY),
    read: (raw) => {
      const read = {
        params: params.safeParse(raw.params),
        query: query.safeParse(raw.query),
        body: body.safeParse(raw.body),
      };
      if (!read.params.success || !read.query.success || !read.body.success) {
        return (['params', 'query', 'body'] as const).flatMap((part) =>
          issuesOf(part, read[part].error, raw[part]),
        );
      }
      const input = { params: read.params.data, query: read.query.data, body: read.body.data };
      return (context) => handle(input, context);
    },
  };
}

const MOST_SHOWN = 60;

function issuesOf(part: keyof RawInput, error: z.ZodError | undefined, raw: unknown): InputIssue[] {
  return (error?.issues ?? []).flatMap((issue) => {
    const path = issue.path.map(String);
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => ({
        place: [part, ...path, key].join('.').slice(0, MOST_SHOWN),
        found: 'a member that is not known here',
        expected: 'none of this name',
      }));
    }
    const value = valueAt(raw, issue.path);
    return [{ place: [part, ...path].join('.'), found: foundOf(part, value), expected: expectedOf(issue) }];
  });
}

function expectedOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_value') return `one of ${issue.values.map(String).join(', ')}`;
  return issue.message;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  // A query that gives a list's only value gives it without the list.
  if (typeof value === 'string' && key === 0) return value;
  if (typeof value !== 'object' || value === null) return undefined;
  return valueAt(Object.entries(value).find(([name]) => name === String(key))?.[1], rest);
}

/** The found value, in a line. A text of a body may be a secret, and is not shown. */
function foundOf(part: keyof RawInput, value: unknown): string {
  switch (typeof value) {
    case 'undefined':
      return 'nothing';
    case 'number':
    case 'boolean':
      return String(value);
    case 'string':
      if (part === 'body') return `a text of ${value.length} characters`;
      return value.length > MOST_SHOWN
        ? `${JSON.stringify(value.slice(0, MOST_SHOWN))}…`
        : JSON.stringify(value);
    default:
      return value === null ? 'null' : Array.isArray(value) ? 'a list' : 'an object';
  }
}
