import type { JsonObject } from '../json.ts';
import { walletsOf } from '../subjects/subscription.ts';
import type { Directory } from '../transfers/chains.ts';
import { type Leg, readTransfer, type Transfer } from '../transfers/transfer.ts';

/** Filter of transfers; null passes all. `wallets` as in subjects, `chains` as ids in text, `minAmount` in token units. */
export type TransferFilter = {
  wallets: string[] | null;
  chains: string[] | null;
  minAmount: string | null;
};

/** Input of a filter: the record, and the claims that lead to the receiver. */
export type FilteredEvent = { record: JsonObject; claimKeys: readonly string[] };

/**
 * True when a filter passes an event. It blocks only events known to be unwanted; an event with missing facts passes.
 * `wallets`: a claim comes through a wallet of the list, or through none, as for a named transfer.
 * `chains`: an end of the transfer is unknown, or lies on a chain of the list.
 * `minAmount`: no amount of a token of the directory is known, or one reaches it.
 */
export function passesFilter(
  filter: TransferFilter,
  { record, claimKeys }: FilteredEvent,
  directory: Directory,
): boolean {
  const transfer = readTransfer(record);
  return (
    passesWallets(filter.wallets, claimKeys) &&
    passesChains(filter.chains, transfer) &&
    passesAmount(filter.minAmount, transfer, directory)
  );
}

function passesWallets(wanted: readonly string[] | null, claimKeys: readonly string[]): boolean {
  if (wanted === null) return true;
  return claimKeys.some((key) => {
    const [wallet] = walletsOf([key]);
    return wallet === undefined || wanted.includes(wallet);
  });
}

function passesChains(wanted: readonly string[] | null, { source, destination, refund }: Transfer): boolean {
  if (wanted === null) return true;
  const ends = [source?.chainId ?? null, destination?.chainId ?? null];
  if (ends.includes(null)) return true;
  return [...ends, refund?.chainId ?? null].some((chain) => chain !== null && wanted.includes(chain));
}

function passesAmount(
  minAmount: string | null,
  { source, destination }: Transfer,
  directory: Directory,
): boolean {
  if (minAmount === null) return true;
  const reported = [source, destination].flatMap((leg) => reaches(leg, minAmount, directory) ?? []);
  return reported.length === 0 || reported.includes(true);
}

/** True when the amount of a leg is at least a decimal in token units; null when amount or token are unknown. */
function reaches(leg: Leg | null, minAmount: string, directory: Directory): boolean | null {
  if (leg === null || leg.token === null || leg.chainId === null) return null;
  const token = directory.token(leg.chainId, leg.token);
  // More digits than any amount has would cost unbounded time.
  if (token === null || leg.amount === null || !/^\d{1,100}$/.test(leg.amount)) return null;
  const [whole = '', fraction = ''] = minAmount.split('.');
  const scaledMin = BigInt(whole + fraction) * 10n ** BigInt(token.decimals);
  return BigInt(leg.amount) * 10n ** BigInt(fraction.length) >= scaledMin;
}

/** Prefixes of operator events, which reach only receivers whose patterns name them. */
const OPERATOR_PREFIXES = ['upstream.', 'receiver.', 'intentwatch.'];

/** True for the type of an operator event. */
export function isOperatorType(type: string): boolean {
  return OPERATOR_PREFIXES.some((prefix) => type.startsWith(prefix));
}

/**
 * True when a receiver's `events` pass a type: some pattern matches, and no pattern with a leading `!` does. `*`
 * matches any run of characters. Operator events need a pattern that begins with their own prefix.
 */
export function wantsType(patterns: readonly string[], type: string): boolean {
  const positive = patterns.filter((pattern) => !pattern.startsWith('!'));
  const negative = patterns.filter((pattern) => pattern.startsWith('!')).map((pattern) => pattern.slice(1));
  if (negative.some((pattern) => matches(pattern, type))) return false;
  const candidates = isOperatorType(type)
    ? positive.filter((pattern) => OPERATOR_PREFIXES.some((prefix) => pattern.startsWith(prefix)))
    : positive;
  return candidates.some((pattern) => matches(pattern, type));
}

/** Most characters of a pattern, without a leading `!`. */
export const MAX_GLOB_LENGTH = 128;

function matches(pattern: string, type: string): boolean {
  return matchGlob(pattern, type).matches;
}

/**
 * Matches a whole text; `*` matches any run of characters. After a mismatch only the last `*` takes one more
 * character, since an earlier one would gain nothing: at most (pattern length + 1) × (text length + 1) `steps`.
 */
export function matchGlob(pattern: string, text: string): { matches: boolean; steps: number } {
  let [at, textAt, steps] = [0, 0, 0];
  let star: { at: number; textAt: number } | null = null;
  while (textAt < text.length) {
    steps += 1;
    if (pattern[at] === '*') {
      star = { at, textAt };
      at += 1;
    } else if (pattern[at] === text[textAt]) {
      at += 1;
      textAt += 1;
    } else if (star === null) {
      return { matches: false, steps };
    } else {
      star = { at: star.at, textAt: star.textAt + 1 };
      at = star.at + 1;
      textAt = star.textAt;
    }
  }
  while (pattern[at] === '*') {
    steps += 1;
    at += 1;
  }
  return { matches: at === pattern.length, steps };
}
