import type { Logger } from 'pino';
import { BoundedMap, bytesOfTexts, CACHES } from '../../domain/caches.ts';
import type { TxState } from '../../domain/proof/proof.ts';

/** Interval at which the same failure of one endpoint is logged. The metric counts each. */
const EVERY_MS = 60_000;

const LONGEST_LOGGED_REASON = 200;

/** Logs the failures of RPC endpoints, each reason once a minute. */
export class FailureLog {
  readonly #log: Logger;
  readonly #reportedMs = new BoundedMap<string, number>({
    ...CACHES.rpcFailures,
    bytesOf: (failure) => bytesOfTexts(failure),
  });

  constructor(log: Logger) {
    this.#log = log;
  }

  note(chainId: string, txStates: readonly TxState[]): void {
    for (const txState of txStates) {
      if (txState.outcome !== 'failed') continue;
      const { endpoint } = txState;
      const reason = txState.reason.slice(0, LONGEST_LOGGED_REASON);
      const key = `${chainId} ${endpoint} ${reason}`;
      const nowMs = performance.now();
      if (nowMs - (this.#reportedMs.peek(key) ?? Number.NEGATIVE_INFINITY) < EVERY_MS) continue;
      this.#reportedMs.set(key, nowMs);
      this.#log.warn({ chainId, endpoint, reason }, 'rpc.failed');
    }
  }
}
