import { UpstreamFailure } from '../../upstream/client/failure.ts';
import { refusalReport } from '../../upstream/client/refusal.ts';
import { withTimeout } from '../../with-timeout.ts';

/** What one look at the outside found. `refused`: asking again does not help, the config has to change. */
export type Finding = { name: string; ok: boolean; detail: string; refused?: true };

/** A look at the outside, under the name that its finding has. `ask` gives up, and lets go of all it holds, when `signal` says so. */
export type Check = {
  name: string;
  ask(signal: AbortSignal): Promise<Omit<Finding, 'name'>>;
  /** What an error means; default: that the check failed. */
  explain?(error: unknown): Omit<Finding, 'name'>;
};

/** No check takes longer: whoever drips an answer, or has a longer timeout, is given up. */
const LIMIT_MS = 12_000;

/** What a check found, at the latest after 12 s. */
export async function runCheck({ name, ask, explain = failed }: Check): Promise<Finding> {
  const ending = new AbortController();
  const asked = ask(ending.signal).catch(explain);
  const found = await withTimeout(asked, LIMIT_MS);
  ending.abort();
  return { name, ...(found ?? explain(new Error(`no whole answer within ${LIMIT_MS / 1_000} s`))) };
}

/** A check that failed, with the error's words, or with those for a key that is refused. */
export function failed(error: unknown): Omit<Finding, 'name'> {
  const refusal = error instanceof UpstreamFailure ? refusalReport(error) : null;
  if (refusal !== null) return { ok: false, detail: refusal, refused: true };
  return { ok: false, detail: messageOf(error) };
}

/** The words of an error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A difference of two clocks, as a person reads it. */
export function seconds(ms: number): string {
  return `${ms < 0 ? '-' : '+'}${(Math.abs(ms) / 1_000).toFixed(1)} s`;
}

/** `1 chain`, `2 chains`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
