import { type Burn, isPast, mintsOf } from './burn.ts';
import { ageOf, decideOwner, evidenceWeight, type Funding, type LogOwner } from './log-owner.ts';
import {
  type DisputeReason,
  evidenceOf,
  type Found,
  gained,
  isTo,
  type Move,
  NOT_TIED,
  type Proof,
  type TxState,
} from './proof.ts';
import { chainFamily, isNativeToken, type Statement, type TokenRules } from './statement.ts';

// | what the endpoints report                                                    | verdict                     |
// |------------------------------------------------------------------------------|-----------------------------|
// | nothing can follow: native or unlisted token, one not checkable, other chain | unchecked, no request       |
// | none found; two synced hosts have a final head 1 h past when it was stated   | unproven, despite failures  |
// | none found, an endpoint answers                                              | waiting: not-found          |
// | no endpoint answers                                                          | waiting: unreachable        |
// | found, but not as final                                                      | waiting: not-final          |
// | found as final, another final answer or a final absence contradicts it       | waiting: disagreement       |
// | two hosts agree, and the statement is true                                   | verified                    |
// | two hosts agree, and it is false                                             | disputed                    |
// | one host, the only one there is (or alone for an hour), and it is true       | verified, singleSource      |
// | one host, and it is false; or it is true and others may still answer         | waiting: one-endpoint       |
// | one host, and it is true by a log that proved another transfer               | waiting: one-endpoint       |
// | as for verified, but its log is another's that is checked again              | waiting: claimed            |
// | as for verified, but it is old, or a refund, and its funding is not checked  | waiting: funding            |
// | as for verified, but the matching log cannot be known                        | unchecked                   |
// | it delivers a local intent, and its burn is not read as final                | waiting: burn               |
// | it delivers a local intent, and no burn message ties it to that              | unproven: not-tied          |
//
// `findIn` decides whether a statement is true; log-owner.ts which payment owns a log, and how old a payment may be.

export const WAITING_REASONS = [
  'not-found',
  'not-final',
  'disagreement',
  'unreachable',
  'one-endpoint',
  'claimed',
  'funding',
  'burn',
] as const;

export type WaitingReason = (typeof WAITING_REASONS)[number];

export const UNCHECKED_REASONS = [
  'native-token',
  'token-unlisted',
  'token-not-checkable',
  'ambiguous',
  'chain-not-checkable',
  'not-stated',
  'no-fulfilment',
  'too-old',
] as const;

export type UncheckedReason = (typeof UNCHECKED_REASONS)[number];

/**
 * Result of all answers of the endpoints. `from`: checks that lose the log to this one; `isHeld`: it holds only while
 * other payments hold the matching logs.
 */
export type Verdict =
  | { outcome: 'waiting'; because: WaitingReason }
  | { outcome: 'verified'; proof: Proof; from: string[] }
  | { outcome: 'disputed'; proof: Proof; isHeld: boolean }
  | { outcome: 'unproven'; proof: Proof }
  | { outcome: 'unchecked'; because: UncheckedReason; isHeld: boolean };

