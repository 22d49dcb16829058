import type { FastifyInstance } from 'fastify';
import type { Answering } from '../control/answer-log.ts';
import type { QuoteSigners } from '../quotes/quote-signers.ts';
import { CHAINS, TOKENS } from '../world/chains.ts';

/**
 * Adds `GET /v1/chains` and `GET /v1/tokens`. The interface names only `quoteSigner`; the sandbox answers
 * `{ chains: [{ chainId, name, kind, quoteSigner, explorerUrl }] }` and
 * `{ tokens: [{ chainId, address, symbol, name, decimals }] }`.
 */
export function addDiscovery(
  app: FastifyInstance,
  { answering, signers }: { answering: Answering; signers: QuoteSigners },
): void {
  app.get('/v1/chains', (request, reply) => {
    const chains = CHAINS.map((chain) => ({ ...chain, quoteSigner: signers.addressOf(chain.chainId) }));
    return answering.send(request, reply, { body: { chains }, shown: [], isPage: true });
  });
  app.get('/v1/tokens', (request, reply) =>
    answering.send(request, reply, { body: { tokens: TOKENS }, shown: [], isPage: true }),
  );
}
