import { STATUS_CODES } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ProtoMemberError, parseJson } from '../../domain/parse-json.ts';
import { RefusedError, UnknownError } from '../../operations/errors.ts';
import { FuturePlaceError, LostPlaceError } from '../../operations/events.ts';
import type { FindEvent } from '../../operations/find-event.ts';
import { withTimeout } from '../../with-timeout.ts';
import { sendProblem } from '../problem.ts';
import type { Access, AccessRules } from './access.ts';
import { onlyOnce } from './idempotency.ts';
import { ProblemError } from './problem-error.ts';
import type { Answer, ApiParts, ApiRoute, RouteContext } from './route.ts';
import { ROUTES } from './routes.ts';

/** Where every path of the API begins. */
export const API_BASE = '/api/v1';

/** What the API is made from. `parts` is null before the daemon has started. */
export type ApiOptions = AccessRules & {
  findEvent: FindEvent;
  parts: () => ApiParts | null;
};

/** The longest body: a quote is handed over as whole JSON. */
const MOST_BYTES = 256 * 1_024;

/** How long a request may take that waits for nothing but Redis. */
const TIMEOUT_MS = 5_000;

/** How many may wait for what comes next in the log at once. */
const MOST_FOLLOWERS = 64;

/** How often it is checked whether who follows may still do so. */
const CHECK_EVERY_MS = 5_000;

/** How long nothing may pass on a connection that follows: it says something, or ends, sooner than that by itself. */
const SILENT_MS = 90_000;

/** Adds every route of the table to the server. */
export function routeApi(app: FastifyInstance, access: Access, options: ApiOptions): void {
  const followers = { count: 0 };
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, text, done) => {
    try {
      done(null, parseJson(String(text), { proto: 'refuse' }));
    } catch (error) {
      if (error instanceof ProtoMemberError) return done(new ProblemError(400, error.message));
      done(new ProblemError(400, 'found a body that is no JSON, expected JSON'));
    }
  });
  for (const route of ROUTES) addRoute(app, route, { access, followers, options });
}

type Serving = { access: Access; followers: { count: number }; options: ApiOptions };

function addRoute(app: FastifyInstance, route: ApiRoute, { access, followers, options }: Serving): void {
  app.route({
    method: route.method,
    url: `${API_BASE}${route.path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
    exposeHeadRoute: false,
    bodyLimit: MOST_BYTES,
    config: { takesBody: route.takesBody },
    // Before the body is read: a stranger's is not.
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
        parts: () => partsOf(options),
        findEvent: options.findEvent,
        signal: gone.signal,
        key: null,
        lastEventId: textOf(request.headers['last-event-id']),
        routes: ROUTES,
      };
      if (!followsLog(route, request))
        return send(reply, await timed(() => onlyOnce(request, { route, call, context }), route));
      if (followers.count >= MOST_FOLLOWERS) {
        throw new ProblemError(
          503,
          `found ${followers.count} that follow the log, expected fewer than ${MOST_FOLLOWERS}`,
          { 'retry-after': '10', connection: 'close' },
        );
      }
      followers.count += 1;
      const check = setInterval(() => void endUnlessAllowed(request, route, access), CHECK_EVERY_MS);
      reply.raw.once('close', () => {
        clearInterval(check);
        followers.count -= 1;
      });
      request.raw.setTimeout(SILENT_MS);
      return send(reply, await call(context));
    },
  });
}

/** Ends what follows the log once its token is none any more, or its session was ended. */
async function endUnlessAllowed(request: FastifyRequest, route: ApiRoute, access: Access): Promise<void> {
  if (!(await access.stillMay(request, route))) request.raw.destroy();
}

/** Whether a request waits for what comes next in the log. */
function followsLog({ follows }: ApiRoute, { query }: FastifyRequest): boolean {
  if (follows !== 'waiting') return follows === 'always';
  return typeof query === 'object' && query !== null && 'wait' in query;
}

/** Whether the headers of a request announce a body. */
export function announcesBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function partsOf({ parts }: ApiOptions): ApiParts {
  const running = parts();
  if (running !== null) return running;
  throw new ProblemError(503, 'the daemon has not started yet; try again later', { 'retry-after': '2' });
}

async function timed(call: () => Promise<Answer>, { timeoutMs = TIMEOUT_MS }: ApiRoute): Promise<Answer> {
  const answer = await withTimeout(call(), timeoutMs);
  if (answer !== null) return answer;
  throw new ProblemError(503, 'Redis gave no answer in time; try again later', { 'retry-after': '5' });
}

function send(reply: FastifyReply, answer: Answer): FastifyReply {
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
      `found a body that is too long, expected at most ${MOST_BYTES} bytes`,
    );
  }
  if (status === 415)
    return sendProblem(reply, 415, 'found a body that is no JSON, expected Content-Type: application/json');
  if (status >= 400 && status < 500) {
    return sendProblem(reply, status, `found a request that cannot be read (${STATUS_CODES[status]})`);
  }
  // Not its message, which may quote anything.
  return sendProblem(reply, 503, 'what was asked for cannot be read or done now; try again later');
}

function textOf(header: string | string[] | undefined): string | null {
  return typeof header === 'string' && header !== '' ? header : null;
}

function statusOf(error: unknown): number {
  if (typeof error !== 'object' || error === null || !('statusCode' in error)) return 500;
  return typeof error.statusCode === 'number' ? error.statusCode : 500;
}
