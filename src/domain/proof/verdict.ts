import type { SubjectId } from '../subjects/subject.ts';
import { chainFamily, isNativeToken } from './families.ts';
import { type Finding, findIn } from './finding.ts';
import type { Proof } from './proof.ts';
import type { Found, Reading } from './reading.ts';
import type { Statement } from './statement.ts';

// | what the endpoints say                                                       | verdict                     |
// |------------------------------------------------------------------------------|-----------------------------|
// | nothing can follow: native or unlisted token, one not checkable, other chain | unchecked, without asking   |
// | an answer each, none found; two hosts have a final head 1 h past what stated | unproven                    |
// | none found, an endpoint answers                                              | waiting: not-found          |
// | no endpoint answers                                                          | waiting: unreachable        |
// | found, by nobody as final                                                    | waiting: not-final          |
// | found as final, another final answer or a final absence contradicts it       | waiting: disagreement       |
// | two hosts agree, and it is so                                                | verified                    |
// | two hosts agree, and it is not so                                            | disputed                    |
// | one host, the only one there is (or alone for an hour), and it is so         | verified, singleSource      |
// | one host, and it is not so; or it is so and others may still answer          | waiting: one-endpoint       |
// | as for verified, but which log is meant cannot be told                       | unchecked                   |

/** Why nothing can be said yet. */
export type WaitingReason = 'not-found' | 'not-final' | 'disagreement' | 'unreachable' | 'one-endpoint';

/** Why nothing will be said at all. */
export type UncheckedReason =
  | 'native-token'
  | 'token-unlisted'
  | 'token-not-checkable'
  | 'ambiguous'
  | 'chain-not-checkable'
  | 'not-stated';

/** What follows from all that the endpoints said. */
export type Verdict =
  | { outcome: 'waiting'; because: WaitingReason }
  | { outcome: 'verified'; proof: Proof }
  | { outcome: 'disputed'; proof: Proof }
  | { outcome: 'unproven'; proof: Proof }
  | { outcome: 'unchecked'; because: UncheckedReason };

/** What is known beside the readings. */
export type JudgeRules = {
  /**
   * Which other subject a move of this transaction already proved, by `Move.index`; null for none. Only of the same kind
   * of payment: what is delivered to a deposit address funds the next transfer.
   */
  taken(index: number): SubjectId | null;
  /** Whether a token is one of the user's or of the packaged list. */
  isListed(token: string): boolean;
  /** Whether a token moves as its logs say: it neither rebases nor takes fees. */
  isCheckable(token: string): boolean;
  /** When the upstream stated it: the later of its `updatedAt` and the moment when that was seen. */
  statedAtMs: number;
  nowMs: number;
};

/** So long after a statement a final chain without it is proof of nothing, and one host alone is believed. */
const PATIENCE_MS = 3_600_000;

/** A proof lists no more moves. */
const MOST_MOVES = 20;

/**
 * Judges a statement by the last reading of each endpoint, in any order; without readings it says whether asking is of
 * any use. The table above is the whole of it.
 */
export function judge(statement: Statement, readings: readonly Reading[], rules: JudgeRules): Verdict {
  const useless = neverChecked(statement, rules);
  if (useless !== null) return { outcome: 'unchecked', because: useless };
  const found = readings.filter((reading) => reading.outcome === 'found');
  const final = found.filter(({ isFinal }) => isFinal);
  const [first] = final;
  if (first === undefined) return notFinal(statement, { readings, isFound: found.length > 0 }, rules);
  if (contradicts(first, { readings, final, token: statement.token })) {
    return { outcome: 'waiting', because: 'disagreement' };
  }
  const hosts = hostsOf(final);
  const finding = findIn(statement, first, rules);
  if (hosts >= 2) return concluded(statement, { finding, final });
  const isAlone = hostsOf(readings) === 1 || rules.nowMs - rules.statedAtMs >= PATIENCE_MS;
  if (finding.outcome === 'disputed' || !isAlone) return { outcome: 'waiting', because: 'one-endpoint' };
  return concluded(statement, { finding, final });
}

/** What no answer could change. */
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
  { readings, isFound }: { readings: readonly Reading[]; isFound: boolean },
  { statedAtMs }: JudgeRules,
): Verdict {
  if (isFound) return { outcome: 'waiting', because: 'not-final' };
  const absent = readings.filter((reading) => reading.outcome === 'absent');
  // By the chain's own clock: only a final block that is later by so much says that the chain went on without it.
  const without = absent.filter(
    ({ isSynced, head }) => isSynced && head !== null && head.timestamp * 1_000 >= statedAtMs + PATIENCE_MS,
  );
  if (hostsOf(without) >= 2) {
    return { outcome: 'unproven', proof: proofOf(statement, { checked: ['chain'], endpoints: without }) };
  }
  return { outcome: 'waiting', because: absent.length > 0 ? 'not-found' : 'unreachable' };
}

/** Whether any endpoint says something else that is as final. */
function contradicts(
  first: Found,
  { readings, final, token }: { readings: readonly Reading[]; final: Found[]; token: string | null },
): boolean {
  const said = evidenceOf(first, token);
  if (final.some((other) => evidenceOf(other, token) !== said)) return true;
  return readings.some(
    (reading) =>
      reading.outcome === 'absent' &&
      reading.head !== null &&
      BigInt(reading.head.number) >= BigInt(first.block.number),
  );
}

/** All that a verdict can follow from, as text: the block, and how much of the token moved from whom to whom. */
function evidenceOf({ block, succeeded, moves, fulfilled, isPartial }: Found, token: string | null): string {
  const own = moves.filter((move) => move.token === token).sort((a, b) => a.index - b.index);
  const values = own.map(({ from, to, amount, index }) => [index, from, to, amount]);
  const hashes = fulfilled === null ? null : [...new Set(fulfilled)].sort();
  const { number, hash, timestamp } = block;
  return JSON.stringify([number, hash, timestamp, succeeded, values, hashes, isPartial ?? false]);
}

function concluded(
  statement: Statement,
  { finding, final }: { finding: Finding; final: readonly Found[] },
): Verdict {
  if (finding.outcome === 'unchecked') return finding;
  const { outcome, moves } = finding;
  const isSingle = hostsOf(final) < 2;
  const proof = {
    ...proofOf(statement, { checked: finding.checked, endpoints: final }),
    ...(outcome === 'disputed' ? { reason: finding.reason } : {}),
    ...(isSingle ? { singleSource: true as const } : {}),
    ...(final[0] === undefined ? {} : { block: final[0].block }),
    moved: [...moves].sort((a, b) => a.index - b.index).slice(0, MOST_MOVES),
  };
  return { outcome, proof };
}

function proofOf(
  { payment, chainId, txHash, token, amount }: Statement,
  { checked, endpoints }: { checked: Proof['checked']; endpoints: readonly Reading[] },
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

function hostsOf(readings: readonly Reading[]): number {
  return new Set(readings.map(({ host }) => host)).size;
}
