import { Duty } from '../../duty.ts';
import { type RedisClient, SCHEMA_VERSION } from '../../store/commands.ts';
import type { StoredReceiver } from '../../store/definitions.ts';
import type { LogEntry } from '../../store/log-entry.ts';
import { type Ahead, BATCH } from './follow.ts';
import { NewerEntryError } from './log-batch.ts';
import type { RelayContext } from './relay-context.ts';
import { IDLE, type Round, type RoundView, relayRound } from './relay-round.ts';
import { replaysUnderWay } from './replays.ts';

/** Time that a quiet relay waits for the next entry, and interval of requesting a lease. */
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
  readonly #relaying: Duty;
  /** Renews the lease whatever the round does. */
  readonly #renewing: Duty;
  #isHolding = false;
  #isStopped = false;
  /** Receivers that failed in the last round -> time of the retry (own clock, ms). */
  readonly #failed = new Map<string, number>();
  #names: readonly string[] = [];
  #came: { after: string; piece: Ahead['piece'] } | null = null;

  constructor(deps: RelayContext, { blocking }: RelayConnections) {
    this.#deps = deps;
    this.#blocking = blocking;
    this.#relaying = new Duty({
      everyMs: QUIET_MS,
      run: () => this.#run(),
      onError: (error) => {
        deps.log.error({ error }, 'relay.error');
        return ERROR_RETRY_MS;
      },
    });
    this.#renewing = new Duty({
      everyMs: RENEW_MS,
      isSteady: true,
      run: async () => {
        if (deps.stores.lease.token !== null) await this.#hold();
      },
      onError: () => undefined,
    });
  }

  start(): void {
    this.#relaying.start(0);
    this.#renewing.start();
  }

  isRunning(): boolean {
    return this.#relaying.isOn;
  }

  /** Makes a round, and waits for the next entry. Returns the wait until the next round. */
  async #run(): Promise<number> {
    this.#noteStopped(false);
    try {
      const { more, full, reached } = await this.round();
      return more || this.#relaying.isClosed ? 0 : await this.#wait(reached, full ? FULL_MS : QUIET_MS);
    } catch (error) {
      if (!(error instanceof NewerEntryError) || this.#relaying.isClosed) throw error;
      await this.#leaveToNewer(error);
      return NEWER_WAIT_MS;
    }
  }

  /** Takes or renews the lease. */
  async #hold(): Promise<string | null> {
    const token = await this.#deps.stores.lease.hold();
    this.#noteHolding(token !== null);
    return token;
  }

  async #release(): Promise<void> {
    await this.#deps.stores.lease.release();
    this.#noteHolding(false);
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
    const isHeld = (): boolean => !this.#relaying.isClosed && this.#deps.stores.lease.token === token;
    const lease = { token, isHeld, failed: (name: string, error: unknown) => this.#note(name, error) };
    return relayRound(view, lease, this.#deps);
  }

  async #readRound(): Promise<RoundInput> {
    const { events, registry, lease, replays } = this.#deps.stores;
    const [names, before, came] = [this.#names, lease.token, this.#came];
    this.#came = null;
    const [newest, token, receivers, underWay, guessed, subscriptions] = await Promise.all([
      events.newest(),
      this.#hold(),
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

  #noteHolding(holding: boolean): void {
    if (holding === this.#isHolding) return;
    this.#isHolding = holding;
    this.#deps.signals.emit('relay.moved', { holding });
  }

  #noteStopped(stopped: boolean): void {
    if (stopped === this.#isStopped) return;
    this.#isStopped = stopped;
    this.#deps.signals.emit('relay.stopped', { stopped });
  }

  #note(receiver: string, error: unknown): void {
    if (this.#relaying.isClosed) return;
    this.#deps.log.error({ receiver, error }, 'relay.error');
    this.#failed.set(receiver, performance.now() + ERROR_RETRY_MS);
  }

  /** Leaves the lease to a newer version, which can read on. No cursor has moved past the entry that stopped us. */
  async #leaveToNewer({ entry }: NewerEntryError): Promise<void> {
    const { id, version, reason } = entry;
    this.#deps.log.error({ entry: id, found: version, expected: SCHEMA_VERSION, reason }, 'relay.stopped');
    this.#noteStopped(true);
    await this.#release();
  }

  /** Waits where this process has the lease. Returns the further wait until the next round. */
  async #wait(newest: string, ms: number): Promise<number> {
    const { events } = this.#deps.stores;
    if (!this.#isHolding) return QUIET_MS;
    if (!(await events.awaitAfter(newest, { blocking: this.#blocking, waitMs: ms }))) return 0;
    const piece = await events.after(newest, BATCH);
    if (piece.entries.length > 0) this.#came = { after: newest, piece };
    return 0;
  }

  async close(): Promise<void> {
    await Promise.all([this.#relaying.close(), this.#renewing.close()]);
    await this.#release();
    this.#noteStopped(false);
  }
}

function keysOf(entry: LogEntry): readonly string[] {
  return 'roots' in entry ? entry.roots : [];
}
