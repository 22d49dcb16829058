import { isUtf8 } from 'node:buffer';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { JsonLimitError, type JsonLimits, parseJson, UnstorableJsonError } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { STATUS_CODES } from '../../network/node-http.ts';
import { type FindEvent, FuturePlaceError, LostPlaceError } from '../../operations/events.ts';
import { RefusedError, UnknownError } from '../../operations/operation.ts';
import { withTimeout } from '../../with-timeout.ts';
import { ProblemError, sendProblem } from '../problem.ts';
import type { Access, AccessRules } from './access.ts';
import { onlyOnce } from './idempotency.ts';
import { readDocument } from './openapi.ts';
import { API_BASE, type ApiContext, type ApiRoute, type RouteAnswer, type RouteContext } from './route.ts';
import {
  addOneReceiver,
  changeOneReceiver,
  removeOneReceiver,
  replaceOneReceiver,
  rotateOneSecret,
} from './routes/added-receivers.ts';
import { readBooks } from './routes/books.ts';
import { readConfig, reload } from './routes/config.ts';
import { acknowledgeEvents, removeConsumer } from './routes/consumers.ts';
import { listCorridors, readAllLearned, removeAllLearned } from './routes/learned.ts';
import { listEvents, readEvent, streamEvents } from './routes/log.ts';
import {
  listOfReceivers,
  RECEIVER_ACTIONS,
  readOneReceiver,
  resendToReceiver,
  retryOfReceiver,
  testOneReceiver,
} from './routes/receivers.ts';
import { readReplay, resendOfEvent, resendOfSubject } from './routes/resend.ts';
import { listDeliveriesOfSubject, listWatched, readSubject, recheckSubject } from './routes/subjects.ts';
import { listOfDropped, listOfSuspended, removeOfSuspended } from './routes/suspended.ts';
import { track, untrack } from './routes/tracking.ts';
import {
  listOfQuarantine,
  listOfUndelivered,
  listOfUnmatched,
  replayOfQuarantine,
} from './routes/undelivered.ts';

/** Options of the API. `deps` is null before the daemon has started. */
export type ApiOptions = AccessRules & {
  findEvent: FindEvent;
  deps: () => ApiContext | null;
};

const TIMEOUT_MS = 5_000;

/** Number of streams and waiting requests at once: of all clients, and of one pair of token and address. */
const MAX_STREAMS = 64;
const MAX_STREAMS_OF_CALLER = 16;

/** Interval of checks that a follower may still follow. */
const CHECK_EVERY_MS = 5_000;

/** Longest silence of a connection that follows. It sends something, or ends, sooner than that. */
const SILENT_MS = 90_000;

/** Adds every route of the table to the server. */
export function routeApi(app: FastifyInstance, access: Access, options: ApiOptions): void {
  const streams = new Streams();
  readBodies(app, LIMITS.api);
  for (const route of ROUTES) addRoute(app, route, { access, streams, options });
}

/** Reads bodies as JSON within these limits, and accepts no others. */
export function readBodies(app: FastifyInstance, limits: JsonLimits): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    const bytes = Buffer.from(body);
    if (!isUtf8(bytes)) return done(new ProblemError(400, 'found bytes that are no UTF-8, expected JSON'));
    try {
      done(null, parseJson(bytes.toString('utf8'), { limits, unstorable: 'refuse' }));
    } catch (error) {
      if (error instanceof UnstorableJsonError) return done(new ProblemError(400, error.message));
      if (error instanceof JsonLimitError) return done(new ProblemError(400, `found ${error.message}`));
      done(new ProblemError(400, 'found a body that is no JSON, expected JSON'));
    }
  });
}

type Serving = { access: Access; streams: Streams; options: ApiOptions };

