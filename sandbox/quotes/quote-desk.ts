import { type Market, solversIn } from '../world/market.ts';
import type { Fundable, Orders } from '../world/orders.ts';
import { intentHashesOf } from '../world/plan.ts';
import { type Price, price, type Solver, type Wanted } from './pricing.ts';
import type { QuoteSigners } from './quote-signers.ts';
import type { Place } from './route.ts';

/** Order for a quote; `slippageMillionths` is the distance of the least output below the expected one. */
export type QuoteOrder = {
  type: Wanted['type'];
  source: Place & { funder: string };
  destination: Place & { recipient: string; minAmountOut: bigint | null };
  /** Null where it is the funder. */
  refundRecipient: string | null;
  slippageMillionths: bigint;
};

/** A solver's price. */
export type Offer = { solver: Solver; price: Price };

/** A signed quote, before it takes the shape of a wire format. `id` has its prefix, `minAmountOut` is base units. */
export type MadeQuote = Offer & {
  id: string;
  signature: string;
  order: QuoteOrder;
  fundable: Fundable;
  minAmountOut: bigint;
};

/** Makes quotes and signs them. */
export type QuoteDesk = {
  readonly solvers: readonly Solver[];
  hasSolvers(): boolean;
  /** Price of each solver, cheapest first; solvers that cannot serve are omitted. */
  prices(wanted: Wanted, minAmountOut?: bigint | null): Offer[];
  quote(order: QuoteOrder, offer: Offer): Promise<MadeQuote>;
};

export function createQuoteDesk({
  solvers,
  signers,
  orders,
  market,
}: {
  solvers: readonly Solver[];
  market: () => Market;
  signers: QuoteSigners;
  orders: Orders;
}): QuoteDesk {
  return {
    solvers,
    hasSolvers: () => solversIn(market(), solvers).length > 0,
    prices: (wanted, minAmountOut = null) =>
      solversIn(market(), solvers).flatMap((solver) => {
        const found = price(solver, wanted);
        const reaches = found !== null && (minAmountOut === null || found.destinationAmount >= minAmountOut);
        return reaches ? [{ solver, price: found }] : [];
      }),
    async quote(order, offer) {
      const { type, source, destination, refundRecipient, slippageMillionths } = order;
      const { sourceAmount, destinationAmount } = offer.price;
      const fundable = orders.prepare({
        origin: 'quote',
        funder: source.funder,
        recipient: destination.recipient,
        refundRecipient,
        source: { chain: source.chain, token: source.token.address, amount: sourceAmount.toString() },
        destination: {
          chain: destination.chain,
          token: destination.token.address,
          amount: destinationAmount.toString(),
        },
      });
      const { plan, expiresAt } = fundable;
      const id = `quote:${plan.quoteUuid}`;
      const signature = await signers.sign({
        sourceChainId: source.chain.chainId,
        id,
        intentHashes: intentHashesOf(plan),
        expiresAt,
      });
      orders.open(fundable);
      // An exact output has no slippage.
      const slip = type === 'exact-in' ? (destinationAmount * slippageMillionths) / 1_000_000n : 0n;
      const minAmountOut = destination.minAmountOut ?? destinationAmount - slip;
      return { ...offer, id, signature, order, fundable, minAmountOut };
    },
  };
}
