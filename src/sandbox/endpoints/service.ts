import { randomUUID } from 'node:crypto';
import fastify, { type FastifyError, type FastifyInstance, type FastifyRequest } from 'fastify';
import type { Answering } from '../control/answer-log.ts';
import type { RequestLog } from '../control/request-log.ts';
import type { Distortion } from '../faults/distort.ts';
import { addFaultHooks, type Spoilings } from '../faults/fault-hooks.ts';
import type { Faults } from '../faults/faults.ts';
import type { QuoteDesk } from '../quotes/quote-desk.ts';
import type { QuoteSigners } from '../quotes/quote-signers.ts';
import type { Orders } from '../world/orders.ts';
import { isUnder, pathOf } from '../world/path.ts';
import type { Submits } from '../world/submits.ts';
import type { World } from '../world/world.ts';
import { createAuthorization, refuseAtTheGate } from './authorize.ts';
import { addDepositGateway } from './deposit-gateway.ts';
import { addDiscovery } from './discovery.ts';
import { addGasless } from './gasless.ts';
import { PROBLEMS, refuse, sendProblem } from './problem.ts';
import { addQuotes } from './quotes.ts';
import { addStatus } from './status.ts';
import { addVaults } from './vaults.ts';

/** What the main port serves from. */
export type ServiceParts = {
  world: World;
  answering: Answering;
  requests: RequestLog;
  apiKey: string;
  signers: QuoteSigners;
  desk: QuoteDesk;
  orders: Orders;
  submits: Submits;
  faults: Faults;
  spoilings: Spoilings;
  distortion: Distortion;
  nowMs: () => number;
};

/** The main port: what the upstream's clients see. */
export function createService({ apiKey, ...parts }: ServiceParts): FastifyInstance {
  const app = fastify({
    genReqId: () => randomUUID(),
    exposeHeadRoutes: false,
    forceCloseConnections: true,
    routerOptions: { maxParamLength: 10_000 },
    // A path that cannot be decoded is one that does not exist.
    frameworkErrors: (_error, request, reply) => {
      sendProblem(request, reply, { code: 'endpoint-not-found', detail: 'the path is malformed' });
    },
  });
  app.addHook('onRequest', async (request) => parts.answering.came(request));
  parts.requests.watch(app);
  addFaultHooks(app, {
    ...parts,
    refuse: (request, reply, code) =>
      isAtGateway(request) && code !== 'invalid-api-key'
        ? refuse(reply, { code, message: PROBLEMS[code].title })
        : sendProblem(request, reply, { code }),
  });
  app.addHook('onRequest', createAuthorization({ apiKey }));
  app.setNotFoundHandler((request, reply) => {
    if (!isUnder(pathOf(request), '/v1')) return reply.code(404).type('text/plain').send('Not Found');
    // What is not even the beginning of an endpoint does not get past the gateway (interface, Errors, 404).
    if (!isKnownToGateway(pathOf(request))) return refuseAtTheGate(reply);
    const detail = `${request.method} ${pathOf(request)} does not exist`;
    return sendProblem(request, reply, { code: 'endpoint-not-found', detail });
  });
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    const isClients = error.statusCode !== undefined && error.statusCode < 500;
    const code = isClients ? 'invalid-request' : 'internal-error';
    if (isAtGateway(request)) return refuse(reply, { code, message: error.message });
    return sendProblem(request, reply, { code, detail: error.message });
  });
  addStatus(app, parts);
  addDiscovery(app, parts);
  addQuotes(app, parts);
  addGasless(app, parts);
  addDepositGateway(app, parts);
  addVaults(app, parts);
  return app;
}

function isAtGateway(request: FastifyRequest): boolean {
  return isUnder(pathOf(request), '/deposit-gateway') || isUnder(pathOf(request), '/v1/deposit-gateway');
}

/** What the gateway passes on. */
const RESOURCES = ['chains', 'tokens', 'quotes', 'gasless', 'intents', 'deposit-gateway'];

function isKnownToGateway(path: string): boolean {
  return RESOURCES.some((name) => isUnder(path, `/v1/${name}`));
}
