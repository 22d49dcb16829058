import type { JsonObject } from '../json.ts';
import { keccak256 } from '../keccak256.ts';
import type { SubjectId } from '../subjects/subject.ts';
import { type Stated, statementPrint, statementsOf } from './statement.ts';

export const PROOF_OUTCOMES = ['verified', 'disputed', 'unproven'] as const;

export type ProofOutcome = (typeof PROOF_OUTCOMES)[number];

/**
 * `proof:<payment>:<outcome>:<digest of the statement>`: the reported outcome holds for this statement only. While it
 * is checked again, the outcome is `was` and the reported one.
 */
const FLAG = /^proof:([a-z]+):([a-z]+):([0-9a-f]{16})$/;

/** Replaces the payment's flag by the outcome of its check. */
export function withProofFlag(flags: readonly string[], statement: Stated, outcome: ProofOutcome): string[] {
  const rest = flags.filter((flag) => FLAG.exec(flag)?.[1] !== statement.payment);
  return [...rest, proofFlag(statement, outcome)];
}

function proofFlag(statement: Stated, outcome: ProofOutcome): string {
  return `proof:${statement.payment}:${outcome}:${digestOf(statement)}`;
}

/** Withdraws the outcome of a statement while it is checked again; the flag remembers it. */
export function withProofWithdrawn(flags: readonly string[], statement: Stated): string[] {
  const withdrawn = new Map(
    PROOF_OUTCOMES.map((outcome) => [proofFlag(statement, outcome), withdrawnFlag(statement, outcome)]),
  );
  return flags.map((flag) => withdrawn.get(flag) ?? flag);
}

/** True when this outcome was the last one reported for a statement. */
export function isProofReported(flags: readonly string[], statement: Stated, outcome: ProofOutcome): boolean {
  return flags.includes(proofFlag(statement, outcome)) || flags.includes(withdrawnFlag(statement, outcome));
}

function withdrawnFlag(statement: Stated, outcome: ProofOutcome): string {
  return `proof:${statement.payment}:was${outcome}:${digestOf(statement)}`;
}

/** Removes flags of payments for which the record now states something else. */
export function withoutRestated(
  flags: readonly string[],
  stated: { subject: SubjectId; record: JsonObject },
): string[] {
  const statements = flags.some((flag) => FLAG.test(flag)) ? statementsOf(stated) : [];
  const digests = new Map<string, string>(statements.map((one) => [one.payment, digestOf(one)]));
  return flags.filter((flag) => {
    const [, payment = '', , digest] = FLAG.exec(flag) ?? [];
    return (digests.get(payment) ?? digest) === digest;
  });
}

/** True for the flag of a check's outcome. */
export function isProofFlag(flag: string): boolean {
  return FLAG.test(flag);
}

/** The worst reported outcome of the payments that a snapshot's record states; null without one. */
export function proofOf({
  subject,
  record,
  flags,
}: {
  subject: SubjectId;
  record: JsonObject;
  flags: readonly string[];
}): ProofOutcome | null {
  if (!flags.some((flag) => FLAG.test(flag))) return null;
  const statements = statementsOf({ subject, record });
  const worst = (['disputed', 'unproven', 'verified'] as const).find((outcome) =>
    statements.some((statement) => flags.includes(proofFlag(statement, outcome))),
  );
  return worst ?? null;
}

function digestOf(statement: Stated): string {
  return keccak256(statementPrint(statement)).slice(0, 16);
}
