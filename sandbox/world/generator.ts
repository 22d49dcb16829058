import { type Chain, type ChainKind, chainsOfKind, tokenAt, tokensOf } from './chains.ts';
import { address, intentHash, transactionHash, uuid } from './identifiers.ts';
import type { Fate, Job, Leg, Origin, TransferPlan, Waits } from './plan.ts';
import {
  between,
  chance,
  exponential,
  integer,
  logNormal,
  pick,
  type Random,
  randomStream,
  zipf,
} from './random.ts';

/** A wallet that sends and receives transfers. */
export type Wallet = { address: string; kind: ChainKind };

/** A client's choices for a transfer. A funder that is not known yet (null) is drawn. */
export type Order = {
  origin: 'quote' | 'vault' | 'direct';
  funder: string | null;
  recipient: string;
  /** Null where it is the funder. */
  refundRecipient: string | null;
  source: Omit<Leg, 'txHash'>;
  destination: Omit<Leg, 'txHash'>;
};

/** Draws transfers. The same seed and number of wallets give the same results, in any order of requests. */
export type Generator = {
  readonly wallets: readonly Wallet[];
  /** The nth transfer of a stream, with the given origin or fate, else a drawn one. */
  transfer(which: { stream: string; index: number; origin?: Origin; fate?: Fate }): TransferPlan;
  /** The nth transfer that a client requested. It settles. */
  ordered(index: number, order: Order): TransferPlan;
  /** The wait from birth `index` to the next, in means of the birth rate. */
  gap(index: number): number;
};

const SHARE_OF_QUOTES = 0.25;
const SHARE_OF_GASLESS = 0.15;
const SHARE_OF_VAULTS = 0.1;

const SHARE_UNBORN = { direct: 0, quote: 0, gasless: 0.06, vault: 0.08 } satisfies Record<Origin, number>;
const SHARE_REFUNDED = 0.06;
const SHARE_FAILED = 0.02;
const SHARE_LATE_DETAILS = 0.2;

const SHARE_SLOW = 0.2;
const FILL_MEDIAN_SECONDS = 25;
const SLOW_FILL_MEDIAN_SECONDS = 120;
const SETTLEMENT_MEDIAN_SECONDS = 180;
const SPREAD = 0.5;

const LARGEST_COST_MILLIONTHS = 2_000;

/** Creates a generator. `walletSkew`: exponent of Zipf's law by which the first wallets have more transfers. */
export function createGenerator(options: { seed: number; wallets: number; walletSkew?: number }): Generator {
  const { seed, wallets: count, walletSkew = 0 } = options;
  const wallets = Array.from({ length: count }, (_, index): Wallet => {
    const kind = walletKind(index);
    return { kind, address: address(randomStream(seed, 'wallet', index), kind) };
  });
  const anyWallet = drawFrom(wallets, walletSkew);
  const evmWallet = drawFrom(
    wallets.filter((wallet) => wallet.kind === 'evm'),
    walletSkew,
  );

  return {
    wallets,
    transfer({ stream, index, origin: wantedOrigin, fate: wantedFate }) {
      const random = randomStream(seed, 'transfer', stream, index);
      const drawnOrigin = drawOrigin(random);
      // Vaults and signed authorizations exist on EVM chains only.
      const origin = wantedOrigin ?? drawnOrigin;
      const needsEvm = origin === 'gasless' || origin === 'vault';
      const { funder, recipient } = drawParties(random, needsEvm ? evmWallet : anyWallet, anyWallet);
      const drawnFate = drawFate(random, origin);
      const { source, destination } = drawLegs(random, funder.kind, recipient.kind);
      return {
        intentHash: intentHash(random),
        origin,
        fate: wantedFate ?? drawnFate,
        funder: funder.address,
        recipient: recipient.address,
        refundRecipient: null,
        source,
        destination,
        refundTxHash: transactionHash(random, source.chain.kind),
        quoteUuid: origin === 'quote' || origin === 'gasless' ? uuid(random) : null,
        job:
          origin === 'gasless'
            ? jobOf({ uuid: uuid(random), permitTxHash: transactionHash(random, source.chain.kind) })
            : null,
        vaultAddress: origin === 'vault' ? address(random, 'evm') : null,
        intentVault: null,
        swap: null,
        burn: null,
        showsDepositAddress: false,
        delivers: null,
        stepFails: false,
        lie: null,
        waits: drawWaits(random),
      };
    },
    ordered(index, { origin, funder, recipient, refundRecipient, source, destination }) {
      const random = randomStream(seed, 'transfer', 'ordered', index);
      return {
        intentHash: intentHash(random),
        origin,
        fate: 'settled',
        funder: funder ?? address(random, source.chain.kind),
        recipient,
        refundRecipient,
        source: { ...source, txHash: transactionHash(random, source.chain.kind) },
        destination: { ...destination, txHash: transactionHash(random, destination.chain.kind) },
        refundTxHash: transactionHash(random, source.chain.kind),
        quoteUuid: origin === 'quote' ? uuid(random) : null,
        job: null,
        vaultAddress: origin === 'vault' ? address(random, 'evm') : null,
        intentVault: null,
        waits: drawWaits(random),
        // Drawn last, so that earlier draws stay the same.
        swap: origin === 'quote' ? swapOf(random, source, destination) : null,
        burn: null,
        showsDepositAddress: false,
        delivers: null,
        stepFails: false,
        lie: null,
      };
    },
    gap: (index) => exponential(randomStream(seed, 'gap', index)),
  };
}

