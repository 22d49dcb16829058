import type { ChainReader } from '../../chains/chain-readers.ts';
import type { Config } from '../../config/config.ts';
import type { Reading } from '../../domain/proof/reading.ts';
import type { Statement } from '../../domain/proof/statement.ts';
import { tokenRules } from '../../domain/proof/token-rules.ts';
import { judge, type Verdict } from '../../domain/proof/verdict.ts';
import type { KnownBeside } from './other-transfers.ts';

/** A payment and what was found; `readings` is null where the config has no endpoints of its chain. */
export type CheckedPayment = { statement: Statement; verdict: Verdict; readings: Reading[] | null };

/** Asks every endpoint of the payment's chain once, and judges what they say. */
export async function checkPayment(
  statement: Statement,
  {
    readers,
    config,
    statedAtMs,
    beside,
  }: {
    readers: ReadonlyMap<string, ChainReader>;
    config: Config;
    statedAtMs: number | null;
    beside: KnownBeside;
  },
): Promise<CheckedPayment> {
  const { chainId, txHash, token } = statement;
  const nowMs = Date.now();
  const rules = {
    ...tokenRules(config)(chainId),
    ...beside,
    statedAtMs: statedAtMs ?? nowMs,
    nowMs,
  };
  const reader = readers.get(chainId);
  const before = judge(statement, [], rules);
  if (reader === undefined) {
    const isKnown = before.outcome === 'unchecked';
    return {
      statement,
      readings: null,
      verdict: isKnown ? before : { outcome: 'waiting', because: 'unreachable' },
    };
  }
  if (before.outcome === 'unchecked') return { statement, readings: [], verdict: before };
  const readings = await reader.read(txHash, { token });
  return { statement, readings, verdict: judge(statement, readings, rules) };
}
