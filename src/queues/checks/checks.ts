import { randomUUID } from 'node:crypto';
import { Duty } from '../../duty.ts';
import type { ClaimedCheck } from '../../store/checks.ts';
import { redisTimeMs } from '../../store/connection.ts';
import { type CheckContext, isOver, runCheck } from './run-check.ts';

/** Checks of one chain that a process works on at once, so that a hanging endpoint holds up no other chain. */
const ROOM = 8;

/** Checks of a chain removed from the config that one round ends. */
const LEFT_ROOM = 200;

const QUIET_MS = 1_000;
const ERROR_RETRY_MS = 1_000;

/** Longest wait of a check that fails with an error repeatedly. Each wait is twice as long as the last. */
const LONGEST_RETRY_MS = 900_000;

const RENEW_MS = 3_000;

const TRIM_MS = 60_000;

/** Longest renewal and trim. */
const MOST_MS = 5_000;

/** Works on due checks. Any number of processes may run it. */
export class Checks {
  readonly #deps: CheckContext;
  readonly #cut = new AbortController();
  readonly #working = new Map<string, { check: ClaimedCheck; done: Promise<void> }>();
  readonly #claiming: Duty;
  readonly #renewing: Duty;
  readonly #trimming: Duty;

  constructor(deps: CheckContext) {
    this.#deps = deps;
    const onError = (error: unknown): void => deps.log.error({ error }, 'checks.error');
    this.#claiming = new Duty({
      everyMs: QUIET_MS,
      run: async () => ({ waitMs: await this.#claim() }),
      onError,
    });
    // A later write detects a claim that could not be renewed.
    const ignore = (): void => undefined;
    this.#renewing = new Duty({
      everyMs: RENEW_MS,
      isSteady: true,
      mostMs: MOST_MS,
      run: () => this.#renew(),
      onError: ignore,
    });
    this.#trimming = new Duty({
      everyMs: TRIM_MS,
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
    if (capacities.size === 0) return QUIET_MS;
    const { checks } = this.#deps.stores;
    const endpoints = new Map([...this.#deps.readers].map(([chain, reader]) => [chain, reader.endpoints]));
    const { claimed, nextInMs, heads } = await checks.claim(randomUUID(), capacities, { endpoints });
    for (const check of claimed) this.#work(check);
    for (const head of heads) void this.#watch(head);
    return nextInMs === null || claimed.length > 0 ? QUIET_MS : Math.min(QUIET_MS, Math.max(50, nextInMs));
  }

  /** Reads the final head of an endpoint that checks wait for. Checks that are final by it become due at once. */
  async #watch({ chainId, endpoint }: { chainId: string; endpoint: string }): Promise<void> {
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
   * Ends waiting checks on chains that are not in the config. Reopens checks that ended so on chains that are back. One call
   * handles a bounded part, so callers repeat it. Call it where the config is the newest of all processes.
   */
  async settleLeft(): Promise<void> {
    const { stores, readers } = this.#deps;
    const isBusy = [...this.#working.values()].some(({ check }) => !readers.has(check.statement.chainId));
    if (isBusy || this.#claiming.isClosed) return;
    if (readers.size === 0) await stores.checks.removeCursor();
    else if ((await stores.checks.reopen([...readers.keys()])) > 0) this.wake();
    const waiting = (await stores.checks.counts()).filter(({ state }) => state === 'waiting');
    const left = waiting.filter(({ chain }) => !readers.has(chain));
    if (left.length === 0) return;
    const capacities = new Map(left.map(({ chain }) => [chain, LEFT_ROOM]));
    const { claimed } = await stores.checks.claim(randomUUID(), capacities, { all: true });
    for (const check of claimed) this.#work(check);
  }

  #capacities(): Map<string, number> {
    const capacities = new Map([...this.#deps.readers.keys()].map((chain) => [chain, ROOM]));
    for (const { check } of this.#working.values()) {
      const { chainId } = check.statement;
      capacities.set(chainId, (capacities.get(chainId) ?? 0) - 1);
    }
    return new Map([...capacities].filter(([, capacity]) => capacity > 0));
  }

  #work(check: ClaimedCheck): void {
    const key = `${check.id} ${check.token}`;
    const done = runCheck(check, this.#deps, this.#cut.signal)
      .catch((error: unknown) => this.#giveBack(check, error))
      .finally(() => {
        this.#working.delete(key);
        this.wake();
      });
    this.#working.set(key, { check, done });
  }

  /** Postpones a failed check, longer each time, and ends it after the longest wait. If that fails too, its claim expires. */
  async #giveBack(check: ClaimedCheck, error: unknown): Promise<void> {
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
      // Redis is away: the claim expires.
    }
  }

  async #renew(): Promise<void> {
    const claims = [...this.#working.values()].map(({ check: { id, token } }) => ({ id, token }));
    await this.#deps.stores.checks.renew(claims);
  }

  /** Claims nothing more and cancels requests under way. Their checks are due again at once. */
  async close(): Promise<void> {
    const ended = [this.#claiming, this.#renewing, this.#trimming].map((duty) => duty.close());
    this.#cut.abort();
    await Promise.all(ended);
    await Promise.allSettled([...this.#working.values()].map(({ done }) => done));
  }
}
