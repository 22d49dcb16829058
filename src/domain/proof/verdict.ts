import { type AddedToken, COMMON_NAMES, extendDirectory, tokenKey } from '../transfers/chains.ts';
import { type Burn, isPast } from './burn.ts';
import { type Finding, type FindRules, findIn } from './finding.ts';
import { type Found, NOT_TIED, type Proof, type TxState } from './proof.ts';
import { chainFamily, isNativeToken, type Statement } from './statement.ts';

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
// finding.ts decides whether a statement is true; log-owner.ts which payment owns a log, and how old a payment may be.

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

/** Rules about the tokens of one chain. */
export type TokenRules = {
  /** True when a token is in the user's list or in the packaged one. */
  isListed(token: string): boolean;
  /** True when a token moves as its logs state: it neither rebases nor takes fees. */
  isCheckable(token: string): boolean;
};

/** Facts beside the observations. */
export type JudgeRules = FindRules & TokenRules;

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
  const isAgainst =
    finding.outcome === 'disputed' || (finding.outcome === 'verified' && finding.from.length > 0);
  if (isAgainst || !isAlone) return { outcome: 'waiting', because: 'one-endpoint' };
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

/** All evidence of a verdict as text: the block, the token's moves, and the signs of hidden ones. */
function evidenceOf(found: Found, token: string | null): string {
  const { block, succeeded, moves, fulfilled, burns, isPartial } = found;
  const own = moves.filter((move) => move.token === token).sort((a, b) => a.index - b.index);
  const values = own.map(({ from, to, amount, index, account, mayHaveFee, isNetted }) => [
    index,
    from,
    to,
    amount,
    account ?? null,
    mayHaveFee ?? false,
    isNetted ?? false,
  ]);
  const hashes = fulfilled === null ? null : [...new Set(fulfilled)].sort();
  const { number, hash, timestamp } = block;
  return JSON.stringify([
    number,
    hash,
    timestamp,
    succeeded,
    values,
    hashes,
    burns?.received ?? [],
    isPartial ?? false,
  ]);
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
 * Well-known tokens whose logs do not show the received amount: balances change by themselves (stETH, AMPL, OUSD,
 * USDM), or the contract may take a fee (PAXG). They are listed only if the user lists them.
 */
const NOT_CHECKABLE: readonly (readonly [chainId: string, address: string])[] = [
  ['1', '0xae7ab96520DE3A18E5e111B5EaAb095312D7fE84'],
  ['1', '0xD46bA6D942050d489DBd938a2C909A5d5039A161'],
  ['1', '0x2A8e1E676Ec238d8A992307B495b45B3fEAa5e86'],
  ['1', '0x59D9356E565Ab3A36dD77763Fc0d87fEaf85508C'],
  ['10', '0x59D9356E565Ab3A36dD77763Fc0d87fEaf85508C'],
  ['8453', '0x59D9356E565Ab3A36dD77763Fc0d87fEaf85508C'],
  ['42161', '0x59D9356E565Ab3A36dD77763Fc0d87fEaf85508C'],
  ['1', '0x45804880De22913dAFE09f4980848ECE6EcbAf78'],
];

/** The checked tokens of a chain: of the config and the packaged list, not of the upstream, whose statements are checked. */
export function tokenRules(config: {
  tokens: readonly AddedToken[];
  uncheckedTokens: readonly { chainId: string; address: string }[];
}): (chainId: string) => TokenRules {
  const listed = extendDirectory({ chains: [], tokens: config.tokens }, COMMON_NAMES);
  const unchecked = new Set([
    ...NOT_CHECKABLE.map(([chainId, address]) => tokenKey(chainId, address)),
    ...config.uncheckedTokens.map(({ chainId, address }) => tokenKey(chainId, address)),
  ]);
  return (chainId) => ({
    isListed: (token) => listed.token(chainId, token) !== null,
    isCheckable: (token) => !unchecked.has(tokenKey(chainId, token)),
  });
}
