import type { z } from 'zod';
import type { Claim } from '../../domain/proof/claim.ts';
import type { Funding } from '../../domain/proof/funding.ts';
import type { Statement } from '../../domain/proof/statement.ts';
import type { JudgeRules } from '../../domain/proof/verdict.ts';
import { fundingOf } from '../../queues/checks/funding-of.ts';
import { NOTHING_KNOWN } from '../../store/subjects.ts';
import { type Deliveries, withDeliveries } from '../deliveries-of.ts';
import type { OTHER_TRANSFERS } from './verified-json.ts';

/** What the daemon knows beside a statement: which logs proved other transfers, and how its own was funded. */
export type KnownBeside = Pick<JudgeRules, 'claimOn' | 'funding' | 'rememberedMs'>;

/** Of a statement about whose logs nobody was asked. */
const NOTHING_BESIDE: KnownBeside = { claimOn: () => null, funding: null, rememberedMs: 0 };

/** Asks the Redis of a config about the logs of statements, in their order. Where it does not answer, nothing is known. */
export async function lookBeside(
  statements: readonly Statement[],
  file: string,
): Promise<{ otherTransfers: z.infer<typeof OTHER_TRANSFERS>; beside: (index: number) => KnownBeside }> {
  try {
    const known = await withDeliveries(file, (parts) =>
      Promise.all(statements.map((statement) => knownBeside(statement, parts))),
    );
    return { otherTransfers: { looked: true }, beside: (index) => known[index] ?? NOTHING_BESIDE };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { otherTransfers: { looked: false, reason }, beside: () => NOTHING_BESIDE };
  }
}

async function knownBeside(statement: Statement, { stores }: Deliveries): Promise<KnownBeside> {
  const [known = NOTHING_KNOWN] = await stores.subjects.peek([statement.subject]);
  const [claims, funding]: [Map<number, Claim>, Funding] = await Promise.all([
    stores.checks.claimsOn(statement),
    fundingOf(statement, known, stores.checks),
  ]);
  return { claimOn: (index) => claims.get(index) ?? null, funding, rememberedMs: stores.checks.keptMs };
}
