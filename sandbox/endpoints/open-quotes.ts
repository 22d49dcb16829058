import type { FastifyInstance, FastifyReply } from 'fastify';
import { bytesToHex } from 'viem';
import { z } from 'zod';
import type { Answering } from '../control/answer-log.ts';
import { portalAddress, type QuoteDesk } from '../quotes/quote-desk.ts';
import { findRoute, type Place, type Route, type RouteEnds, refuseAmount } from '../quotes/route.ts';
import type { Token } from '../world/chains.ts';
import { address, uuid } from '../world/identifiers.ts';
import { QUOTE_VALIDITY_SECONDS, VAULT_VALIDITY_SECONDS } from '../world/plan.ts';
import { bytes, randomStream } from '../world/random.ts';
import { amount, chainId, evmAddress, fieldErrors } from './fields.ts';
import type { FieldError } from './problem.ts';

const text = z.string().min(1);

const bodySchema = z.strictObject({
  dAppID: z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, {
    error: 'expected 1 to 64 letters, digits, dots, underscores or hyphens',
  }),
  intentExecutionTypes: z
    .array(z.enum(['SELF_PUBLISH', 'GASLESS']))
    .min(1)
    .default(['SELF_PUBLISH']),
  quoteRequest: z.strictObject({
    sourceChainID: chainId,
    destinationChainID: chainId,
    sourceToken: text,
    destinationToken: text,
    sourceAmount: amount,
    funder: text,
    recipient: text,
  }),
  contracts: z
    .strictObject({
      sourcePortal: evmAddress.optional(),
      destinationPortal: evmAddress.optional(),
      prover: evmAddress.optional(),
    })
    .optional(),
});

type Body = z.infer<typeof bodySchema>;

/** Answers in the open quoting service's own error form. */
export function refuseOpen(
  reply: FastifyReply,
  { statusCode, errors }: { statusCode: number; errors: readonly FieldError[] },
): FastifyReply {
  const validationErrors = errors.map(({ field, detail }) => ({ field, message: detail }));
  const body = { statusCode, createdBy: 'ValidationFilter', validationErrors };
  return reply.code(statusCode).type('application/json').send(JSON.stringify(body));
}

/** Adds `POST /api/v3/quotes/exactIn`: an entry per solver and execution type, the best output first; none is a success. */
export function addOpenQuotes(
  app: FastifyInstance,
  {
    seed,
    timeScale,
    desk,
    nowMs,
    answering,
  }: { seed: number; timeScale: number; desk: QuoteDesk; nowMs: () => number; answering: Answering },
): void {
  const portal = portalAddress(seed);
  const prover = address(randomStream(seed, 'prover'), 'evm');
  let quoted = 0;

  function entries({
    body: { quoteRequest, contracts, intentExecutionTypes },
    route: { source, destination },
    prices,
  }: {
    body: Body;
    route: Extract<Route, { type: 'route' }>;
    prices: ReturnType<QuoteDesk['prices']>;
  }): object[] {
    const nowSeconds = nowMs() / 1000;
    return prices.flatMap(({ solver, price }) =>
      intentExecutionTypes.map((intentExecutionType) => {
        const random = randomStream(seed, 'open-quote', quoted++);
        return {
          quoteID: `quote:${uuid(random)}`,
          quoteResponseID: `quoteResponse:${uuid(random)}`,
          solverID: solver.address,
          quoteData: {
            contracts: {
              sourcePortal: contracts?.sourcePortal ?? portal,
              destinationPortal: contracts?.destinationPortal ?? portal,
              prover: contracts?.prover ?? prover,
            },
            quoteResponse: {
              intentExecutionType,
              sourceChainID: source.chain.chainId,
              destinationChainID: firstChain(source, destination),
              finalDestinationChainID: destination.chain.chainId,
              sourceToken: source.token.address,
              destinationToken: destination.token.address,
              sourceAmount: price.sourceAmount.toString(),
              destinationAmount: price.destinationAmount.toString(),
              minimumDestinationAmount: (price.destinationAmount - price.destinationAmount / 200n).toString(),
              funder: quoteRequest.funder,
              refundRecipient: quoteRequest.funder,
              recipient: quoteRequest.recipient,
              fees: [
                fee({ name: 'Solver fee', kind: 'solver', token: source.token, amount: price.solverFee }),
                fee({
                  name: 'Protocol fee',
                  kind: 'protocol',
                  token: source.token,
                  amount: price.protocolFee,
                }),
              ],
              deadline: Math.ceil(nowSeconds + (QUOTE_VALIDITY_SECONDS + VAULT_VALIDITY_SECONDS) / timeScale),
              quoteExpiry: Math.ceil(nowSeconds + QUOTE_VALIDITY_SECONDS / timeScale),
              estimatedFulfillTimeSec: solver.fillSeconds,
              encodedRoute: bytesToHex(bytes(random, 128)),
            },
          },
        };
      }),
    );
  }

  app.post('/api/v3/quotes/exactIn', (request, reply) => {
    const parsed = bodySchema.safeParse(request.body);
    if (!parsed.success) return refuseOpen(reply, { statusCode: 400, errors: fieldErrors(parsed.error) });
    const body = parsed.data;
    const route = findRoute(routeEnds(body));
    if (route.type === 'invalid') return refuseOpen(reply, { statusCode: 400, errors: route.errors });
    const { sourceAmount } = body.quoteRequest;
    const isNotified = route.type === 'route' && refuseAmount(sourceAmount, route.destination.chain) === null;
    const prices = isNotified ? desk.prices({ type: 'exact-in', amount: sourceAmount }) : [];
    const data = isNotified ? entries({ body, route, prices }) : [];
    const quoted = {
      request: { ...body.quoteRequest, sourceAmount: sourceAmount.toString() },
      outputs: prices.map(({ price }) => price.destinationAmount.toString()),
    };
    return answering.sendMade(request, reply, { statusCode: 201, body: { data }, quoted });
  });
}

/** The chain where the intent itself ends: a transfer to a chain that is not EVM passes over another one. */
function firstChain(source: Place, destination: Place): number {
  if (destination.chain.kind === 'evm') return destination.chain.chainId;
  return source.chain.chainId === 1 ? 10 : 1;
}

function routeEnds({ quoteRequest }: Body): RouteEnds {
  const addresses = (names: readonly ('sourceToken' | 'destinationToken' | 'funder' | 'recipient')[]) =>
    names.map((name) => ({ field: `quoteRequest.${name}`, value: quoteRequest[name] }));
  return {
    source: {
      chainId: quoteRequest.sourceChainID,
      token: quoteRequest.sourceToken,
      addresses: addresses(['sourceToken', 'funder']),
    },
    destination: {
      chainId: quoteRequest.destinationChainID,
      token: quoteRequest.destinationToken,
      addresses: addresses(['destinationToken', 'recipient']),
    },
  };
}

/** A fee in this service's form. The interface shows no values for `kind` and `basis`. */
function fee({
  name,
  kind,
  token: { address: tokenAddress, decimals, symbol },
  amount: feeAmount,
}: {
  name: string;
  kind: string;
  token: Token;
  amount: bigint;
}): object {
  return {
    name,
    description: `What the ${kind} takes, out of the amount sent`,
    token: { address: tokenAddress, decimals, symbol },
    amount: feeAmount.toString(),
    kinds: [{ kind, amount: feeAmount.toString(), basis: 'sourceAmount' }],
  };
}