/** Between two symbols, the token with the source's symbol arrives first and is swapped, where the chain has it. */
function swapOf(
  random: Random,
  source: Order['source'],
  destination: Order['destination'],
): TransferPlan['swap'] {
  const symbolOf = ({ chain, token }: Order['source']): string => tokenAt(chain.chainId, token).symbol;
  const arriving = tokensOf(destination.chain).find(({ symbol }) => symbol === symbolOf(source));
  if (arriving === undefined || arriving.address === destination.token) return null;
  return {
    intentHash: intentHash(random),
    token: arriving.address,
    txHash: transactionHash(random, destination.chain.kind),
  };
}

/** Half of the jobs are ERC-3009 authorizations: the first hex digit of the id decides, so that no other draw moves. */
function jobOf({ uuid: id, permitTxHash }: { uuid: string; permitTxHash: string }): Job {
  return { uuid: id, permitTxHash: id >= '8' ? permitTxHash : null };
}

function drawFrom(list: readonly Wallet[], skew: number): (random: Random) => Wallet {
  const place = zipf(list.length, skew);
  return (random) => {
    const wallet = list[place(random)];
    if (wallet === undefined) throw new Error('there is no wallet to draw from');
    return wallet;
  };
}

/** Seven wallets in ten are EVM (the first always), two Solana, one Tron. */
function walletKind(index: number): ChainKind {
  const position = index % 10;
  if (position === 9) return 'tron';
  return position === 3 || position === 7 ? 'solana' : 'evm';
}

function drawOrigin(random: Random): Origin {
  const draw = random();
  if (draw < SHARE_OF_QUOTES) return 'quote';
  if (draw < SHARE_OF_QUOTES + SHARE_OF_GASLESS) return 'gasless';
  return draw < SHARE_OF_QUOTES + SHARE_OF_GASLESS + SHARE_OF_VAULTS ? 'vault' : 'direct';
}

function drawFate(random: Random, origin: Origin): Fate {
  if (chance(random, SHARE_UNBORN[origin])) return 'unborn';
  const draw = random();
  if (draw < SHARE_REFUNDED) return 'refunded';
  if (draw < SHARE_REFUNDED + SHARE_FAILED) return 'failed';
  return chance(random, SHARE_LATE_DETAILS) ? 'late-details' : 'settled';
}

/** One party is a wallet of ours; the other is the same one, another of ours, or an unknown address. */
function drawParties(
  random: Random,
  owner: (random: Random) => Wallet,
  anyWallet: (random: Random) => Wallet,
): { funder: Wallet; recipient: Wallet } {
  const own = owner(random);
  const stranger = (): Wallet => ({ kind: 'evm', address: address(random, 'evm') });
  const draw = random();
  let other = own.kind === 'evm' && draw < 0.6 ? own : draw < 0.8 ? anyWallet(random) : stranger();
  // A transfer crosses chains, and every kind but EVM has only one chain.
  if (other.kind === own.kind && own.kind !== 'evm') other = stranger();
  const ownFunds = other.kind !== 'evm' || chance(random, 0.7);
  return ownFunds ? { funder: own, recipient: other } : { funder: other, recipient: own };
}

function drawLegs(random: Random, from: ChainKind, to: ChainKind): { source: Leg; destination: Leg } {
  const sourceChain = pick(random, chainsOfKind(from));
  const destinationChain = pick(
    random,
    chainsOfKind(to).filter((chain) => chain !== sourceChain),
  );
  const sourceToken = pick(random, tokensOf(sourceChain));
  const destinationToken =
    tokensOf(destinationChain).find((token) => token.symbol === sourceToken.symbol) ??
    pick(random, tokensOf(destinationChain));
  const amount = BigInt(Math.round(10 ** between(random, 1, 5) * 10 ** sourceToken.decimals));
  const cost = (amount * BigInt(integer(random, LARGEST_COST_MILLIONTHS))) / 1_000_000n;
  return {
    source: leg(random, { chain: sourceChain, token: sourceToken.address, amount }),
    destination: leg(random, {
      chain: destinationChain,
      token: destinationToken.address,
      amount: amount - cost,
    }),
  };
}

function leg(random: Random, { chain, token, amount }: { chain: Chain; token: string; amount: bigint }): Leg {
  return { chain, token, amount: amount.toString(), txHash: transactionHash(random, chain.kind) };
}

function drawWaits(random: Random): Waits {
  const fillMedian = chance(random, SHARE_SLOW) ? SLOW_FILL_MEDIAN_SECONDS : FILL_MEDIAN_SECONDS;
  return {
    toFunding: between(random, 5, 40),
    toPublishing: between(random, 2, 10),
    toFill: logNormal(random, { median: fillMedian, sigma: SPREAD }),
    toDetails: between(random, 1, 6),
    toSettlement: logNormal(random, { median: SETTLEMENT_MEDIAN_SECONDS, sigma: SPREAD }),
    toExpiry: logNormal(random, { median: 180, sigma: 0.3 }),
    toRefundable: between(random, 20, 60),
    toRefund: between(random, 30, 120),
    toFailure: logNormal(random, { median: 60, sigma: SPREAD }),
  };
}
