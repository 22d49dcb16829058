import { keccak256, stringToHex } from 'viem/utils';
import type { JsonObject } from '../json.ts';
import type { SubjectId } from '../subjects/subject.ts';
import { type Stated, statementPrint, statementsOf } from './statement.ts';

/** How the check of a payment can come to be reported. */
export const PROOF_OUTCOMES = ['verified', 'disputed', 'unproven'] as const;

export type ProofOutcome = (typeof PROOF_OUTCOMES)[number];

/**
 * `proof:<payment>:<outcome>:<digest of the statement>`: what was reported is said of this statement, and of no other. The outcome
 * is `was` and what was reported while that is requested anew.
 */
const FLAG = /^proof:([a-z]+):([a-z]+):([0-9a-f]{16})$/;

/** The flags of a snapshot once the check of a statement has ended so. */
export function withProofFlag(flags: readonly string[], statement: Stated, outcome: ProofOutcome): string[] {
  const rest = flags.filter((flag) => FLAG.exec(flag)?.[1] !== statement.payment);
  return [...rest, proofFlag(statement, outcome)];
}

/** The flag that says what became of the check of a statement. */
function proofFlag(statement: Stated, outcome: ProofOutcome): string {
  return `proof:${statement.payment}:${outcome}:${digestOf(statement)}`;
}

/** The flags while a check is requested anew: no word of it stands, and which was reported is remembered. */
export function withProofWithdrawn(flags: readonly string[], statement: Stated): string[] {
  const withdrawn = new Map(
    PROOF_OUTCOMES.map((outcome) => [proofFlag(statement, outcome), withdrawnFlag(statement, outcome)]),
  );
  return flags.map((flag) => withdrawn.get(flag) ?? flag);
}

/** True when it was reported that the check of a statement ended so, and nothing else since. */
export function isProofReported(flags: readonly string[], statement: Stated, outcome: ProofOutcome): boolean {
  return flags.includes(proofFlag(statement, outcome)) || flags.includes(withdrawnFlag(statement, outcome));
}

function withdrawnFlag(statement: Stated, outcome: ProofOutcome): string {
  return `proof:${statement.payment}:was${outcome}:${digestOf(statement)}`;
}

/** The flags without the words about payments of which the record states something else now. */
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

/** True when a flag says what became of a check. */
export function isProofFlag(flag: string): boolean {
  return FLAG.test(flag);
}

/**
 * What the flags of a snapshot say of the payments that its record states, taken together: the worst that was reported; null
 * where nothing was.
 */
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
  return keccak256(stringToHex(statementPrint(statement))).slice(2, 18);
}
