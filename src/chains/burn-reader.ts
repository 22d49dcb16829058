import type { JsonObject } from '../domain/json.ts';
import { type Burn, burnOf, localIntent } from '../domain/proof/burn.ts';
import type { Stated } from '../domain/proof/statement.ts';
import type { ChainReader } from './chain-readers.ts';

/**
 * Reads the burn of a local intent at the endpoints of its source chain; null where the payment is not the delivery of one.
 * `ageMs`: time since the payment was stated. Rejects only with the reason of `signal`.
 */
export async function readBurn(
  statement: Stated,
  facts: { promised: { local?: true } | null; record: JsonObject | null },
  {
    readers,
    ageMs,
    signal,
  }: { readers: ReadonlyMap<string, ChainReader>; ageMs: number; signal?: AbortSignal },
): Promise<Burn | null> {
  const local = localIntent(statement, facts);
  if (local === null || statement.intentHash === null) return null;
  const { fulfilledBy } = local;
  const reader = fulfilledBy === null ? null : readers.get(fulfilledBy.chainId);
  if (reader === undefined) return { state: 'none' };
  const options = signal === undefined ? {} : { signal };
  const txStates =
    fulfilledBy === null || reader === null ? [] : await reader.read(fulfilledBy.txHash, options);
  return burnOf(txStates, { intentHash: statement.intentHash, fulfilledBy, ageMs });
}
