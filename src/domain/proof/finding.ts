import { type Burn, mintsOf } from './burn.ts';
import { ageOf, decideOwner, evidenceWeight, type Funding, type LogOwner } from './log-owner.ts';
import type { DisputeReason, Found, Move, Proof } from './proof.ts';
import type { Statement } from './statement.ts';

/**
 * Finding of one final observation on a statement, if the observation is right. `from`: checks that lose the log to this
 * one; `isHeld`: it holds only while other payments hold the matching logs.
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
  | { outcome: 'unproven'; checked: Proof['checked']; moves: Move[] }
  | { outcome: 'unchecked'; because: UncheckedFinding; isHeld: boolean }
  | { outcome: 'waiting'; because: 'funding' | 'claimed' | 'burn' };

type UncheckedFinding = 'ambiguous' | 'not-stated' | 'token-not-checkable' | 'no-fulfilment' | 'too-old';

/** Facts beside the observation. */
export type FindRules = {
  /** Returns the other payment that a move has proved, by `Move.index`; null for none. */
  ownerOf(index: number): LogOwner | null;
  funding: Funding;
  /** Of the delivery of a local intent: its burn. Null for any other payment. */
  burn: Burn | null;
  statedAtMs: number;
  nowMs: number;
  /** Time for which the owner of a log is stored, ms; 0 when unknown. */
  rememberedMs: number;
};

/** A possible move. `isRightful`: its recipient is a rightful one. */
type Candidate = { move: Move; isRightful: boolean };

