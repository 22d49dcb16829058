import type { StatedPayment } from '../../sandbox/chains/chains.ts';
import { TOKENS } from '../../sandbox/world/chains.ts';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { Proof } from '../../src/domain/proof/proof.ts';
import { ENDPOINTS } from './lying-faults.ts';
import { ONE_HOST, SOLANA, UNPINNED } from './lying-orders.ts';

/** The expected event about a payment: its outcome, with the reason of a dispute; `open`: none. */
export type Expected = 'verified' | 'unproven' | 'open' | `disputed ${string}`;

/** The block of a transaction; on Solana `number` is its slot. */
export type Place = { number: string; hash: string };

/**
 * A stated payment, whether two endpoints contradict each other about it, and whether two hosts prove the funding of its
 * transfer. `first`: the earlier statement of the same transaction, where this one states the payment of another.
 * `isBeside`: more moved in that transaction than to that other.
 */
export type Judged = {
  stated: StatedPayment;
  isContradicted: boolean;
  isFundingProved: boolean;
  first: { stated: StatedPayment; isBeside: boolean } | null;
};

/** The expected event about a payment, by the rules promised to the user; from tables, without code of the daemon. */
export function expectedOf(judged: Judged): Expected {
  const { stated, isContradicted } = judged;
  const expected = isUnlisted(stated) || isContradicted ? 'open' : expectedOfLie(judged);
  // One host alone is not enough to dispute a payment.
  const isAgainst = expected !== 'verified' && ONE_HOST.has(stated.chainId);
  return isAgainst ? 'open' : expected;
}

function expectedOfLie(judged: Judged): Expected {
  const { payment, lie, chainId } = judged.stated;
  if (payment === 'source') return 'verified';
  if (payment === 'refund') return expectedOfRefund(judged);
  const isPinned = !UNPINNED.has(chainId);
  switch (lie) {
    case null:
    case 'moved':
      return 'verified';
    case 'absent':
    case 'dropped':
      return 'unproven';
    case 'reverted':
      return 'disputed reverted';
    case 'no-log':
    case 'worthless-token':
    case 'to-itself':
      return 'disputed no-transfer';
    case 'short':
      return 'disputed short';
    case 'other-recipient':
      return 'disputed other-recipient';
    case 'other-intent':
    case 'forged':
      return isPinned ? 'disputed other-intent' : 'verified';
    case 'unlogged':
      return isPinned ? 'open' : 'verified';
    case 'two-logs':
    case 'in-parts':
      // The gain of an account on Solana is one sum.
      return chainId === SOLANA ? 'verified' : 'open';
    case 'reused':
      return 'disputed other-intent';
    case 'stale':
      return expectedOfStale(judged);
    case 'funding':
      throw new Error('a delivery states no funding');
    default:
      return lie satisfies never;
  }
}

/** Only a proved funding shows that the payment is older than its transfer. */
function expectedOfStale({ isFundingProved }: Judged): Expected {
  return isFundingProved ? 'disputed other-intent' : 'open';
}

/** A refund states neither token nor amount: the absence of a movement of the sent token contradicts nothing. */
function expectedOfRefund(judged: Judged): Expected {
  switch (judged.stated.lie) {
    case null:
    case 'moved':
      return 'verified';
    case 'stale':
      return expectedOfStale(judged);
    case 'reused':
      return isLikeOwnRefund(judged) ? 'disputed other-intent' : 'open';
    case 'absent':
    case 'dropped':
      return 'unproven';
    case 'reverted':
      return 'disputed reverted';
    default:
      return 'open';
  }
}

/**
 * True when only the payment to another could pass for the refund: nothing else moved, it went to the payer, and it is not
 * more than was sent. The payer is known on EVM chains alone.
 */
function isLikeOwnRefund({ stated, first, isFundingProved }: Judged): boolean {
  if (first === null || first.isBeside || !isFundingProved || stated.chainId === SOLANA) return false;
  const { recipient, token, amount } = first.stated;
  const isToPayer = recipient.toLowerCase() === stated.recipient.toLowerCase();
  return isToPayer && token === stated.token && BigInt(amount) <= BigInt(stated.amount);
}

function isUnlisted({ chainId, token }: StatedPayment): boolean {
  return !TOKENS.some((listed) => listed.chainId === chainId && listed.address === token);
}

function kindOf({ stated, isContradicted }: Judged): string {
  if (isUnlisted(stated)) return 'unlisted-token';
  return isContradicted ? 'contradicted' : (stated.lie ?? 'true');
}

