import { bytesToHex } from 'viem';
import type { Chain, ChainKind } from '../world/chains.ts';
import { address } from '../world/identifiers.ts';
import { bytes, chance, randomStream } from '../world/random.ts';
import type { Included } from './ledger.ts';

/** A movement of tokens, in base units. */
export type Move = { token: string; from: string; to: string; amount: bigint };

/**
 * Effect of a transaction. `fulfilled`: the intent of its logged fulfilment; `forged`: the intent that a foreign contract
 * names.
 */
export type Outcome = { succeeded: boolean; moves: Move[]; fulfilled: string | null; forged?: string };

/** Address to which tokens are burnt, and from which they are minted. */
export const NOBODY = '0x0000000000000000000000000000000000000000';

/** Divisor of a short payment's missing part: a hundredth, and at least one unit. */
const SHORT_BY = 100n;

/** Divisor of the fee that every other solver pays beside the amount, as some fillers do: such a log proves nothing. */
const FEE_SHARE = 1_000n;
const FEE_RATE = 0.5;

/** Effect of a transaction, including its lie. All draws depend on its hash, so that each call returns the same. */
export function outcomeOf(included: Included, chain: Chain): Outcome {
  const { payment, txHash, token, from, recipient, lie, intentHash } = included;
  const amount = BigInt(included.amount);
  const stranger = (role: string): string => address(randomStream(txHash, role), chain.kind);
  // A mint names no intent: the burn fulfils it.
  const isFulfilment =
    (payment === 'destination' && from !== NOBODY) || payment === 'swap' || payment === 'burn';
  const fulfilled = isFulfilment ? intentHash : null;
  const paid = (move: Partial<Move> = {}): Move => ({ token, from, to: recipient, amount, ...move });
  const fee = (of: string): Move[] =>
    payment === 'destination' && amount > FEE_SHARE && chance(randomStream(txHash, 'fee'), FEE_RATE)
      ? [{ token: of, from, to: partyOf(chain.kind, 'fees'), amount: amount / FEE_SHARE }]
      : [];
  switch (lie) {
    case 'reverted':
      return { succeeded: false, moves: [], fulfilled: null };
    case 'no-log':
      return { succeeded: true, moves: [], fulfilled };
    case 'short': {
      const lacking = amount / SHORT_BY;
      return {
        succeeded: true,
        moves: [...fee(token), paid({ amount: amount - (lacking > 0n ? lacking : 1n) })],
        fulfilled,
      };
    }
    case 'other-recipient':
      return { succeeded: true, moves: [...fee(token), paid({ to: stranger('recipient') })], fulfilled };
    case 'worthless-token': {
      const worthless = stranger('token');
      return { succeeded: true, moves: [...fee(worthless), paid({ token: worthless })], fulfilled };
    }
    case 'two-logs':
      return { succeeded: true, moves: [paid(), ...fee(token), paid()], fulfilled };
    case 'to-itself':
      return { succeeded: true, moves: [paid({ from: recipient })], fulfilled };
    case 'in-parts': {
      const half = amount / 2n;
      const halves = [paid({ amount: half }), paid({ amount: amount - half })];
      return { succeeded: true, moves: [...fee(token), ...halves], fulfilled };
    }
    case 'other-intent':
    case 'forged': {
      const other = bytesToHex(bytes(randomStream(txHash, 'intent'), 32));
      const reported = { succeeded: true, moves: [...fee(token), paid()], fulfilled: other };
      return lie === 'forged' ? { ...reported, forged: intentHash } : reported;
    }
    case 'unlogged':
      return { succeeded: true, moves: [...fee(token), paid()], fulfilled: null };
    default:
      return { succeeded: true, moves: [...fee(token), paid()], fulfilled };
  }
}

/** Address of a party to payments outside the transfer: the same on every chain of a kind. */
export function partyOf(kind: ChainKind, role: 'solver' | 'portal' | 'fees'): string {
  return address(randomStream('chain-party', role), kind);
}
