import { setTimeout as sleep } from 'node:timers/promises';
import { type RedisClient, SCHEMA_VERSION } from '../../store/commands.ts';
import type { StoredReceiver } from '../../store/definitions.ts';
import type { LogEntry } from '../../store/log-entry.ts';
import { type Ahead, BATCH } from './follow.ts';
import { NewerEntryError } from './log-batch.ts';
import type { RelayContext } from './relay-context.ts';
import { IDLE, type Round, type RoundView, relayRound } from './relay-round.ts';
import { replaysUnderWay } from './replays.ts';

/** Time that a quiet relay waits for the next entry, and interval of renewing or requesting a lease. */
const QUIET_MS = 1_000;
const ERROR_RETRY_MS = 1_000;

/** Wait while a receiver that accepts deliveries has the most open deliveries. */
const FULL_MS = 20;

const RENEW_MS = 1_000;

/** Time for which a relay that stops before an entry of a newer version leaves the lease to others. */
const NEWER_WAIT_MS = 30_000;

/** Input of a round, requested at once: a round trip to Redis is slow under load. */
type RoundInput = { newest: string; token: string | null; round: RoundView };

type RelayConnections = { blocking: RedisClient };

/**
 * Moves the cursor of every receiver along the event log and opens the deliveries that follow from it. One process relays at a
 * time. Opening deliveries and moving the cursor is one step under the fencing token. When a relay dies in between, its
 * successor finds the deliveries and adds nothing.
 */
export class Relay {
  readonly #deps: RelayContext;
  readonly #blocking: RedisClient;
  #running: Promise<void> | null = null;
  #closing = false;
  #holding = false;
  /** Fencing token of the lease, null while another process has it; and its renewal under way. */
  #token: string | null = null;
  #renewing: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  readonly #closed = new AbortController();
  /** Receivers that failed in the last round -> time of the retry (own clock, ms). */
  readonly #failed = new Map<string, number>();
  #names: readonly string[] = [];
  #came: { after: string; piece: Ahead['piece'] } | null = null;

  constructor(deps: RelayContext, { blocking }: RelayConnections) {
    this.#deps = deps;
    this.#blocking = blocking;
  }

  start(): void {
    this.#running = this.#run();
  }

  isRunning(): boolean {
    return this.#running !== null && !this.#closing;
  }

  async #run(): Promise<void> {
    while (!this.#closing) {
      try {
        const { more, full, reached } = await this.round();
        if (more || this.#closing) continue;
        await this.#wait(reached, full ? FULL_MS : QUIET_MS);
      } catch (error) {
        if (this.#closing) return;
        if (error instanceof NewerEntryError) {
          await this.#waitForNewer(error);
          continue;
        }
        this.#deps.log.error({ error }, 'relay.error');
        await this.#rest(ERROR_RETRY_MS);
      }
    }
  }

  /** Takes or renews the lease, and from then on renews it, whatever the round does. */
  async #take(): Promise<string | null> {
    await this.#renewing;
    await this.#renew();
    clearInterval(this.#timer);
    if (this.#token !== null) this.#timer = setInterval(() => this.#renewLater(), RENEW_MS);
    return this.#token;
  }

  async #renew(): Promise<void> {
    this.#token = await this.#deps.stores.lease.hold();
    this.#hold(this.#token !== null);
  }

  #renewLater(): void {
    this.#renewing = this.#renewing
      .then(async () => {
        if (this.#token !== null && !this.#closing) await this.#renew();
      })
      .catch(() => undefined);
  }

  async #release(): Promise<void> {
    clearInterval(this.#timer);
    this.#token = null;
    await this.#renewing;
    await this.#deps.stores.lease.release();
    this.#hold(false);
  }

  /** Makes one round over all receivers, under the lease; does nothing where another process has it. */
  async round(): Promise<Round & { reached: string }> {
    const { newest, token, round } = await this.#readRound();
    const came = token === null ? IDLE : await this.#relay(token, round);
    // The place that all reached, not the newest entry: more may have been added amid the round.
    return { ...came, reached: came.reached ?? newest };
  }

  async #relay(token: string, view: RoundView): Promise<Round> {
    // It goes on while the lease under which it began is held.
    const isHeld = (): boolean => !this.#closing && this.#token === token;
    const lease = { token, isHeld, failed: (name: string, error: unknown) => this.#note(name, error) };
    return relayRound(view, lease, this.#deps);
  }

  async #readRound(): Promise<RoundInput> {
    const { events, registry, lease, replays } = this.#deps.stores;
    const [names, before, came] = [this.#names, this.#token, this.#came];
    this.#came = null;
    const [newest, token, receivers, underWay, guessed, subscriptions] = await Promise.all([
      events.newest(),
      this.#take(),
      registry.receivers(),
      replaysUnderWay(replays),
      lease.readReceivers(names),
      registry.subscriptions((came?.piece.entries ?? []).flatMap(keysOf)),
    ]);
    const nowMs = performance.now();
    const known = new Map<string, StoredReceiver>();
    const all = receivers.filter(({ removed }) => !removed);
    for (const receiver of all) {
      if ((this.#failed.get(receiver.name) ?? 0) <= nowMs) known.set(receiver.name, receiver);
    }
    this.#names = [...known.keys()];
    // Another process may have moved cursors until the lease was ours.
    const isSame = token === before && names.join() === this.#names.join();
    const standings = isSame || token === null ? guessed : await lease.readReceivers(this.#names);
    const ahead = came === null ? null : { ...came, subscriptions };
    return { newest, token, round: { known, all, standings, replays: underWay, ahead } };
  }

  #hold(holding: boolean): void {
    if (holding === this.#holding) return;
    this.#holding = holding;
    this.#deps.signals.emit('relay.moved', { holding });
  }

  #note(receiver: string, error: unknown): void {
    if (this.#closing) return;
    this.#deps.log.error({ receiver, error }, 'relay.error');
    this.#failed.set(receiver, performance.now() + ERROR_RETRY_MS);
  }

  /** Leaves the lease to a newer version, which can read on. No cursor has moved past the entry that stopped us. */
  async #waitForNewer({ entry }: NewerEntryError): Promise<void> {
    const { signals, log } = this.#deps;
    const { id, version, reason } = entry;
    log.error({ entry: id, found: version, expected: SCHEMA_VERSION, reason }, 'relay.stopped');
    signals.emit('relay.stopped', { stopped: true });
    await this.#release();
    await this.#rest(NEWER_WAIT_MS);
    signals.emit('relay.stopped', { stopped: false });
  }

  async #rest(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#closed.signal }).catch(() => undefined);
  }

  async #wait(newest: string, ms: number): Promise<void> {
    const { events } = this.#deps.stores;
    if (!this.#holding) {
      await this.#rest(QUIET_MS);
      return;
    }
    if (!(await events.awaitAfter(newest, { blocking: this.#blocking, waitMs: ms }))) return;
    const piece = await events.after(newest, BATCH);
    if (piece.entries.length > 0) this.#came = { after: newest, piece };
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#closed.abort();
    await this.#running;
    await this.#release();
  }
}

function keysOf(entry: LogEntry): readonly string[] {
  return 'roots' in entry ? entry.roots : [];
}
