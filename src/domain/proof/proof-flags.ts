import type { Payment } from './payment.ts';

/** How the check of a payment can come to be told. */
export const PROOF_OUTCOMES = ['verified', 'disputed', 'unproven'] as const;

export type ProofOutcome = (typeof PROOF_OUTCOMES)[number];

const FLAG = /^proof:([a-z]+):([a-z]+)$/;

/** Whether a flag of a snapshot says what became of a check. It stays for the life of the subject. */
export function isProofFlag(flag: string): boolean {
  return FLAG.test(flag);
}

/** The flags of a snapshot once the check of a payment has ended so. */
export function withProofFlag(flags: readonly string[], payment: Payment, outcome: ProofOutcome): string[] {
  const rest = flags.filter((flag) => FLAG.exec(flag)?.[1] !== payment);
  return [...rest, `proof:${payment}:${outcome}`];
}

/** What the flags of a snapshot say of its payments taken together: the worst that was told; null where nothing was. */
export function proofOf(flags: readonly string[]): ProofOutcome | null {
  const told = flags.flatMap((flag) => FLAG.exec(flag)?.[2] ?? []);
  const worst = (['disputed', 'unproven', 'verified'] as const).find((outcome) => told.includes(outcome));
  return worst ?? null;
}
