import type { Logger } from 'pino';
import type { Reading } from '../../domain/proof/reading.ts';

/** The interval at which the same failure of one endpoint is said: the metric counts each. */
const EVERY_MS = 60_000;

/** The number of failures that are remembered. */
const MOST = 1_000;

/** The longest text of an endpoint that is logged. */
const LONGEST_REASON = 200;

/** Says of RPC endpoints why they fail, each reason once a minute. */
export class FailureLog {
  readonly #log: Logger;
  readonly #saidMs = new Map<string, number>();

  constructor(log: Logger) {
    this.#log = log;
  }

  note(chainId: string, readings: readonly Reading[]): void {
    for (const reading of readings) {
      if (reading.outcome !== 'failed') continue;
      const { endpoint } = reading;
      const reason = reading.reason.slice(0, LONGEST_REASON);
      const key = `${chainId} ${endpoint} ${reason}`;
      const nowMs = performance.now();
      if (nowMs - (this.#saidMs.get(key) ?? Number.NEGATIVE_INFINITY) < EVERY_MS) continue;
      if (this.#saidMs.size >= MOST) this.#saidMs.clear();
      this.#saidMs.set(key, nowMs);
      this.#log.warn({ chainId, endpoint, reason }, 'rpc.failed');
    }
  }
}
