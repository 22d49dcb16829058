import { secondsAsMs } from '../cadence/timed.ts';
import { isJsonObject, type JsonObject } from '../json.ts';
import { chainFamily } from '../proof/statement.ts';
import { type ImportedQuote, wordOf } from './promised.ts';

/** The vault that an imported quote names. `deadlineMs`: until when it can be funded at the latest, ms since 1970. */
type QuoteVault = { address: string; chainId: number; deadlineMs: number };

/** A vault that no response has shown is polled for this long after its deadline. */
const UNSEEN_MS = 3_600_000;

/**
 * Reads the vault of an imported quote: `execution.vault` on `source.chainId`. Its deadline is that of the reward, else the
 * quote's `expiresAt`. A quote without a vault that the deposit gateway can have is a fault: the found and the expected.
 */
export function quoteVault({ raw }: ImportedQuote): QuoteVault | { found: string; expected: string } {
  const execution = objectOf(raw.execution);
  const { vault } = execution;
  const chain = wordOf(objectOf(raw.source).chainId) ?? '';
  if (typeof vault !== 'string' || vault === '') {
    const found = vault === null ? 'null as its execution.vault' : 'none in its execution.vault';
    return { found: `a quote with ${found}`, expected: 'a quote with the address of a vault' };
  }
  if (chainFamily(chain) !== 'evm' || !/^0x[0-9a-fA-F]{40}$/.test(vault)) {
    return {
      found: `a quote with the vault ${wordOf(vault) ?? 'of a long text'} on chain ${chain || 'unknown'}`,
      expected: 'a vault of 0x and 40 hex digits on an EVM chain, as the deposit gateway has them',
    };
  }
  const { deadline } = objectOf(objectOf(execution.intent).reward);
  const deadlineMs = secondsAsMs(deadline) ?? secondsAsMs(raw.expiresAt);
  if (deadlineMs === null) {
    return { found: 'a quote without expiresAt', expected: 'a quote with the time of its end, Unix seconds' };
  }
  return { address: vault, chainId: Number(chain), deadlineMs };
}

/** Time at which polls of the quote's vault end while no response has shown it, ms since 1970; null without a vault. */
export function vaultUnseenUntilMs(quote: ImportedQuote): number | null {
  const vault = quoteVault(quote);
  return 'found' in vault ? null : vault.deadlineMs + UNSEEN_MS;
}

function objectOf(value: JsonObject[string] | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}
