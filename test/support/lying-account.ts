import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { StatedPayment } from '../../src/sandbox/chains/chains.ts';
import { UNPINNED } from './lying-orders.ts';

const SOLANA = 1399811149;

/** What must be told of a payment: its outcome, with the reason of a dispute; `open`: nothing. */
export type Expected = 'verified' | 'unproven' | 'open' | `disputed ${string}`;

/** A stated payment, and whether two endpoints contradict each other about it. */
export type Judged = { stated: StatedPayment; isContradicted: boolean };

/**
 * What must be told of a payment, by the rules that the user is promised; a table, and none of the daemon's code. A
 * payment that several intents state is not among it: see `accountShared`.
 */
export function expectedOf({ stated, isContradicted }: Judged): Expected {
  const { payment, chainId, lie } = stated;
  if (lie === 'absent' || lie === 'dropped') return 'unproven';
  if (isContradicted) return 'open';
  if (payment === 'source') return 'verified';
  // Of a refund neither token nor amount is stated: that nothing of what was sent moved contradicts nothing.
  if (payment === 'refund') {
    if (lie === 'reverted') return 'disputed reverted';
    return lie === null ? 'verified' : 'open';
  }
  switch (lie) {
    case null:
    case 'moved':
      return 'verified';
    case 'reverted':
      return 'disputed reverted';
    case 'no-log':
    case 'worthless-token':
      return 'disputed no-transfer';
    case 'short':
      return 'disputed short';
    case 'other-recipient':
      return 'disputed other-recipient';
    case 'other-intent':
      return UNPINNED.has(chainId) ? 'verified' : 'disputed other-intent';
    case 'two-logs':
      // What an account of Solana gained is one sum.
      return chainId === SOLANA ? 'verified' : 'open';
    case 'reused':
      return 'disputed other-intent';
  }
}

/** What was told of a payment, in the words of `Expected`. */
function toldOf({ type, data }: RenderedEvent): Expected | null {
  const { proof } = data;
  if (proof === undefined) return null;
  if (type === 'intent.disputed') return `disputed ${proof.reason}`;
  if (type === 'intent.verified') return 'verified';
  return type === 'intent.unproven' ? 'unproven' : null;
}

/** The name of a payment of an intent, in what is stated and in what is told. */
export const paymentKey = (intentHash: string, payment: string): string => `intent:${intentHash} ${payment}`;

/** What comes of an account: what does not fit, in words, and how often each outcome was expected of each lie. */
export type LyingAccount = { problems: string[]; counts: Map<string, number> };

/** Holds what was told against what must be, payment by payment. */
export function accountLies(
  judged: readonly Judged[],
  { events, passesHour }: { events: readonly RenderedEvent[]; passesHour: boolean },
): LyingAccount {
  const problems: string[] = [];
  const counts = new Map<string, number>();
  const told = new Map<string, RenderedEvent[]>();
  for (const event of events) {
    const { proof, subject } = event.data;
    if (proof === undefined) continue;
    const key = `${subject.id} ${proof.payment}`;
    told.set(key, [...(told.get(key) ?? []), event]);
  }
  for (const one of judged) {
    const { intentHash, payment, lie, amount, recipient } = one.stated;
    const key = paymentKey(intentHash, payment);
    const inTime = expectedOf(one);
    const expected = inTime === 'unproven' && !passesHour ? 'open' : inTime;
    const name = `${lie ?? (one.isContradicted ? 'contradicted' : 'true')} ${payment}: ${expected}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
    const found = told.get(key) ?? [];
    told.delete(key);
    const [first] = found;
    const says = first === undefined ? 'open' : toldOf(first);
    if (found.length > 1) problems.push(`${key} was told ${found.length} times`);
    if (says !== expected) problems.push(`${key} (${lie}): told ${says}, expected ${expected}`);
    const move = first?.data.proof?.moved?.[0];
    if (says !== 'verified' || move === undefined) continue;
    if (BigInt(move.amount) < BigInt(amount))
      problems.push(`${key}: proved by ${move.amount}, stated ${amount}`);
    if (payment === 'destination' && move.to.toLowerCase() !== recipient.toLowerCase()) {
      problems.push(`${key}: proved by a payment to ${move.to}, expected ${recipient}`);
    }
  }
  for (const key of told.keys()) problems.push(`${key} was told, and never stated`);
  return { problems, counts };
}