/** Facts beside the observations. */
export type JudgeRules = TokenRules & {
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

/** After this time, a final chain without the payment makes it unproven, and one host alone is believed. */
const PATIENCE_MS = 3_600_000;

const MOST_MOVES = 20;

/** Judges a statement by each endpoint's last observation. Without any, it decides whether a check is of any use. */
export function judge(statement: Statement, txStates: readonly TxState[], rules: JudgeRules): Verdict {
  const useless = neverChecked(statement, rules);
  if (useless !== null) return { outcome: 'unchecked', because: useless, isHeld: false };
  const found = txStates.filter((txState) => txState.outcome === 'found');
  const final = found.filter(({ isFinal }) => isFinal);
  const [first] = final;
  if (first === undefined) return notFinal(statement, { txStates, isFound: found.length > 0 }, rules);
  if (contradicts(first, { txStates, final, token: statement.token })) {
    return { outcome: 'waiting', because: 'disagreement' };
  }
  const hosts = hostsOf(final);
  const finding = findIn(statement, first, rules);
  if (finding.outcome === 'waiting') return finding;
  const { burn } = rules;
  if (hosts >= 2) return concluded(statement, { finding, final, burn });
  const isAlone = hostsOf(txStates) === 1 || rules.nowMs - rules.statedAtMs >= PATIENCE_MS;
  if (isAgainst(finding) || !isAlone) return { outcome: 'waiting', because: 'one-endpoint' };
  return concluded(statement, { finding, final, burn });
}

function neverChecked(
  { chainId, token }: Statement,
  { isListed, isCheckable }: JudgeRules,
): UncheckedReason | null {
  if (chainFamily(chainId) === null) return 'chain-not-checkable';
  if (token === null) return 'not-stated';
  if (isNativeToken(token)) return 'native-token';
  if (!isListed(token)) return 'token-unlisted';
  return isCheckable(token) ? null : 'token-not-checkable';
}

function notFinal(
  statement: Statement,
  { txStates, isFound }: { txStates: readonly TxState[]; isFound: boolean },
  { statedAtMs }: JudgeRules,
): Verdict {
  if (isFound) return { outcome: 'waiting', because: 'not-final' };
  const absent = txStates.filter((txState) => txState.outcome === 'absent');
  // By the chain's own clock: only a much later final block proves that the chain went on without it.
  const without = absent.filter(
    ({ isSynced, head }) => isSynced && head !== null && head.timestamp * 1_000 >= statedAtMs + PATIENCE_MS,
  );
  if (hostsOf(without) >= 2) {
    return { outcome: 'unproven', proof: proofOf(statement, { checked: ['chain'], endpoints: without }) };
  }
  return { outcome: 'waiting', because: absent.length > 0 ? 'not-found' : 'unreachable' };
}

/** True when any endpoint reports something else that is as final. */
function contradicts(
  first: Found,
  { txStates, final, token }: { txStates: readonly TxState[]; final: Found[]; token: string | null },
): boolean {
  const evidence = evidenceOf(first, token);
  if (final.some((other) => evidenceOf(other, token) !== evidence)) return true;
  return txStates.some((txState) => isPast(txState, first));
}

function concluded(
  statement: Statement,
  {
    finding,
    final,
    burn,
  }: { finding: Exclude<Finding, { outcome: 'waiting' }>; final: readonly Found[]; burn: Burn | null },
): Verdict {
  if (finding.outcome === 'unchecked') return finding;
  const { outcome, moves } = finding;
  const sent = burn?.state === 'sent' && outcome !== 'unproven' ? burn : null;
  const isSingle = hostsOf(final) < 2 || sent?.isSingle === true;
  const proof: Proof = {
    ...proofOf(statement, { checked: finding.checked, endpoints: final }),
    ...(finding.outcome === 'disputed' ? { reason: finding.reason } : {}),
    ...(outcome === 'unproven' ? { reason: NOT_TIED } : {}),
    ...(sent === null
      ? {}
      : { burn: { chainId: sent.chainId, txHash: sent.txHash, message: sent.message.key } }),
    ...(isSingle ? { singleSource: true as const } : {}),
    ...(final[0] === undefined ? {} : { block: final[0].block }),
    moved: [...moves].sort((a, b) => a.index - b.index).slice(0, MOST_MOVES),
  };
  switch (finding.outcome) {
    case 'verified':
      return { outcome: 'verified', proof, from: finding.from };
    case 'disputed':
      return { outcome: 'disputed', proof, isHeld: finding.isHeld };
    case 'unproven':
      return { outcome: 'unproven', proof };
    default:
      return finding satisfies never;
  }
}

function proofOf(
  { payment, chainId, txHash, token, amount }: Statement,
  { checked, endpoints }: { checked: Proof['checked']; endpoints: readonly TxState[] },
): Proof {
  return {
    payment,
    chainId,
    txHash,
    ...(token === null ? {} : { token }),
    ...(amount === null ? {} : { stated: amount }),
    checked,
    endpoints: [...new Set(endpoints.map(({ endpoint }) => endpoint))].sort(),
  };
}

function hostsOf(txStates: readonly TxState[]): number {
  return new Set(txStates.map(({ host }) => host)).size;
}

/**
 * Finding of one final observation on a statement, if the observation is right. `from`: checks that lose the log to this
 * one; `isHeld`: it holds only while other payments hold the matching logs.
 */
type Finding =
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

type UncheckedFinding = Exclude<UncheckedReason, 'native-token' | 'token-unlisted' | 'chain-not-checkable'>;

/** A possible move. `isRightful`: its recipient is a rightful one. */
type Candidate = { move: Move; isRightful: boolean };

/** Compares a statement of a listed token with the moves. An ambiguous case is never a dispute. */
function findIn(statement: Statement, txState: Found, rules: JudgeRules): Finding {
  const { payment, token, amount, recipients, intentHash } = statement;
  const { burn } = rules;
  const ofAmount: Proof['checked'] = amount === null ? [] : ['amount'];
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
    if (finding !== null && !(isAgainst(finding) && burn.state === 'sent' && burn.isSingle)) return finding;
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
    return disputed('other-intent', ['success', 'token', ...ofAmount], true);
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
    if (age === 'older') return disputed('other-intent', ['success', 'token', ...ofAmount]);
    const isExclusive = age === 'fits' && rules.nowMs - blockMs < rules.rememberedMs;
    const checked: Proof['checked'] = [
      'chain',
      'success',
      'token',
      ...ofAmount,
      ...(isRightful ? ['recipient' as const] : []),
      ...(isNamed ? ['intent' as const] : []),
      ...(isExclusive ? ['exclusive' as const] : []),
      'final',
    ];
    return { outcome: 'verified', checked, moves: [move], from };
  }
}

/** True for a finding against the statement, or against the payment that has the log. */
function isAgainst(finding: Finding): boolean {
  return finding.outcome === 'disputed' || (finding.outcome === 'verified' && finding.from.length > 0);
}

function unchecked(because: UncheckedFinding, isHeld = false): Finding {
  return { outcome: 'unchecked', because, isHeld };
}
