import { randomUUID } from 'node:crypto';
import { Duty } from '../../duty.ts';
import type { ClaimedCheck } from '../../store/checks.ts';
import { redisTimeMs } from '../../store/redis-time.ts';
import { type CheckContext, isOver, runCheck } from './run-check.ts';

/** Most checks of one chain that a process runs at once, so that a hanging endpoint holds up no other chain. */
const MOST_PER_CHAIN = 8;

/** Most checks of one removed chain that a call of `settleRemovedChains` ends. */
const MOST_ENDED = 200;

const CLAIM_EVERY_MS = 1_000;

/** Wait after an error, and the longest one of a check: with each failure in a row its wait doubles. */
const ERROR_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 900_000;

const RENEW_EVERY_MS = 3_000;

const TRIM_EVERY_MS = 60_000;

/** Longest renewal and trim. */
const MOST_MS = 5_000;

/** Claims and runs the payment checks that are due (docs/glossary.md: check). Any number of processes may do so. */
export class PaymentChecks {
  readonly #deps: CheckContext;
  readonly #aborting = new AbortController();
  readonly #working = new Map<string, { check: ClaimedCheck; done: Promise<void> }>();
  readonly #claiming: Duty;
  readonly #renewing: Duty;
  readonly #trimming: Duty;

  constructor(deps: CheckContext) {
    this.#deps = deps;
    const onError = (error: unknown): void => deps.log.error({ error }, 'checks.error');
    this.#claiming = new Duty({
      everyMs: CLAIM_EVERY_MS,
      isShared: true,
      run: async () => ({ waitMs: await this.#claim() }),
      onError,
    });
    // A claim that was not renewed expires: then the script that ends its check writes nothing.
    const ignore = (): void => undefined;
    this.#renewing = new Duty({
      everyMs: RENEW_EVERY_MS,
      isShared: true,
      mostMs: MOST_MS,
      run: () => this.#renew(),
      onError: ignore,
    });
    this.#trimming = new Duty({
      everyMs: TRIM_EVERY_MS,
      isShared: true,
      mostMs: MOST_MS,
      run: async () => void (await deps.stores.checks.trim()),
      onError,
    });
  }

  start(): void {
    this.#claiming.start(0);
    this.#renewing.start();
    this.#trimming.start(0);
  }

  wake(): void {
    this.#claiming.soon();
  }

  async #claim(): Promise<number> {
    const capacities = this.#capacities();
    if (capacities.size === 0) return CLAIM_EVERY_MS;
    const { checks } = this.#deps.stores;
    const endpoints = new Map([...this.#deps.readers].map(([chain, reader]) => [chain, reader.endpoints]));
    const { claimed, nextInMs, heads } = await checks.claim(this.#token(), capacities, { endpoints });
    for (const check of claimed) this.#work(check);
    for (const head of heads) void this.#readFinalHead(head);
    if (nextInMs === null || claimed.length > 0) return CLAIM_EVERY_MS;
    return Math.min(CLAIM_EVERY_MS, Math.max(50, nextInMs));
  }

  /** Reads the newest final block of an endpoint. Checks that wait for that block become due at once. */
  async #readFinalHead({ chainId, endpoint }: { chainId: string; endpoint: string }): Promise<void> {
    try {
      const head = await this.#deps.readers.get(chainId)?.finalHead(endpoint);
      if (head === undefined || head === null || this.#claiming.isClosed) return;
      await this.#deps.stores.checks.noteHead({ chainId, endpoint }, head.number);
      this.wake();
    } catch (error) {
      if (!this.#claiming.isClosed) this.#deps.log.error({ error }, 'checks.error');
    }
  }

  /**
   * Ends waiting checks on chains that were removed from the config. Reopens these when the chain is in the config again. One
   * call handles a bounded part, so callers repeat it. Only a process with the newest config may call it.
   */
  async settleRemovedChains(): Promise<void> {
    const { stores, readers } = this.#deps;
    const isBusy = [...this.#working.values()].some(({ check }) => !readers.has(check.statement.chainId));
    if (isBusy || this.#claiming.isClosed) return;
    if (readers.size === 0) await stores.checks.removeCursor();
    else if ((await stores.checks.reopen([...readers.keys()])) > 0) this.wake();
    const waiting = (await stores.checks.counts()).filter(({ state }) => state === 'waiting');
    const removed = waiting.filter(({ chain }) => !readers.has(chain));
    if (removed.length === 0) return;
    const capacities = new Map(removed.map(({ chain }) => [chain, MOST_ENDED]));
    const { claimed } = await stores.checks.claim(this.#token(), capacities, { all: true });
    for (const check of claimed) this.#work(check);
  }

  /** Names the claims of one call, and this process, which takes them with it when it ends. */
  #token(): string {
    return `${this.#deps.process} ${randomUUID()}`;
  }

  #capacities(): Map<string, number> {
    const capacities = new Map([...this.#deps.readers.keys()].map((chain) => [chain, MOST_PER_CHAIN]));
    for (const { check } of this.#working.values()) {
      const { chainId } = check.statement;
      capacities.set(chainId, (capacities.get(chainId) ?? 0) - 1);
    }
    return new Map([...capacities].filter(([, capacity]) => capacity > 0));
  }

  #work(check: ClaimedCheck): void {
    const key = `${check.id} ${check.token}`;
    const done = runCheck(check, this.#deps, this.#aborting.signal)
      .catch((error: unknown) => this.#postponeFailed(check, error))
      .finally(() => {
        this.#working.delete(key);
        this.wake();
      });
    this.#working.set(key, { check, done });
  }

  /** Postpones a failed check, longer each time. Ends it when it has waited too long for a verdict. */
  async #postponeFailed(check: ClaimedCheck, error: unknown): Promise<void> {
    const { stores, log, signals } = this.#deps;
    const isClosing = this.#claiming.isClosed;
    const failed = check.failed + (isClosing ? 0 : 1);
    if (!isClosing) {
      log.error({ check: check.id, failed, error }, 'check.error');
      signals.emit('check.failed', { chainId: check.statement.chainId });
    }
    try {
      const isLast = isOver(check, { nowMs: await redisTimeMs(this.#deps.redis) }, this.#deps);
      const nothing = { proof: null, readings: [], endpoints: [], logs: [], from: [], isHeld: false };
      if (isLast) await stores.checks.end(check, { state: 'unchecked', because: 'error', ...nothing });
      if (isLast) return;
      const inMs = Math.min(LONGEST_RETRY_MS, ERROR_RETRY_MS * 2 ** failed);
      await stores.checks.postpone(check, { inMs, because: check.because, readings: null, failed });
    } catch {
      // Redis does not answer. The claim expires, and the check is claimed again.
    }
  }

  async #renew(): Promise<void> {
    const claims = [...this.#working.values()].map(({ check: { id, token } }) => ({ id, token }));
    await this.#deps.stores.checks.renew(claims);
  }

  /** Stops claiming, and cancels requests under way. Their checks are due again at once. */
  async close(): Promise<void> {
    const ended = [this.#claiming, this.#renewing, this.#trimming].map((duty) => duty.close());
    this.#aborting.abort();
    await Promise.all(ended);
    await Promise.allSettled([...this.#working.values()].map(({ done }) => done));
  }
}
