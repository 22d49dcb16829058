import type { Hex } from 'viem';
import type { StepSide } from '../world/record.ts';
import type { Intent, Intents } from './intents.ts';
import type { MadeQuote } from './quote-desk.ts';
import type { Place } from './route.ts';

/** Shapes of answers: as recorded at a deployment, and with the members of the interface alone. */
export const WIRES = ['0.9.0', 'strict'] as const;

export type Wire = (typeof WIRES)[number];

/** The transaction that funds a quote. The instructions of Solana are left out: its chain here executes none. */
type Transaction =
  | { type: 'evm'; chainId: number; to: Hex; data: Hex; value: string }
  | { type: 'svm'; chainId: number; feePayer: string; instructions: [] };

type QuotedStep = { type: string; seconds: number; from: StepSide; to: StepSide; intents: readonly Intent[] };

/** Seconds of a swap on the chain of the destination, and of a delivery on a chain that is not EVM. */
const SWAP_SECONDS = 5;
const TRANSFER_SECONDS = 2;

/** Gives quotes the shape of a wire format: the best one, and with `all` a list `quotes` of every quote. */
export type QuoteShape = (best: MadeQuote, all: readonly MadeQuote[] | null) => object;

export function createQuoteShape({ wire, intents }: { wire: Wire; intents: Intents }): QuoteShape {
  function transaction({ order: { source }, fundable }: MadeQuote): Transaction {
    const { chainId, kind } = source.chain;
    if (kind !== 'evm') return { type: 'svm', chainId, feePayer: source.funder, instructions: [] };
    const { to, data } = intents.funding(fundable.intents[0]);
    return { type: 'evm', chainId, to, data, value: '0' };
  }

  function strict(quote: MadeQuote): object {
    const { id, signature, order, fundable, minAmountOut } = quote;
    const { plan, expiresAt } = fundable;
    return {
      id,
      type: order.type,
      signature,
      expiresAt,
      intentHash: plan.intentHash,
      source: { chainId: plan.source.chain.chainId, funder: order.source.funder },
      destination: { amountOut: plan.destination.amount, minAmountOut: minAmountOut.toString() },
      fees: feesOf(quote).map(({ type }) => ({ type })),
      steps: stepsOf(quote).map(({ type, intents: done }) => ({
        type,
        intents: done.map(({ hash }) => ({ intentHash: hash, role: roleOf(hash, quote) })),
      })),
      execution: { transaction: transaction(quote) },
    };
  }

  function recorded(quote: MadeQuote): object {
    const { id, signature, order, solver, fundable, minAmountOut } = quote;
    const { plan, expiresAt } = fundable;
    const [main] = fundable.intents;
    return {
      id,
      type: order.type,
      signature,
      expiresAt,
      intentHash: plan.intentHash,
      // An exact output has none.
      slippage: order.type === 'exact-in' ? Number(order.slippageMillionths) / 1_000_000 : 0,
      solver: { id: solver.address },
      quotes: null,
      source: {
        chainId: plan.source.chain.chainId,
        token: plan.source.token,
        ...described(order.source),
        funder: order.source.funder,
        amount: plan.source.amount,
      },
      destination: {
        chainId: plan.destination.chain.chainId,
        token: plan.destination.token,
        ...described(order.destination),
        recipient: order.destination.recipient,
        amountOut: plan.destination.amount,
        minAmountOut: minAmountOut.toString(),
      },
      ...(order.refundRecipient === null ? {} : { refundRecipient: order.refundRecipient }),
      fees: feesOf(quote),
      steps: stepsOf(quote).map(({ type, seconds, from, to, intents: done }, index) => ({
        type: type.toLowerCase(),
        provider: plan.burn === null ? solver.name.toLowerCase() : 'cctp',
        from,
        to,
        fees: index === 0 ? feesOf(quote) : [],
        estimatedDurationSec: seconds,
        intents: done.map(({ hash, route, reward }) => ({
          role: roleOf(hash, quote),
          intentHash: hash,
          intent: { route, reward },
        })),
      })),
      execution: {
        transaction: transaction(quote),
        intent: { route: main.route, reward: main.reward },
        vault: plan.source.chain.kind === 'evm' ? intents.funding(main).vault : null,
      },
    };
  }

  const shape = wire === 'strict' ? strict : recorded;

  return (best, all) =>
    all === null ? shape(best) : { ...shape(best), quotes: all.map((quote) => withoutList(shape(quote))) };
}

/** The entries of a list of quotes have no list of their own. */
function withoutList(quote: object): object {
  return { ...quote, quotes: undefined };
}

/** Symbol and decimals of a token; null for a chain that is not EVM, where a deployment leaves them out too. */
function described({ chain, token }: Place) {
  if (chain.kind !== 'evm') return { symbol: null, decimals: null };
  return { symbol: token.symbol, decimals: token.decimals };
}

function feesOf({ price, order: { source }, fundable: { plan } }: MadeQuote) {
  const { chainId, address, symbol, decimals } = source.token;
  const token = { chainId, address, symbol, decimals };
  return [
    { type: 'protocol', amount: price.protocolFee.toString(), token, estimate: false },
    plan.burn === null
      ? { type: 'solver', amount: price.solverFee.toString(), token, estimate: false }
      : { type: 'cctp', amount: price.solverFee.toString(), token, estimate: true },
  ];
}

/** Steps of a quote: a swap, or the delivery on a chain that is not EVM, follows the bridge. */
function stepsOf({ solver, fundable: { plan, intents } }: MadeQuote): QuotedStep[] {
  const { source, destination, swap } = plan;
  const { chainId } = destination.chain;
  const [main, ...others] = intents;
  const arriving = { chainId, token: swap?.token ?? destination.token, amount: destination.amount };
  const arrived = { chainId, token: destination.token, amount: destination.amount };
  const bridge: QuotedStep = {
    type: 'BRIDGE',
    seconds: solver.fillSeconds,
    from: { chainId: source.chain.chainId, token: source.token, amount: source.amount },
    to: arriving,
    intents: [main],
  };
  if (swap !== null) {
    return [bridge, { type: 'SWAP', seconds: SWAP_SECONDS, from: arriving, to: arrived, intents: others }];
  }
  if (destination.chain.kind === 'evm') return [bridge];
  return [bridge, { type: 'TRANSFER', seconds: TRANSFER_SECONDS, from: arrived, to: arrived, intents: [] }];
}

function roleOf(hash: Hex, { fundable: { plan } }: MadeQuote): 'primary' | 'secondary' | 'local' {
  if (plan.burn !== null) return 'local';
  return hash === plan.intentHash ? 'primary' : 'secondary';
}
