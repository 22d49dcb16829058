import type { SubjectId } from '../subjects/subject.ts';
import type { DisputeReason, Proof } from './proof.ts';
import type { Found, Move } from './reading.ts';
import type { Statement } from './statement.ts';

/** What one final reading, if it is right, says of a statement. */
export type Finding =
  | { outcome: 'verified'; checked: Proof['checked']; moves: Move[] }
  | { outcome: 'disputed'; reason: DisputeReason; checked: Proof['checked']; moves: Move[] }
  | { outcome: 'unchecked'; because: 'ambiguous' | 'not-stated' | 'token-not-checkable' };

/**
 * Holds a statement of a listed token against what moved. Whatever could be meant in an innocent way is no dispute.
 * `taken` tells which other subject a move already proved, by its index.
 */
export function findIn(
  statement: Statement,
  reading: Found,
  { taken }: { taken(index: number): SubjectId | null },
): Finding {
  const { payment, token, amount, recipients, intentHash } = statement;
  const disputed = (reason: DisputeReason, checked: Proof['checked'] = []): Finding => ({
    outcome: 'disputed',
    reason,
    checked: ['chain', ...checked, 'final'],
    moves: own,
  });
  // What somebody sends to himself reaches nobody.
  const own = reading.moves.filter((move) => move.token === token && move.from !== move.to);
  if (!reading.succeeded) return disputed('reverted');
  // Which moves were not kept is not known, so neither is whether this one is the only one.
  if (reading.isPartial === true) return { outcome: 'unchecked', because: 'ambiguous' };

  const isPinned = payment === 'destination' && reading.fulfilled !== null && intentHash !== null;
  if (isPinned && reading.fulfilled?.includes(intentHash) === false) {
    return disputed('other-intent', ['success']);
  }
  const toKnown = recipients.length === 0 ? own : own.filter((move) => isTo(move, recipients));
  const least = amount === null ? 1n : BigInt(amount);
  const candidates = toKnown.filter((move) => BigInt(move.amount) >= least);
  const free = candidates.filter(({ index }) => taken(index) === null);
  const [only] = free;
  if (only !== undefined) {
    if (free.length > 1) return { outcome: 'unchecked', because: 'ambiguous' };
    const checked: Proof['checked'] = [
      'chain',
      'success',
      'token',
      ...(amount === null ? [] : ['amount' as const]),
      ...(recipients.length === 0 ? [] : ['recipient' as const]),
      ...(isPinned ? ['intent' as const] : []),
      'exclusive',
      'final',
    ];
    return { outcome: 'verified', checked, moves: [only] };
  }
  // Of a refund neither token nor amount is stated: that another token moved contradicts nothing.
  if (amount === null) return { outcome: 'unchecked', because: 'not-stated' };
  if (candidates.length > 0) return takenByOthers();
  if (own.length === 0) return disputed('no-transfer', ['success']);
  if (toKnown.length === 0) return disputed('other-recipient', ['success', 'token']);
  // Each is too small, but a payment may come in parts: which of them are its parts cannot be told.
  if (gained(toKnown, recipients) >= least) return { outcome: 'unchecked', because: 'ambiguous' };
  if (toKnown.some((move) => move.mayHaveFee === true)) {
    return { outcome: 'unchecked', because: 'token-not-checkable' };
  }
  return disputed('short', ['success', 'token', ...(recipients.length === 0 ? [] : ['recipient' as const])]);

  /** Every move that would do proves another transfer. */
  function takenByOthers(): Finding {
    // One funding may pay for several transfers. And what an account gained may be the sum of several payments.
    const isSum = candidates.some((move) => move.from === null && BigInt(move.amount) > least);
    if (payment === 'source' || isSum) return { outcome: 'unchecked', because: 'ambiguous' };
    return disputed('other-intent', ['success', 'token', 'amount']);
  }
}

function isTo({ to, account }: Move, recipients: readonly string[]): boolean {
  return recipients.includes(to) || (account !== undefined && recipients.includes(account));
}

/**
 * How much reached anybody who may be meant: all that known recipients were sent, else what everybody has more of than
 * before. What only passed through somebody is not counted twice.
 */
function gained(moves: readonly Move[], recipients: readonly string[]): bigint {
  if (recipients.length > 0) return moves.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
  const net = new Map<string, bigint>();
  for (const { from, to, amount } of moves) {
    net.set(to, (net.get(to) ?? 0n) + BigInt(amount));
    if (from !== null) net.set(from, (net.get(from) ?? 0n) - BigInt(amount));
  }
  return [...net.values()].reduce((sum, value) => (value > 0n ? sum + value : sum), 0n);
}
