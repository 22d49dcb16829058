import { gaslessId, gatewayJobId, intentId, quoteId, type SubjectId, vaultId, walletId } from './subject.ts';

/** The subjects that a subscription names, as a user writes them. */
export type NamedSubjects = {
  wallets: readonly string[];
  intents: readonly string[];
  quotes: readonly string[];
  gaslessJobs: readonly { id: string; endpoint: 'status' | 'gateway' }[];
  vaults: readonly { address: string; chainId: number }[];
};

/** The ids of the subjects that a subscription names, each once. */
export function subjectsOf(named: NamedSubjects): SubjectId[] {
  const subjects = [
    ...named.wallets.map(walletId),
    ...named.intents.map(intentId),
    ...named.quotes.map(quoteId),
    ...named.gaslessJobs.map((job) =>
      job.endpoint === 'gateway' ? gatewayJobId(job.id) : gaslessId(job.id),
    ),
    ...named.vaults.map(vaultId),
  ];
  return [...new Set(subjects)];
}
