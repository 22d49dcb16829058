import { ageOf, type Claim, type Funding, holderOf, weightOf } from './claim.ts';
import type { DisputeReason, Found, Move, Proof } from './proof.ts';
import type { Statement } from './statement.ts';

/**
 * What one final reading, if it is right, says of a statement. `from`: the checks that lose the log by it; `isHeld`: it is so
 * only as long as others hold the logs that would do.
 */
export type Finding =
  | { outcome: 'verified'; checked: Proof['checked']; moves: Move[]; from: string[] }
  | {
      outcome: 'disputed';
      reason: DisputeReason;
      checked: Proof['checked'];
      moves: Move[];
      isHeld: boolean;
    }
  | { outcome: 'unchecked'; because: UncheckedFinding; isHeld: boolean }
  | { outcome: 'waiting'; because: 'funding' | 'claimed' };

type UncheckedFinding = 'ambiguous' | 'not-stated' | 'token-not-checkable' | 'no-fulfilment' | 'too-old';

/** What is known beside the reading. */
export type FindRules = {
  /** The payment that a move of this transaction already proved, by `Move.index`; null for none, and for this one. */
  claimOn(index: number): Claim | null;
  funding: Funding;
  /** When the upstream stated it. */
  statedAtMs: number;
  nowMs: number;
  /** The time that it is remembered which log proved what; 0 where that is not known. */
  rememberedMs: number;
};

/** A move that may be meant. `isToKnown`: to whoever is known to receive it rightly. */
type Candidate = { move: Move; isToKnown: boolean };

/**
 * Holds a statement of a listed token against what moved. Whatever could be meant in an innocent way is no dispute.
 */
