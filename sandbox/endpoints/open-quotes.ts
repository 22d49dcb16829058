import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Answering } from '../control/answer-log.ts';
import type { Intents } from '../quotes/intents.ts';
import type { Offer, QuoteDesk } from '../quotes/quote-desk.ts';
import { findRoute, type Place, type Route, type RouteEnds, refuseAmount } from '../quotes/route.ts';
import type { Token } from '../world/chains.ts';
import { uuid } from '../world/identifiers.ts';
import { QUOTE_VALIDITY_SECONDS, VAULT_VALIDITY_SECONDS } from '../world/plan.ts';
import { randomStream } from '../world/random.ts';
import { amount, chainId, dAppId, evmAddress, fieldErrors } from './fields.ts';
import type { FieldError } from './problem.ts';

const text = z.string().min(1);

const common = {
  sourceChainID: chainId,
  destinationChainID: chainId,
  sourceToken: text,
  destinationToken: text,
  funder: text,
  recipient: text,
  refundRecipient: text.optional(),
};

/** The body with the amount that an endpoint fixes. */
const bodyWith = <Shape extends z.ZodRawShape>(quoteRequest: z.ZodObject<Shape, z.core.$strict>) =>
  z.strictObject({
    dAppID: dAppId,
    intentExecutionTypes: z
      .array(z.enum(['SELF_PUBLISH', 'GASLESS']))
      .min(1)
      .default(['SELF_PUBLISH']),
    quoteRequest,
    contracts: z
      .strictObject({
        sourcePortal: evmAddress.optional(),
        destinationPortal: evmAddress.optional(),
        prover: evmAddress.optional(),
      })
      .optional(),
  });

const exactInSchema = bodyWith(z.strictObject({ ...common, sourceAmount: amount }));
const exactOutSchema = bodyWith(z.strictObject({ ...common, destinationAmount: amount }));

type Body = z.infer<typeof exactInSchema> | z.infer<typeof exactOutSchema>;

/** The quotes for a request, or the fields that are wrong. No entries: no solver quotes it. */
type OpenAnswer =
  | { type: 'invalid'; errors: readonly FieldError[] }
  | { type: 'quoted'; body: Body; offers: Offer[]; entries: OpenEntry[] };

type OpenEntry = {
  quoteID: string;
  quoteResponseID: string;
  solverID: string;
  quoteData: { contracts: object; quoteResponse: object };
};

/** Answers in the open quoting service's own error form. */
export function refuseOpen(
  reply: FastifyReply,
  { statusCode, errors }: { statusCode: number; errors: readonly FieldError[] },
): FastifyReply {
  const validationErrors = errors.map(({ field, detail }) => ({ field, message: detail }));
  const body = { statusCode, createdBy: 'ValidationFilter', validationErrors };
  return reply.code(statusCode).type('application/json').send(JSON.stringify(body));
}

/**
 * Adds the quotes of the open service: an entry per solver and execution type, the best first; none is a success. `single`
 * answers with the best one alone, `{ data: { quoteResponse, contracts } }`, and 404 where there is none.
 */
