import { randomUUID } from 'node:crypto';
import fastify, { type FastifyError, type FastifyInstance } from 'fastify';
import type { Distortion } from '../faults/distort.ts';
import { addFaultHooks } from '../faults/fault-hooks.ts';
import type { Intents } from '../quotes/intents.ts';
import type { QuoteDesk } from '../quotes/quote-desk.ts';
import { pathOf } from '../world/path.ts';
import type { World } from '../world/world.ts';
import { addOpenQuotes, refuseOpen } from './open-quotes.ts';
import { addOpenStatus } from './open-status.ts';
import type { PortDeps } from './port-deps.ts';
import { PROBLEMS } from './problem.ts';

/** The port of the open quoting service: no key, and errors of its own form. */
export function createOpenService({
  seed,
  timeScale,
  desk,
  intents,
  statuses,
  port,
}: {
  seed: number;
  timeScale: number;
  desk: QuoteDesk;
  intents: Intents;
  statuses: { world: World; distortion: Distortion };
  port: PortDeps;
}): FastifyInstance {
  const { answering, requests, nowMs } = port;
  const app = fastify({
    genReqId: () => randomUUID(),
    exposeHeadRoutes: false,
    forceCloseConnections: true,
    // A path that cannot be decoded does not exist.
    frameworkErrors: (_error, _request, reply) => {
      refuseOpen(reply, { statusCode: 404, errors: [{ field: 'path', detail: 'malformed' }] });
    },
  });
  requests.watch(app);
  addFaultHooks(app, {
    ...port,
    refuse: (_request, reply, code) => {
      const { status: statusCode, title } = PROBLEMS[code];
      return refuseOpen(reply, { statusCode, errors: [{ field: 'request', detail: title }] });
    },
  });
  app.setNotFoundHandler((request, reply) => {
    const detail = `${request.method} ${pathOf(request)} does not exist`;
    return refuseOpen(reply, { statusCode: 404, errors: [{ field: 'path', detail }] });
  });
  app.setErrorHandler<FastifyError>((error, _request, reply) => {
    const isClients = error.statusCode !== undefined && error.statusCode < 500;
    const errors = [{ field: 'body', detail: error.message }];
    return refuseOpen(reply, { statusCode: isClients ? 400 : 500, errors });
  });
  addOpenQuotes(app, { seed, timeScale, desk, intents, nowMs, answering });
  addOpenStatus(app, { ...statuses, answering });
  return app;
}