export function findIn(statement: Statement, reading: Found, rules: FindRules): Finding {
  const { payment, token, amount, recipients, intentHash } = statement;
  const disputed = (reason: DisputeReason, checked: Proof['checked'] = [], isHeld = false): Finding => ({
    outcome: 'disputed',
    reason,
    checked: ['chain', ...checked, 'final'],
    moves: own,
    isHeld,
  });
  // What somebody sends to himself reaches nobody.
  const own = reading.moves.filter((move) => move.token === token && move.from !== move.to);
  if (!reading.succeeded) return disputed('reverted');
  // Which moves were not stored is not known, so neither is whether this one is the only one.
  if (reading.isPartial === true) return unchecked('ambiguous');

  const fulfilled = payment === 'destination' && intentHash !== null ? reading.fulfilled : null;
  const isNamed = intentHash !== null && fulfilled?.includes(intentHash) === true;
  if (fulfilled !== null && fulfilled.length > 0 && !isNamed) return disputed('other-intent', ['success']);

  if (payment === 'refund') return refunded();
  // Any move is as much as nothing.
  if (amount !== null && BigInt(amount) === 0n) return unchecked('not-stated');
  const toKnown = recipients.length === 0 ? own : own.filter((move) => isTo(move, recipients));
  const least = amount === null ? 1n : BigInt(amount);
  const candidates = toKnown.filter((move) => BigInt(move.amount) >= least);
  if (candidates.length > 0) {
    return chosen(candidates.map((move) => ({ move, isToKnown: recipients.length > 0 })));
  }
  if (amount === null) return unchecked('not-stated');
  // What an owner gave away by another account may hide what he received.
  const mayHide = (move: Move): boolean =>
    move.isNetted === true &&
    (recipients.length === 0 || move.account === undefined || isTo(move, recipients));
  if (own.some(mayHide)) return unchecked('ambiguous');
  if (own.length === 0) return disputed('no-transfer', ['success']);
  if (toKnown.length === 0) {
    // Which accounts of an owner gained is not said where several did: the known one may be among them.
    if (own.some(({ from, account }) => from === null && account === undefined))
      return unchecked('ambiguous');
    return disputed('other-recipient', ['success', 'token']);
  }
  // Each is too small, but a payment may come in parts: which of them are its parts cannot be known.
  if (gained(toKnown, recipients) >= least) return unchecked('ambiguous');
  if (toKnown.some((move) => move.mayHaveFee === true)) return unchecked('token-not-checkable');
  return disputed('short', ['success', 'token', ...(recipients.length === 0 ? [] : ['recipient' as const])]);

  /**
   * Of a refund neither amount nor recipient is stated. It is known by going back to whoever paid, or by being exactly what
   * was sent; and more than was sent is none.
   */
  function refunded(): Finding {
    const { funding } = rules;
    const { sent } = statement;
    const within = own.filter(
      (move) => BigInt(move.amount) > 0n && (sent === null || BigInt(move.amount) <= BigInt(sent)),
    );
    const payer = funding?.known === 'proved' ? funding.payer : null;
    const back = within.filter(({ to }) => to === payer);
    if (back.length > 0)
      return chosen(
        back.map((move) => ({ move, isToKnown: true })),
        within,
      );
    const exact = within.filter((move) => move.amount === sent);
    if (exact.length > 0)
      return chosen(
        exact.map((move) => ({ move, isToKnown: false })),
        within,
      );
    // That another token moved, or to somebody else, contradicts nothing.
    if (within.length > 0 && funding?.known === 'open') return { outcome: 'waiting', because: 'funding' };
    return unchecked('not-stated');
  }

  /**
   * Which of several moves is meant. Those that prove other payments are not, unless less ties them to those. Where all of
   * them do, another of the `possible` moves may have been meant.
   */
  function chosen(all: readonly Candidate[], possible: readonly Move[] = []): Finding {
    const held = all.flatMap((candidate) => {
      const claim = rules.claimOn(candidate.move.index);
      return claim === null ? [] : [{ ...candidate, claim, holder: holder(candidate, claim) }];
    });
    const free = all.filter(({ move }) => !held.some((one) => one.move.index === move.index));
    if (free.length > 1) return unchecked('ambiguous', held.length > 0);
    const [only] = free;
    if (only !== undefined) return proved(only, []);
    // One funding may pay for several transfers.
    if (payment === 'source') return unchecked('ambiguous', true);
    if (held.some((one) => one.holder === 'open')) return { outcome: 'waiting', because: 'claimed' };
    const mine = held.filter((one) => one.holder === 'mine');
    const [taken] = mine;
    if (mine.length > 1 || held.some((one) => one.holder === 'unclear')) return unchecked('ambiguous', true);
    if (taken !== undefined) return proved(taken, [taken.claim.check]);
    if (possible.length > all.length) return unchecked('ambiguous', true);
    return disputed(
      'other-intent',
      ['success', 'token', ...(amount === null ? [] : ['amount' as const])],
      true,
    );
  }

  function holder({ move, isToKnown }: Candidate, claim: Claim): ReturnType<typeof holderOf> {
    const stated = amount ?? statement.sent;
    const weight = weightOf({ isNamed, isToKnown, isExact: move.amount === stated });
    return holderOf({ moved: move.amount, amount, weight, subject: statement.subject }, claim);
  }

  /** A move that is as stated proves the statement, where it is as young and the pinned contract confirms it. */
  function proved({ move, isToKnown }: Candidate, from: string[]): Finding {
    // An address that is wrong, or an upgraded contract, logs nothing either: that is no contradiction.
    if (fulfilled !== null && !isNamed) return unchecked('no-fulfilment');
    const blockMs = reading.block.timestamp * 1_000;
    const age = payment === 'source' ? 'fits' : ageOf(blockMs, rules);
    if (age === 'open') return { outcome: 'waiting', because: 'funding' };
    if (age === 'said-older') return unchecked('too-old');
    if (age === 'older')
      return disputed('other-intent', ['success', 'token', ...(amount === null ? [] : ['amount' as const])]);
    const isExclusive = age === 'fits' && rules.nowMs - blockMs < rules.rememberedMs;
    const checked: Proof['checked'] = [
      'chain',
      'success',
      'token',
      ...(amount === null ? [] : ['amount' as const]),
      ...(isToKnown ? ['recipient' as const] : []),
      ...(isNamed ? ['intent' as const] : []),
      ...(isExclusive ? ['exclusive' as const] : []),
      'final',
    ];
    return { outcome: 'verified', checked, moves: [move], from };
  }
}

function unchecked(because: UncheckedFinding, isHeld = false): Finding {
  return { outcome: 'unchecked', because, isHeld };
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