function addRoute(app: FastifyInstance, route: ApiRoute, { access, streams, options }: Serving): void {
  app.route({
    method: route.method,
    url: `${API_BASE}${route.path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
    exposeHeadRoute: false,
    bodyLimit: LIMITS.api.bytes,
    config: { takesBody: route.takesBody },
    // Before the body is read: the body of an unknown client is not read.
    onRequest: async (request, reply) => {
      reply.header('cache-control', 'no-store').header('x-content-type-options', 'nosniff');
      const denial = await access.check(request, route);
      if (denial === null) return;
      if (announcesBody(request)) reply.header('connection', 'close');
      return sendProblem(reply.headers(denial.headers ?? {}), denial.status, denial.detail);
    },
    errorHandler: (error, _request, reply) => void sendError(reply, error),
    handler: async (request, reply) => {
      const call = route.read({ params: request.params, query: request.query, body: request.body });
      if (typeof call !== 'function') {
        const [first] = call;
        const detail = `${first?.place}: found ${first?.found}, expected ${first?.expected}`;
        return sendProblem(reply, 400, detail, call);
      }
      const gone = new AbortController();
      reply.raw.once('close', () => gone.abort());
      const context: RouteContext = {
        deps: () => depsOf(options),
        findEvent: options.findEvent,
        signal: gone.signal,
        key: null,
        lastEventId: textOf(request.headers['last-event-id']),
        routes: ROUTES,
      };
      if (!followsLog(route, request))
        return send(reply, await timed(() => onlyOnce(request, { route, call, context }), route));
      const release = streams.take(access.callerOf(request));
      const check = setInterval(() => void endUnlessAllowed(request, route, access), CHECK_EVERY_MS);
      reply.raw.once('close', () => {
        clearInterval(check);
        release();
      });
      request.raw.setTimeout(SILENT_MS);
      return send(reply, await call(context));
    },
  });
}

class Streams {
  readonly #byCaller = new Map<string, number>();
  #count = 0;

  /** Counts one more, until the returned function is called. Throws the refusal when there are too many. */
  take(caller: string): () => void {
    const own = this.#byCaller.get(caller) ?? 0;
    if (own >= MAX_STREAMS_OF_CALLER) {
      const detail = `found ${own} streams of this token and address, expected fewer than ${MAX_STREAMS_OF_CALLER}`;
      throw new ProblemError(429, detail, RETRY_STREAM);
    }
    if (this.#count >= MAX_STREAMS) {
      const detail = `found ${this.#count} streams of all clients, expected fewer than ${MAX_STREAMS}`;
      throw new ProblemError(503, detail, RETRY_STREAM);
    }
    this.#byCaller.set(caller, own + 1);
    this.#count += 1;
    return () => {
      this.#count -= 1;
      const left = (this.#byCaller.get(caller) ?? 0) - 1;
      if (left > 0) this.#byCaller.set(caller, left);
      else this.#byCaller.delete(caller);
    };
  }
}

const RETRY_STREAM = { 'retry-after': '10', connection: 'close' };

/** Ends a request that follows the log once its token is removed or its session has ended. */
async function endUnlessAllowed(request: FastifyRequest, route: ApiRoute, access: Access): Promise<void> {
  if (!(await access.stillMay(request, route))) request.raw.destroy();
}

function followsLog({ follows }: ApiRoute, { query }: FastifyRequest): boolean {
  if (follows !== 'waiting') return follows === 'always';
  return typeof query === 'object' && query !== null && 'wait' in query;
}

/** True when the headers of a request announce a body. */
export function announcesBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function depsOf({ deps }: ApiOptions): ApiContext {
  const running = deps();
  if (running !== null) return running;
  throw new ProblemError(503, 'the daemon has not started yet; try again later', { 'retry-after': '2' });
}

async function timed(
  call: () => Promise<RouteAnswer>,
  { timeoutMs = TIMEOUT_MS }: ApiRoute,
): Promise<RouteAnswer> {
  const answer = await withTimeout(call(), timeoutMs);
  if (answer !== null) return answer;
  throw new ProblemError(503, 'Redis gave no answer in time; try again later', { 'retry-after': '5' });
}

function send(reply: FastifyReply, answer: RouteAnswer): FastifyReply {
  if ('stream' in answer)
    return reply.code(answer.status).type(answer.contentType).send(Readable.from(answer.stream));
  const { status, body, headers = {} } = answer;
  return reply
    .code(status)
    .headers(headers)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(body));
}

function sendError(reply: FastifyReply, error: unknown): FastifyReply {
  if (error instanceof ProblemError)
    return sendProblem(reply.headers(error.headers), error.status, error.message);
  if (error instanceof UnknownError) return sendProblem(reply, 404, error.message);
  if (error instanceof RefusedError) return sendProblem(reply, 409, error.message);
  if (error instanceof FuturePlaceError) return sendProblem(reply, 400, error.message);
  if (error instanceof LostPlaceError) return sendProblem(reply, 410, error.message);
  const status = statusOf(error);
  if (status === 413) {
    return sendProblem(
      reply.header('connection', 'close'),
      413,
      `found a body that is too long, expected at most ${LIMITS.api.bytes} bytes`,
    );
  }
  if (status === 415)
    return sendProblem(reply, 415, 'found a body that is no JSON, expected Content-Type: application/json');
  if (status >= 400 && status < 500) {
    return sendProblem(reply, status, `found a request that cannot be read (${STATUS_CODES[status]})`);
  }
  // Not its message, which may quote any text.
  return sendProblem(reply, 503, 'what was requested cannot be read or done now; try again later');
}

function textOf(header: string | string[] | undefined): string | null {
  return typeof header === 'string' && header !== '' ? header : null;
}

function statusOf(error: unknown): number {
  if (typeof error !== 'object' || error === null || !('statusCode' in error)) return 500;
  return typeof error.statusCode === 'number' ? error.statusCode : 500;
}

export const ROUTES: readonly ApiRoute[] = [
  listWatched,
  readSubject,
  listDeliveriesOfSubject,
  track,
  untrack,
  recheckSubject,
  listCorridors,
  readAllLearned,
  removeAllLearned,
  listEvents,
  streamEvents,
  readEvent,
  acknowledgeEvents,
  removeConsumer,
  listOfQuarantine,
  replayOfQuarantine,
  listOfUndelivered,
  listOfUnmatched,
  resendOfEvent,
  resendOfSubject,
  resendToReceiver,
  retryOfReceiver,
  readReplay,
  listOfReceivers,
  addOneReceiver,
  readOneReceiver,
  replaceOneReceiver,
  changeOneReceiver,
  removeOneReceiver,
  rotateOneSecret,
  ...Object.values(RECEIVER_ACTIONS),
  testOneReceiver,
  readBooks,
  readConfig,
  reload,
  listOfSuspended,
  listOfDropped,
  removeOfSuspended,
  readDocument,
];
