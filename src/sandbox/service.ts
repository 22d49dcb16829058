import { randomUUID } from 'node:crypto';
import fastify, { type FastifyError, type FastifyInstance } from 'fastify';
import type { Answering } from './answer-log.ts';
import { createAuthorization, isUnder, pathOf } from './authorize.ts';
import { addDepositGateway } from './endpoints/deposit-gateway.ts';
import { addDiscovery } from './endpoints/discovery.ts';
import { addStatus } from './endpoints/status.ts';
import { refuse } from './gateway-error.ts';
import { sendProblem } from './problem.ts';
import type { World } from './world.ts';

/** The main port: what the upstream's clients see. */
export function createService({
  world,
  answering,
  apiKey,
  quoteSigner,
}: {
  world: World;
  answering: Answering;
  apiKey: string;
  quoteSigner: string;
}): FastifyInstance {
  const app = fastify({
    genReqId: () => randomUUID(),
    exposeHeadRoutes: false,
    forceCloseConnections: true,
  });
  app.addHook('onRequest', createAuthorization({ apiKey }));
  app.setNotFoundHandler((request, reply) => {
    if (!isUnder(pathOf(request), '/v1')) return reply.code(404).type('text/plain').send('Not Found');
    const detail = `${request.method} ${pathOf(request)} does not exist`;
    return sendProblem(request, reply, { code: 'endpoint-not-found', detail });
  });
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    const isClients = error.statusCode !== undefined && error.statusCode < 500;
    if (isUnder(pathOf(request), '/deposit-gateway')) {
      return refuse(reply, { statusCode: isClients ? 400 : 500, message: error.message });
    }
    const code = isClients ? 'invalid-request' : 'internal-error';
    return sendProblem(request, reply, { code, detail: error.message });
  });
  addStatus(app, { world, answering });
  addDiscovery(app, { answering, quoteSigner });
  addDepositGateway(app, { world, answering });
  return app;
}
