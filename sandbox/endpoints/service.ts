import { randomUUID } from 'node:crypto';
import fastify, { type FastifyError, type FastifyInstance, type FastifyRequest } from 'fastify';
import { isOfChains, type RpcPort, refuseRpc } from '../chains/rpc-port.ts';
import type { Distortion } from '../faults/distort.ts';
import { addFaultHooks } from '../faults/fault-hooks.ts';
import type { QuoteDesk } from '../quotes/quote-desk.ts';
import type { QuoteShape } from '../quotes/quote-shape.ts';
import type { QuoteSigners } from '../quotes/quote-signers.ts';
import type { Token } from '../world/chains.ts';
import type { Orders } from '../world/orders.ts';
import { isUnder, pathOf } from '../world/path.ts';
import type { Submits } from '../world/submits.ts';
import type { World } from '../world/world.ts';
import { createAuthorization, refuseAtTheGate } from './authorize.ts';
import { addDepositGateway } from './deposit-gateway.ts';
import { addDiscovery } from './discovery.ts';
import { addGasless } from './gasless.ts';
import type { PortDeps } from './port-deps.ts';
import { PROBLEMS, refuse, sendProblem } from './problem.ts';
import { addQuotes } from './quotes.ts';
import { addStatus } from './status.ts';
import { addVaultCreation } from './vault-creation.ts';
import { addVaultSubmits } from './vault-submits.ts';

/** The word of the interface in the paths of the deposit-vault endpoints. Logs and faults have it whatever the prefix is. */
export const GATEWAY_WORD = 'deposit-gateway';

type ServiceDeps = {
  apiKey: string;
  /** False where a request without a key is answered too. */
  requiresKey: boolean;
  /** The word in the paths of this deployment. */
  gatewayPrefix: string;
  world: World;
  distortion: Distortion;
  quoting: { signers: QuoteSigners; desk: QuoteDesk; shape: QuoteShape };
  ordering: { orders: Orders; submits: Submits; permitted: (token: Token, owner: string) => void };
  rpc: RpcPort;
  port: PortDeps;
};

/** The main port, for the upstream's clients. */
export function createService({
  apiKey,
  requiresKey,
  gatewayPrefix,
  world,
  distortion,
  quoting: { signers, desk, shape },
  ordering: { orders, submits, permitted },
  rpc,
  port,
}: ServiceDeps): FastifyInstance {
  const { answering } = port;
  const app = fastify({
    genReqId: () => randomUUID(),
    exposeHeadRoutes: false,
    forceCloseConnections: true,
    rewriteUrl: ({ url = '' }) => inTheInterface(url, gatewayPrefix),
    routerOptions: { maxParamLength: 10_000 },
    // A path that cannot be decoded does not exist.
    frameworkErrors: (_error, request, reply) => {
      sendProblem(request, reply, { code: 'endpoint-not-found', detail: 'the path is malformed' });
    },
  });
  app.addHook('onRequest', async (request) => answering.came(request));
  port.requests.watch(app);
  addFaultHooks(app, {
    ...port,
    refuse: (request, reply, code) => {
      if (isOfChains(pathOf(request))) return refuseRpc(reply, PROBLEMS[code]);
      return isAtGateway(request) && code !== 'invalid-api-key'
        ? refuse(reply, { code, message: PROBLEMS[code].title })
        : sendProblem(request, reply, { code });
    },
  });
  app.addHook('onRequest', createAuthorization({ apiKey, requiresKey }));
  app.setNotFoundHandler((request, reply) => {
    if (!isUnder(pathOf(request), '/v1')) return reply.code(404).type('text/plain').send('Not Found');
    // A path that begins no endpoint does not pass the gateway (interface, Errors, 404).
    if (!isGatewayPath(pathOf(request))) return refuseAtTheGate(reply);
    const detail = `${request.method} ${pathOf(request)} does not exist`;
    return sendProblem(request, reply, { code: 'endpoint-not-found', detail });
  });
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    const isClients = error.statusCode !== undefined && error.statusCode < 500;
    const code = isClients ? 'invalid-request' : 'internal-error';
    if (isAtGateway(request)) return refuse(reply, { code, message: error.message });
    return sendProblem(request, reply, { code, detail: error.message });
  });
  addStatus(app, { world, answering, distortion });
  addDiscovery(app, { answering, signers });
  addQuotes(app, { answering, desk, shape });
  addGasless(app, { world, answering, orders, submits });
  addDepositGateway(app, { world, answering, distortion });
  addVaultCreation(app, { answering, orders, desk });
  addVaultSubmits(app, { world, answering, orders, submits, permitted });
  rpc.addTo(app);
  return app;
}

/** Puts the interface's word into a path in place of the deployment's. A path with another word is unknown. */
function inTheInterface(url: string, prefix: string): string {
  const [, version = '', word = '', rest = ''] = /^(\/v1)?\/([^/?]*)(.*)$/.exec(url) ?? [];
  if (word === prefix) return `${version}/${GATEWAY_WORD}${rest}`;
  return word === GATEWAY_WORD ? `${version}/unknown${rest}` : url;
}

function isAtGateway(request: FastifyRequest): boolean {
  return isUnder(pathOf(request), '/deposit-gateway') || isUnder(pathOf(request), '/v1/deposit-gateway');
}

const RESOURCES = ['chains', 'tokens', 'quotes', 'gasless', 'intents', 'deposit-gateway'];

function isGatewayPath(path: string): boolean {
  return RESOURCES.some((name) => isUnder(path, `/v1/${name}`));
}