export function addOpenQuotes(
  app: FastifyInstance,
  {
    seed,
    timeScale,
    desk,
    intents,
    nowMs,
    answering,
  }: {
    seed: number;
    timeScale: number;
    desk: QuoteDesk;
    intents: Intents;
    nowMs: () => number;
    answering: Answering;
  },
): void {
  let drawn = 0;

  function entryOf(
    { solver, price }: Offer,
    {
      body: { quoteRequest, contracts },
      route: { source, destination },
      intentExecutionType,
    }: { body: Body; route: Extract<Route, { type: 'route' }>; intentExecutionType: string },
  ): OpenEntry {
    const nowSeconds = nowMs() / 1000;
    const name = `open ${drawn}`;
    const random = randomStream(seed, 'open-quote', drawn++);
    const { funder, recipient, refundRecipient = funder } = quoteRequest;
    const quoteExpiry = Math.ceil(nowSeconds + QUOTE_VALIDITY_SECONDS / timeScale);
    const atSource = intents.contractsOf(source.chain.kind);
    const atDestination = intents.contractsOf(destination.chain.kind);
    const intent = intents.make(
      {
        name,
        source: { chain: source.chain, token: source.token.address, amount: String(price.sourceAmount) },
        destination: {
          chain: destination.chain,
          token: destination.token.address,
          amount: String(price.destinationAmount),
        },
        recipient,
        creator: refundRecipient,
        isLocal: false,
        expiresAt: quoteExpiry,
      },
      { portal: contracts?.destinationPortal, prover: contracts?.prover },
    );
    return {
      quoteID: `quote:${uuid(random)}`,
      quoteResponseID: `quoteResponse:${uuid(random)}`,
      solverID: solver.address,
      quoteData: {
        contracts: {
          sourcePortal: contracts?.sourcePortal ?? atSource.portal,
          destinationPortal: contracts?.destinationPortal ?? atDestination.portal,
          prover: contracts?.prover ?? atSource.prover,
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
          funder,
          refundRecipient,
          recipient,
          fees: [
            fee({ name: 'Solver fee', kind: 'solver', token: source.token, amount: price.solverFee }),
            fee({ name: 'Protocol fee', kind: 'protocol', token: source.token, amount: price.protocolFee }),
          ],
          deadline: Math.ceil(nowSeconds + (QUOTE_VALIDITY_SECONDS + VAULT_VALIDITY_SECONDS) / timeScale),
          quoteExpiry,
          estimatedFulfillTimeSec: solver.fillSeconds,
          encodedRoute: intent.encodedRoute,
        },
      },
    };
  }

  function quote(schema: z.ZodType<Body>, found: unknown): OpenAnswer {
    const parsed = schema.safeParse(found);
    if (!parsed.success) return { type: 'invalid', errors: fieldErrors(parsed.error) };
    const body = parsed.data;
    const route = findRoute(routeEnds(body));
    if (route.type === 'invalid') return route;
    const { quoteRequest } = body;
    const wanted =
      'sourceAmount' in quoteRequest
        ? ({ type: 'exact-in', amount: quoteRequest.sourceAmount } as const)
        : ({ type: 'exact-out', amountOut: quoteRequest.destinationAmount } as const);
    const fixed = wanted.type === 'exact-in' ? wanted.amount : wanted.amountOut;
    if (route.type === 'refused' || refuseAmount(fixed, route.destination.chain) !== null) {
      return { type: 'quoted', body, offers: [], entries: [] };
    }
    const offers = desk.prices(wanted);
    const entries = offers.flatMap((offer) =>
      body.intentExecutionTypes.map((intentExecutionType) =>
        entryOf(offer, { body, route, intentExecutionType }),
      ),
    );
    return { type: 'quoted', body, offers, entries };
  }

  function addQuotes(
    path: string,
    schema: z.ZodType<Body>,
    bodyOf: (entries: readonly OpenEntry[]) => object | null,
  ): void {
    app.post(path, (request: FastifyRequest, reply: FastifyReply) => {
      const found = quote(schema, request.body);
      if (found.type === 'invalid') return refuseOpen(reply, { statusCode: 400, errors: found.errors });
      const { body, offers, entries } = found;
      const data = bodyOf(entries);
      if (data === null) {
        const errors = [{ field: 'quoteRequest', detail: 'no solver quoted it' }];
        return refuseOpen(reply, { statusCode: 404, errors });
      }
      const asSent = Object.entries(body.quoteRequest).map(([key, value]) => [
        key,
        typeof value === 'bigint' ? value.toString() : value,
      ]);
      const quoted = {
        request: Object.fromEntries(asSent),
        outputs: offers.map(({ price }) => price.destinationAmount.toString()),
      };
      return answering.sendMade(request, reply, { statusCode: 201, body: { data }, quoted });
    });
  }

  addQuotes('/api/v3/quotes/exactIn', exactInSchema, (entries) => entries);
  addQuotes('/api/v3/quotes/exactOut', exactOutSchema, (entries) => entries);
  addQuotes('/api/v3/quotes/single', exactInSchema, ([best]) => best?.quoteData ?? null);
}

/** The chain where the intent itself ends: a transfer to a chain that is not EVM passes over another one. */
function firstChain(source: Place, destination: Place): number {
  if (destination.chain.kind === 'evm') return destination.chain.chainId;
  return source.chain.chainId === 1 ? 10 : 1;
}

function routeEnds({ quoteRequest }: Body): RouteEnds {
  const { refundRecipient } = quoteRequest;
  const addresses = (names: readonly ('sourceToken' | 'destinationToken' | 'funder' | 'recipient')[]) =>
    names.map((name) => ({ field: `quoteRequest.${name}`, value: quoteRequest[name] }));
  const refunded =
    refundRecipient === undefined ? [] : [{ field: 'quoteRequest.refundRecipient', value: refundRecipient }];
  return {
    source: {
      chainId: quoteRequest.sourceChainID,
      token: quoteRequest.sourceToken,
      addresses: [...addresses(['sourceToken', 'funder']), ...refunded],
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
