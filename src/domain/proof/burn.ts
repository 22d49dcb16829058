import { isJsonObject, type JsonObject } from '../json.ts';
import { isLocalRole, localHashes, wordOf } from '../quotes/promised.ts';
import { foldHex } from '../subjects/subject.ts';
import type { Found, Move, TxState } from './proof.ts';
import type { Stated } from './statement.ts';

/*
 * A local intent is fulfilled on its source chain, by a contract that burns the token there; the token's issuer mints it on the
 * target chain. The mint names no intent. What ties it to one is the number of the burn's message, which the issuer's
 * transmitter logs on both chains:
 *
 *   fulfilling transaction on the source chain       | transaction on the target chain
 *   -------------------------------------------------|------------------------------------------------
 *   event of `fulfilments` with the intent's hash    | MessageReceived with the same source domain and nonce
 *   MessageSent with source domain and nonce         | Transfer of the token from nobody, with recipient and amount of the message
 *
 * Version 2 of the transmitter assigns the nonce off the chain: its MessageSent has none, so that nothing ties the two.
 */

/** A burn message that a transmitter sent or received. `key`: its source domain and nonce, `6:4711`. */
export type BurnMessage = { key: string; recipient: string; amount: string };

/**
 * Evidence of the burn of a local intent. `open`: the burn may become known. `none`: nothing ties a mint to the intent.
 * `isSingle`: one host alone has reported it.
 */
export type Burn =
  | { state: 'open' | 'none' }
  | { state: 'sent'; message: BurnMessage; chainId: string; txHash: string; isSingle: boolean };

/** The transaction that fulfils a local intent; null where no record states it on another chain than the payment. */
export type LocalIntent = { fulfilledBy: { chainId: string; txHash: string } | null };

/** After this time a burn that is not stated, or that no endpoint has, is not waited for. */
const PATIENCE_MS = 3_600_000;

const NOBODY = `0x${'0'.repeat(40)}`;

/**
 * Recognises the delivery of a local intent: the quote or a step of the record calls it local, or the record has it fulfilled on
 * its source chain and delivered on another. Null for any other payment.
 */
export function localIntent(
  { payment, intentHash, chainId }: Stated,
  { promised, record }: { promised: { local?: true } | null; record: JsonObject | null },
): LocalIntent | null {
  if (payment !== 'destination' || intentHash === null) return null;
  const steps = record !== null && Array.isArray(record.steps) ? record.steps.filter(isJsonObject) : [];
  const own = steps.filter((step) => foldHex(wordOf(step.intentHash) ?? '') === intentHash);
  const [fulfilledBy = null] = own.flatMap((step) => {
    const { chainId: chain, txHash } = transactionOf(step, 'fulfilled');
    return chain === null || txHash === null || chain === chainId ? [] : [{ chainId: chain, txHash }];
  });
  const isCalledLocal =
    promised?.local === true ||
    own.some((step) => isLocalRole(step.role)) ||
    steps.some((step) => localHashes(step).includes(intentHash));
  // Of several intents of one transfer, the first may well be a swap on the source chain.
  const isAlone = own.length === steps.length;
  const isAtSource =
    fulfilledBy !== null && isAlone && own.some((step) => sourceOf(step, record) === fulfilledBy.chainId);
  return isCalledLocal || isAtSource ? { fulfilledBy } : null;
}

function transactionOf(step: JsonObject, name: string): { chainId: string | null; txHash: string | null } {
  const all = isJsonObject(step.transactions) ? step.transactions : {};
  const one = isJsonObject(all[name]) ? all[name] : {};
  const txHash = wordOf(one.txHash);
  return { chainId: wordOf(one.chainId), txHash: txHash === null ? null : foldHex(txHash) };
}

function sourceOf(step: JsonObject, record: JsonObject | null): string | null {
  const sourceTx = isJsonObject(record?.sourceTx) ? record.sourceTx : {};
  const from = isJsonObject(step.from) ? step.from : {};
  return wordOf(sourceTx.chainId) ?? transactionOf(step, 'created').chainId ?? wordOf(from.chainId);
}

/**
 * Evidence by the observations of the fulfilling transaction, which may not be stated yet. The transaction counts if it is
 * final, fulfils this intent alone by the pinned contract, and sent one burn message: of several, none is known to be the
 * intent's.
 */
export function burnOf(
  txStates: readonly TxState[],
  {
    intentHash,
    fulfilledBy,
    ageMs,
  }: { intentHash: string; fulfilledBy: LocalIntent['fulfilledBy']; ageMs: number },
): Burn {
  const unstated: Burn = { state: ageMs < PATIENCE_MS ? 'open' : 'none' };
  if (fulfilledBy === null) return unstated;
  const final = txStates.filter((txState) => txState.outcome === 'found').filter(({ isFinal }) => isFinal);
  const [first] = final;
  if (first === undefined) {
    const isMissing =
      txStates.some(({ outcome }) => outcome === 'absent') &&
      txStates.every(({ outcome }) => outcome !== 'found');
    // A failure is no absence, and a block becomes final later: the check itself has an end.
    return isMissing ? unstated : { state: 'open' };
  }
  const isContradicted =
    final.some((other) => printOf(other) !== printOf(first)) ||
    txStates.some((txState) => isPast(txState, first));
  const isSingle = new Set(final.map(({ host }) => host)).size < 2;
  const isAlone = new Set(txStates.map(({ host }) => host)).size < 2;
  if (isContradicted || (isSingle && !isAlone && ageMs < PATIENCE_MS)) return { state: 'open' };
  const sent = first.burns?.sent ?? [];
  const [message] = sent;
  const fulfilled = new Set(first.fulfilled ?? []);
  const isOwn = first.succeeded && fulfilled.size === 1 && fulfilled.has(intentHash);
  if (!isOwn || message === undefined || sent.length > 1) return { state: 'none' };
  return { state: 'sent', message, ...fulfilledBy, isSingle };
}

/** True when an endpoint does not have a transaction, though its final head is at or past the block of it. */
export function isPast(txState: TxState, { block }: Found): boolean {
  if (txState.outcome !== 'absent' || txState.head === null) return false;
  return BigInt(txState.head.number) >= BigInt(block.number);
}

function printOf({ block, succeeded, fulfilled, burns }: Found): string {
  return JSON.stringify([block.number, block.hash, succeeded, fulfilled, burns?.sent ?? []]);
}

/** Moves that minted a burn message in the transaction that received it; none where it was not received once, as it was sent. */
export function mintsOf({ burns, moves, succeeded }: Found, { key, recipient, amount }: BurnMessage): Move[] {
  const received = (burns?.received ?? []).filter((one) => one.key === key);
  const [only] = received;
  const isSame = received.length === 1 && only?.recipient === recipient && only.amount === amount;
  if (!isSame || !succeeded) return [];
  return moves.filter((move) => move.from === NOBODY && move.to === recipient && move.amount === amount);
}
