import type { FastifyInstance } from 'fastify';
import type { Answering } from '../answer-log.ts';
import { CHAINS, TOKENS } from '../chains.ts';

/**
 * Adds `GET /v1/chains` and `GET /v1/tokens`. The interface names only `quoteSigner`; the sandbox answers
 * `{ chains: [{ chainId, name, kind, quoteSigner, explorerUrl }] }` and
 * `{ tokens: [{ chainId, address, symbol, name, decimals }] }`.
 */
export function addDiscovery(
  app: FastifyInstance,
  { answering, quoteSigner }: { answering: Answering; quoteSigner: string },
): void {
  const chains = CHAINS.map((chain) => ({ ...chain, quoteSigner }));
  app.get('/v1/chains', (request, reply) =>
    answering.send(request, reply, { body: { chains }, subjects: [] }),
  );
  app.get('/v1/tokens', (request, reply) =>
    answering.send(request, reply, { body: { tokens: TOKENS }, subjects: [] }),
  );
}