/** The outcome that an event reports, as an `Expected`. */
function reportedOf({ type, data }: RenderedEvent): Expected | null {
  const { proof } = data;
  if (proof === undefined) return null;
  if (type === 'intent.disputed') return `disputed ${proof.reason}`;
  if (type === 'intent.verified') return 'verified';
  return type === 'intent.unproven' ? 'unproven' : null;
}

/** The name of a payment of an intent, in statements and in events. */
export const paymentKey = (intentHash: string, payment: string): string => `intent:${intentHash} ${payment}`;

/** The result: the mismatches, as text, and the number of times that each outcome was expected of each lie. */
export type LyingAccount = { problems: string[]; counts: Map<string, number> };

/** The events, whether an hour has passed on the chains, and the final place of each transaction, by `placeKey`. */
export type Reported = {
  events: readonly RenderedEvent[];
  passesHour: boolean;
  places: ReadonlyMap<string, Place>;
};

/** Compares the events with the expected ones, payment by payment. */
export function accountLies(
  judged: readonly Judged[],
  { events, passesHour, places }: Reported,
): LyingAccount {
  const problems: string[] = [];
  const counts = new Map<string, number>();
  const reported = new Map<string, RenderedEvent[]>();
  for (const event of events) {
    const { proof, subject } = event.data;
    if (proof === undefined) continue;
    const key = `${subject.id} ${proof.payment}`;
    reported.set(key, [...(reported.get(key) ?? []), event]);
  }
  for (const one of judged) {
    const { intentHash, payment } = one.stated;
    const key = paymentKey(intentHash, payment);
    const inTime = expectedOf(one);
    const expected = inTime === 'unproven' && !passesHour ? 'open' : inTime;
    const name = `${kindOf(one)} ${payment}: ${expected}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
    const found = reported.get(key) ?? [];
    reported.delete(key);
    const [first] = found;
    const outcome = first === undefined ? 'open' : reportedOf(first);
    if (found.length > 1) problems.push(`${key} was reported ${found.length} times`);
    if (outcome !== expected) {
      const on = `${kindOf(one)} on ${one.stated.chainId}`;
      problems.push(`${key} (${on}): reported ${outcome}, expected ${expected}`);
    }
    const proof = first?.data.proof;
    if (proof === undefined) continue;
    problems.push(...proofFaults(one.stated, { proof, outcome, places }).map((fault) => `${key}: ${fault}`));
  }
  for (const key of reported.keys()) problems.push(`${key} was reported, and never stated`);
  return { problems: [...problems, ...usedTwice(events)], counts };
}

/** The name of a transaction among places. */
export const placeKey = ({ chainId, txHash }: { chainId: number; txHash: string }): string =>
  `${chainId} ${txHash}`;

/** The faults of a reported proof, with any outcome. */
function proofFaults(
  stated: StatedPayment,
  { proof, outcome, places }: { proof: Proof; outcome: Expected | null; places: Reported['places'] },
): string[] {
  const { chainId, amount, recipient, payment } = stated;
  const faults: string[] = [];
  const isAlone = ONE_HOST.has(chainId);
  if ((proof.singleSource === true) !== isAlone) faults.push(`singleSource is ${proof.singleSource}`);
  if (!isAlone && ENDPOINTS.some((name) => !proof.endpoints.includes(name))) {
    faults.push(`${outcome} by ${proof.endpoints.join(' and ')} alone`);
  }
  const place = places.get(placeKey(stated));
  if (proof.block !== undefined && proof.block.hash !== place?.hash) {
    faults.push(
      `${outcome} in block ${proof.block.number} ${proof.block.hash}, it is in ${place?.number} ${place?.hash}`,
    );
  }
  const move = proof.moved?.[0];
  if (outcome !== 'verified') return faults;
  if (proof.block === undefined || move === undefined) return [...faults, 'verified by nothing'];
  if (payment !== 'refund' && BigInt(move.amount) < BigInt(amount)) {
    faults.push(`proved by ${move.amount}, stated ${amount}`);
  }
  if (payment === 'destination' && move.to.toLowerCase() !== recipient.toLowerCase()) {
    faults.push(`proved by a payment to ${move.to}, expected ${recipient}`);
  }
  return faults;
}

function usedTwice(events: readonly RenderedEvent[]): string[] {
  const proved = new Map<string, string>();
  return events.flatMap(({ type, data: { proof, subject } }) => {
    if (type !== 'intent.verified' || proof === undefined || proof.payment === 'source') return [];
    return (proof.moved ?? []).flatMap(({ index }) => {
      const log = `${proof.chainId} ${proof.txHash} ${index}`;
      const whose = `${subject.id} ${proof.payment}`;
      const other = proved.get(log) ?? whose;
      proved.set(log, other);
      return other === whose ? [] : [`${whose}: proved by log ${log}, which proved ${other}`];
    });
  });
}
