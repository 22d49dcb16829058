import { fundedAt } from '../../domain/changes/next-snapshot.ts';
import type { Funding } from '../../domain/proof/funding.ts';
import type { CheckStore, Stated } from '../../store/checks.ts';
import type { Known } from '../../store/subjects.ts';

/** What is known now of how the transfer of a payment was funded: by the check of that, else by the upstream's word. */
export async function fundingOf(
  { subject, payment, chainId }: Stated,
  { snapshot }: Known,
  checks: CheckStore,
): Promise<Funding> {
  if (payment === 'source') return null;
  const source = (await checks.of(subject)).find(({ statement }) => statement.payment === 'source');
  // What is stated no more is not waited for.
  if (source?.state === 'waiting' && source.because !== 'not-stated') return { known: 'open' };
  const proof = source?.state === 'verified' ? source.proof : null;
  if (proof?.block !== undefined) {
    const atMs = proof.block.timestamp * 1_000;
    // One host alone is not enough to dispute another payment by.
    if (proof.singleSource === true) return { known: 'said', atMs };
    const payer = proof.chainId === chainId ? (proof.moved?.[0]?.from ?? null) : null;
    return { known: 'proved', atMs, payer };
  }
  const saidAt = snapshot === null ? null : fundedAt(subject, snapshot);
  return saidAt === null ? null : { known: 'said', atMs: saidAt * 1_000 };
}
