import { encodeFunctionData, getAddress, type Hex, isHex, parseAbi } from 'viem';
import { address } from '../world/identifiers.ts';
import { type Market, solversIn } from '../world/market.ts';
import type { Fundable, Orders } from '../world/orders.ts';
import { intentHashesOf } from '../world/plan.ts';
import { bytes, randomStream } from '../world/random.ts';
import type { StepType } from '../world/record.ts';
import { type Price, price, type Solver, type Wanted } from './pricing.ts';
import type { QuoteSigners } from './quote-signers.ts';
import type { Place } from './route.ts';

/** Order for a quote; `slippageMillionths` is the distance of the least output below the expected one. */
export type QuoteOrder = {
  type: Wanted['type'];
  source: Place & { funder: string };
  destination: Place & { recipient: string; minAmountOut: bigint | null };
  slippageMillionths: bigint;
};

/** A v1 quote as it is sent. Amounts are base units, `expiresAt` Unix seconds. */
export type Quote = {
  id: string;
  type: Wanted['type'];
  signature: string;
  expiresAt: number;
  intentHash: string;
  source: { chainId: number; token: string; funder: string; amount: string };
  destination: {
    chainId: number;
    token: string;
    recipient: string;
    amountOut: string;
    minAmountOut: string;
  };
  fees: { type: 'solver' | 'protocol'; token: string; amount: string }[];
  steps: { type: StepType; intents: { intentHash: string; role: 'primary' | 'secondary' }[] }[];
  execution: {
    transaction:
      | { type: 'evm'; chainId: number; to: string; data: string; value: string }
      | { type: 'solana'; chainId: number; payload: string };
  };
};

/** Makes quotes and signs them. */
export type QuoteDesk = {
  readonly solvers: readonly Solver[];
  hasSolvers(): boolean;
  /** Price of each solver, cheapest first; solvers that cannot serve are omitted. */
  prices(wanted: Wanted, minAmountOut?: bigint | null): { solver: Solver; price: Price }[];
  quote(order: QuoteOrder, price: Price): Promise<Quote>;
};

const PORTAL = parseAbi(['function publishAndFund(bytes32 intentHash, address token, uint256 amount)']);

/** The contract that intents are funded at, on every EVM chain. */
export function portalAddress(seed: number): Hex {
  return getAddress(address(randomStream(seed, 'portal'), 'evm'));
}

export function createQuoteDesk({
  seed,
  solvers,
  signers,
  orders,
  market,
}: {
  seed: number;
  solvers: readonly Solver[];
  market: () => Market;
  signers: QuoteSigners;
  orders: Orders;
}): QuoteDesk {
  const portal = portalAddress(seed);

  function transaction({ plan }: Fundable): Quote['execution']['transaction'] {
    const { chain, token, amount } = plan.source;
    if (chain.kind === 'solana') {
      const payload = bytes(randomStream(seed, 'solana-payload', plan.intentHash), 192);
      return {
        type: 'solana',
        chainId: chain.chainId,
        payload: Buffer.from(payload).toString('base64'),
      };
    }
    if (!isHex(plan.intentHash) || !isHex(token))
      throw new Error(`${plan.intentHash} is not an EVM transfer`);
    const data = encodeFunctionData({
      abi: PORTAL,
      functionName: 'publishAndFund',
      args: [plan.intentHash, token, BigInt(amount)],
    });
    return { type: 'evm', chainId: chain.chainId, to: portal, data, value: '0' };
  }

  return {
    solvers,
    hasSolvers: () => solversIn(market(), solvers).length > 0,
    prices: (wanted, minAmountOut = null) =>
      solversIn(market(), solvers).flatMap((solver) => {
        const found = price(solver, wanted);
        const reaches = found !== null && (minAmountOut === null || found.destinationAmount >= minAmountOut);
        return reaches ? [{ solver, price: found }] : [];
      }),
    async quote({ type, source, destination, slippageMillionths }, requested) {
      const fundable = orders.prepare({
        origin: 'quote',
        funder: source.funder,
        recipient: destination.recipient,
        source: {
          chain: source.chain,
          token: source.token.address,
          amount: requested.sourceAmount.toString(),
        },
        destination: {
          chain: destination.chain,
          token: destination.token.address,
          amount: requested.destinationAmount.toString(),
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
      const slip = type === 'exact-in' ? (requested.destinationAmount * slippageMillionths) / 1_000_000n : 0n;
      const minAmountOut = destination.minAmountOut ?? requested.destinationAmount - slip;
      const token = source.token.address;
      return {
        id,
        type,
        signature,
        expiresAt,
        intentHash: plan.intentHash,
        source: {
          chainId: source.chain.chainId,
          token,
          funder: source.funder,
          amount: plan.source.amount,
        },
        destination: {
          chainId: destination.chain.chainId,
          token: destination.token.address,
          recipient: destination.recipient,
          amountOut: plan.destination.amount,
          minAmountOut: minAmountOut.toString(),
        },
        fees: [
          { type: 'solver', token, amount: requested.solverFee.toString() },
          { type: 'protocol', token, amount: requested.protocolFee.toString() },
        ],
        steps: [
          { type: 'BRIDGE', intents: [{ intentHash: plan.intentHash, role: 'primary' }] },
          ...(plan.swap === null
            ? []
            : [
                {
                  type: 'SWAP' as const,
                  intents: [{ intentHash: plan.swap.intentHash, role: 'secondary' as const }],
                },
              ]),
        ],
        execution: { transaction: transaction(fundable) },
      };
    },
  };
}