/** Compares a statement of a listed token with the moves. An ambiguous case is never a dispute. */
export function findIn(statement: Statement, txState: Found, rules: FindRules): Finding {
  const { payment, token, amount, recipients, intentHash } = statement;
  const { burn } = rules;
  const disputed = (reason: DisputeReason, checked: Proof['checked'] = [], isHeld = false): Finding => ({
    outcome: 'disputed',
    reason,
    checked: ['chain', ...checked, 'final'],
    moves: own,
    isHeld,
  });
  // A transfer to oneself reaches nobody.
  const own = txState.moves.filter((move) => move.token === token && move.from !== move.to);
  const mints =
    burn?.state === 'sent' ? mintsOf(txState, burn.message).filter((move) => move.token === token) : [];
  const fulfilled =
    payment === 'destination' && burn === null && intentHash !== null ? txState.fulfilled : null;
  const isNamed = mints.length > 0 || (intentHash !== null && fulfilled?.includes(intentHash) === true);
  if (burn !== null) return minted(burn);
  if (!txState.succeeded) return disputed('reverted');
  // With a partial list, this move may not be the only match.
  if (txState.isPartial === true) return unchecked('ambiguous');

  if (fulfilled !== null && fulfilled.length > 0 && !isNamed) return disputed('other-intent', ['success']);

  if (payment === 'refund') return refunded();
  // Every move satisfies an amount of 0.
  if (amount !== null && BigInt(amount) === 0n) return unchecked('not-stated');
  const rightful = recipients.length === 0 ? own : own.filter((move) => isTo(move, recipients));
  const least = amount === null ? 1n : BigInt(amount);
  const candidates = rightful.filter((move) => BigInt(move.amount) >= least);
  if (candidates.length > 0) {
    return chosen(candidates.map((move) => ({ move, isRightful: recipients.length > 0 })));
  }
  if (amount === null) return unchecked('not-stated');
  if (own.some(mayHide)) return unchecked('ambiguous');
  if (own.length === 0) return disputed('no-transfer', ['success']);
  if (rightful.length === 0) return toNoRecipient();
  // Each is too small, but a payment may come in parts, which cannot be identified.
  if (gained(rightful, recipients) >= least) return unchecked('ambiguous');
  if (rightful.some((move) => move.mayHaveFee === true)) return unchecked('token-not-checkable');
  return disputed('short', ['success', 'token', ...(recipients.length === 0 ? [] : ['recipient' as const])]);

  /** The delivery of a local intent is what its burn minted. Without that tie, and against it by one host, it is unproven. */
  function minted(burn: Burn): Finding {
    if (burn.state === 'open') return { outcome: 'waiting', because: 'burn' };
    const [mint] = mints;
    const finding = mint === undefined || txState.isPartial === true ? null : judgedMint(mint);
    const isAgainst =
      finding?.outcome === 'disputed' || (finding?.outcome === 'verified' && finding.from.length > 0);
    if (finding !== null && !(isAgainst && burn.state === 'sent' && burn.isSingle)) return finding;
    const checked: Proof['checked'] = ['chain', ...(txState.succeeded ? ['success' as const] : []), 'final'];
    return { outcome: 'unproven', checked, moves: own };
  }

  function judgedMint(mint: Move): Finding {
    const isRightful = recipients.length > 0 && isTo(mint, recipients);
    if (recipients.length > 0 && !isRightful)
      return disputed('other-recipient', ['success', 'token', 'intent']);
    if (amount !== null && BigInt(mint.amount) < BigInt(amount)) {
      return disputed('short', ['success', 'token', ...(isRightful ? ['recipient' as const] : []), 'intent']);
    }
    return chosen(mints.map((move) => ({ move, isRightful })));
  }

  /** Losses of an owner's other account may hide a receipt. */
  function mayHide(move: Move): boolean {
    const isPossible = recipients.length === 0 || move.account === undefined || isTo(move, recipients);
    return move.isNetted === true && isPossible;
  }

  function toNoRecipient(): Finding {
    // When several accounts of an owner gained, none is named: the known one may be among them.
    const isUnnamed = own.some(({ from, account }) => from === null && account === undefined);
    return isUnnamed ? unchecked('ambiguous') : disputed('other-recipient', ['success', 'token']);
  }

  /**
   * A refund states no amount, and is never more than what was sent. It goes to the stated recipient. Without one it goes to
   * the payer, or has exactly the sent amount.
   */
  function refunded(): Finding {
    const { funding } = rules;
    const { sent } = statement;
    const within = own.filter(
      (move) => BigInt(move.amount) > 0n && (sent === null || BigInt(move.amount) <= BigInt(sent)),
    );
    if (recipients.length > 0) {
      const toStated = within.filter((move) => isTo(move, recipients));
      const candidates = toStated.map((move) => ({ move, isRightful: true }));
      if (candidates.length > 0) return chosen(candidates, within);
      if (own.some(mayHide)) return unchecked('ambiguous');
      const isMore = own.some((move) => isTo(move, recipients));
      return isMore || within.length === 0 ? unchecked('not-stated') : toNoRecipient();
    }
    const payer = funding?.state === 'proved' ? funding.payer : null;
    const back = within.filter(({ to }) => to === payer);
    if (back.length > 0)
      return chosen(
        back.map((move) => ({ move, isRightful: true })),
        within,
      );
    const exact = within.filter((move) => move.amount === sent);
    if (exact.length > 0)
      return chosen(
        exact.map((move) => ({ move, isRightful: false })),
        within,
      );
    // A move of another token, or to another recipient, is no contradiction.
    if (within.length > 0 && funding?.state === 'open') return { outcome: 'waiting', because: 'funding' };
    return unchecked('not-stated');
  }

  /**
   * Chooses among several moves. Moves that prove other payments are excluded, unless they are tied less to those.
   * When all prove others, another of the `possible` moves may be the right one.
   */
  function chosen(all: readonly Candidate[], possible: readonly Move[] = []): Finding {
    const held = all.flatMap((candidate) => {
      const owner = rules.ownerOf(candidate.move.index);
      return owner === null ? [] : [{ ...candidate, owner, decision: decisionOn(candidate, owner) }];
    });
    const free = all.filter(({ move }) => !held.some((one) => one.move.index === move.index));
    if (free.length > 1) return unchecked('ambiguous', held.length > 0);
    const [only] = free;
    if (only !== undefined) return proved(only, []);
    if (payment === 'source') return unchecked('ambiguous', true);
    if (held.some((one) => one.decision === 'open')) return { outcome: 'waiting', because: 'claimed' };
    const won = held.filter((one) => one.decision === 'claimant');
    const [first] = won;
    if (won.length > 1 || held.some((one) => one.decision === 'unclear')) return unchecked('ambiguous', true);
    if (first !== undefined) return proved(first, [first.owner.check]);
    if (possible.length > all.length) return unchecked('ambiguous', true);
    return disputed(
      'other-intent',
      ['success', 'token', ...(amount === null ? [] : ['amount' as const])],
      true,
    );
  }

  function decisionOn({ move, isRightful }: Candidate, owner: LogOwner): ReturnType<typeof decideOwner> {
    const stated = amount ?? statement.sent;
    const weight = evidenceWeight({ isNamed, isRightful, isExact: move.amount === stated });
    return decideOwner({ moved: move.amount, amount, weight, subject: statement.subject }, owner);
  }

  /** A matching move proves the statement, if its age fits and the pinned contract confirms it. */
  function proved({ move, isRightful }: Candidate, from: string[]): Finding {
    // A wrong address or an upgraded contract logs nothing either: that is no contradiction.
    if (fulfilled !== null && !isNamed) return unchecked('no-fulfilment');
    const blockMs = txState.block.timestamp * 1_000;
    const age = payment === 'source' ? 'fits' : ageOf(blockMs, rules);
    if (age === 'open') return { outcome: 'waiting', because: 'funding' };
    if (age === 'reported-older') return unchecked('too-old');
    if (age === 'older')
      return disputed('other-intent', ['success', 'token', ...(amount === null ? [] : ['amount' as const])]);
    const isExclusive = age === 'fits' && rules.nowMs - blockMs < rules.rememberedMs;
    const checked: Proof['checked'] = [
      'chain',
      'success',
      'token',
      ...(amount === null ? [] : ['amount' as const]),
      ...(isRightful ? ['recipient' as const] : []),
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

/** Amount that possible recipients got: all sent to known ones, else everybody's net gains, passed-through amounts once. */
function gained(moves: readonly Move[], recipients: readonly string[]): bigint {
  if (recipients.length > 0) return moves.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
  const net = new Map<string, bigint>();
  for (const { from, to, amount } of moves) {
    net.set(to, (net.get(to) ?? 0n) + BigInt(amount));
    if (from !== null) net.set(from, (net.get(from) ?? 0n) - BigInt(amount));
  }
  return [...net.values()].reduce((sum, value) => (value > 0n ? sum + value : sum), 0n);
}
