import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Answering } from '../control/answer-log.ts';
import type { QuoteDesk, QuoteOrder } from '../quotes/quote-desk.ts';
import type { QuoteShape } from '../quotes/quote-shape.ts';
import { findRoute, type RouteEnds, refuseAmount } from '../quotes/route.ts';
import { type ProblemCode, sendInvalidRequest, sendProblem } from './problem.ts';
import { parseQuoteRequest, type QuoteBody } from './quote-request.ts';

/** Adds `POST /v1/quotes`. With `options.allQuotes` every solver's quote can be funded; the answer itself is the best. */
export function addQuotes(
  app: FastifyInstance,
  { answering, desk, shape }: { answering: Answering; desk: QuoteDesk; shape: QuoteShape },
): void {
  function refuse(
    request: FastifyRequest,
    reply: FastifyReply,
    { code, detail }: { code: ProblemCode; detail: string },
  ): FastifyReply {
    const solverErrors = desk.solvers.map(({ name, address }) => ({
      solver: address,
      solverName: name,
      code,
      message: detail,
    }));
    return sendProblem(request, reply, { code, detail, solverErrors });
  }

  app.post('/v1/quotes', async (request, reply) => {
    const parsed = parseQuoteRequest(request.body);
    if (parsed.type === 'invalid') return sendInvalidRequest(request, reply, parsed.errors);
    if (parsed.type === 'slippage') {
      return sendProblem(request, reply, { code: 'slippage-out-of-bounds', errors: parsed.errors });
    }
    const { wanted, slippageMillionths, body } = parsed;
    const route = findRoute(routeEnds(body));
    if (route.type === 'invalid') return sendInvalidRequest(request, reply, route.errors);
    if (route.type === 'refused') return refuse(request, reply, route);
    const amount = wanted.type === 'exact-out' ? wanted.amountOut : wanted.amount;
    if (!desk.hasSolvers()) {
      return sendProblem(request, reply, { code: 'solver-error', detail: 'no solver returned a quote' });
    }
    const refusal = refuseAmount(amount, route.destination.chain);
    if (refusal !== null) return refuse(request, reply, refusal);
    const minAmountOut = body.destination.minAmountOut ?? null;
    const [best, ...others] = desk.prices(wanted, minAmountOut);
    if (best === undefined) {
      return refuse(request, reply, {
        code: 'no-route-found',
        detail: 'no solver delivers that much for that amount',
      });
    }
    const order: QuoteOrder = {
      type: wanted.type,
      source: { ...route.source, funder: body.source.funder },
      destination: { ...route.destination, recipient: body.destination.recipient, minAmountOut },
      refundRecipient: body.refundRecipient ?? null,
      slippageMillionths,
    };
    const quote = await desk.quote(order, best);
    if (body.options?.allQuotes !== true) {
      return answering.sendMade(request, reply, { statusCode: 200, body: shape(quote, null) });
    }
    const quotes = [quote];
    for (const offer of others) quotes.push(await desk.quote(order, offer));
    return answering.sendMade(request, reply, { statusCode: 200, body: shape(quote, quotes) });
  });
}

function routeEnds({ source, destination, refundRecipient }: QuoteBody): RouteEnds {
  const refunded =
    refundRecipient === undefined ? [] : [{ field: 'refundRecipient', value: refundRecipient }];
  return {
    source: {
      chainId: source.chainId,
      token: source.token,
      addresses: [
        { field: 'source.token', value: source.token },
        { field: 'source.funder', value: source.funder },
        ...refunded,
      ],
    },
    destination: {
      chainId: destination.chainId,
      token: destination.token,
      addresses: [
        { field: 'destination.token', value: destination.token },
        { field: 'destination.recipient', value: destination.recipient },
      ],
    },
  };
}
