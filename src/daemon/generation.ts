import type { Config } from '../config/config.ts';
import { quoteVault } from '../domain/quotes/quote-vault.ts';
import { type SubjectId, vaultId } from '../domain/subjects/subject.ts';
import { parseClaimKey, routesOf, subjectsOf } from '../domain/subjects/subscription.ts';
import { EventLog } from '../store/event-log.ts';
import { Keys } from '../store/keys.ts';
import { type Fence, FencedLease, LeaseLostError } from '../store/lease.ts';
import type { UnsyncedPlans } from '../store/plan.ts';
import type { SchemaVersion } from '../store/schema-version.ts';
import type { SubjectStore } from '../store/subjects.ts';
import { wantTracked } from '../store/subscription-keys.ts';
import { adoptConfig, type Desired, syncConfig } from '../store/sync-config.ts';
import { withTimeout } from '../with-timeout.ts';
import { type Assembly, assemble, type DaemonContext } from './assemble.ts';

/** Time for the rest once attempts and polls have been cut off. */
const CUT_MS = 600;

/** Input of a generation. `version` is claimed again in an emptied Redis; `release` closes its relay's or sender's connection. */
export type GenerationOptions = Assembly & {
  version: SchemaVersion;
  release: (own: 'relay' | 'sender') => Promise<unknown>;
};

/**
 * The components that depend on the config. They are made from one config and replaced as a whole by the next. Two generations on one
 * Redis act like two processes: the old one ends its work with its own settings, under its own leases, while the new one takes
 * all new work.
 */
export class Generation {
  readonly config: Config;
  readonly deps: DaemonContext;
  readonly #options: GenerationOptions;
  readonly #keys: Keys;
  #isReplaced = false;
  /** True when Redis may hold a part of another config that was abandoned. */
  #isPartlyApplied = false;
  #pollingEnd: Promise<unknown> | null = null;

  constructor(options: GenerationOptions) {
    const { config, version } = options;
    this.config = config;
    this.#options = options;
    this.#keys = new Keys(config.redis.prefix, config.upstream.statusSource);
    this.deps = assemble({
      ...options,
      upkeep: {
        digest: config.digest,
        isReplaced: () => this.#isReplaced,
        isPartlyApplied: () => this.#isPartlyApplied,
        resync: async () => {
          await version.claim();
          await this.sync();
        },
        store: () => this.#store(),
      },
    });
  }

  /** Starts everything, polls first. */
  async start(): Promise<void> {
    await this.deps.heartbeat.start();
    await this.deps.polling.learning.start();
    await this.deps.verifying.begin();
    await this.#setBudgets();
    this.#poll();
    await this.sync();
    await this.#prepare();
    await this.#deliver(Promise.resolve());
  }

  /**
   * Takes over from the generation before: first the steps that can fail, then polls, log and deliveries, which the old one
   * releases. Resolves with the end of the old one's work under way; `cut` cuts that off at shutdown. `isNewest`: the content
   * of the config changed, and applies to all processes.
   */
  async replace(
    old: Generation,
    { cut, isNewest }: { cut: AbortSignal; isNewest: boolean },
  ): Promise<{ drained: Promise<void> }> {
    // Its check must not restore its own config.
    old.#isReplaced = true;
    try {
      await this.deps.heartbeat.start();
      await this.deps.polling.learning.start();
      await this.deps.verifying.begin();
      if (isNewest) await this.sync();
      else await this.#adopt();
      await this.#prepare();
    } catch (error) {
      this.#isReplaced = true;
      old.#isReplaced = false;
      await this.close(AbortSignal.abort());
      // Its check repeats this until it is done.
      old.#isPartlyApplied = true;
      await old.sync().catch(() => undefined);
      throw error;
    }
    this.#poll();
    const { relayed, drained } = old.#letGo(cut);
    // A lease that could not be released expires.
    await this.#deliver(relayed.catch(() => undefined));
    return { drained };
  }

  #poll(): void {
    for (const { dispatcher, worker, capacity } of this.deps.polling.pollers) {
      worker.start({ capacity });
      dispatcher.start();
    }
  }

  async #prepare(): Promise<void> {
    await this.deps.polling.discovery.start();
    this.deps.delivering.sender.start();
  }

  /** `relayed` resolves when the relay's lease is free. */
  async #deliver(relayed: Promise<void>): Promise<void> {
    const { reconcile, delivering } = this.deps;
    for (const worker of delivering.workers) worker.start();
    await reconcile.start();
    await relayed;
    delivering.relay.start();
    this.deps.verifying.start();
    this.deps.books?.start();
  }

  async #setBudgets(fence: Fence | null = null): Promise<UnsyncedPlans> {
    return this.deps.stores.plan.setBudgets(this.deps.polling.budgets, fence);
  }

  /**
   * Syncs one process at a time: processes with different configs remove each other's entries; the newest must be whole. A sync
   * that was stopped until another process acquired the lease is repeated, unless that one has synced another config: then it
   * has the newest, and this process goes on without.
   */
  async sync(): Promise<void> {
    const { configLease: lease, configFence: fence } = this.#keys;
    const { redis, heartbeat, stores } = this.deps;
    let begun: number | null = null;
    for (let isWhole = false; !isWhole; ) {
      const work = async (held: Fence): Promise<void> => {
        const { revision, digest } = await stores.registry.newestConfig();
        begun ??= revision;
        if (begun === revision || digest === null || digest === this.config.digest) await this.#write(held);
        else this.#reportOvertaken(digest);
        isWhole = true;
      };
      await new FencedLease(redis, { lease, fence }, heartbeat.id).during(work).catch((error: unknown) => {
        if (!(error instanceof LeaseLostError)) throw error;
      });
    }
    this.#isPartlyApplied = false;
  }

  #reportOvertaken(digest: string): void {
    const [mine, newest] = [this.config.digest, digest].map((one) => one.slice(0, 12));
    this.#options.log.warn({ mine, newest }, 'config.overtaken');
  }

  /** Writes the config's entries and polls new subjects: in an unsynced plan all, though the registry may have them. */
  async #write(fence: Fence): Promise<void> {
    const { redis, stores, polling } = this.deps;
    const { plan, registry, importedQuotes, tracked } = stores;
    const keys = this.#keys;
    const unsynced = await this.#setBudgets(fence);
    const isUnsynced = (subject: SubjectId): boolean => unsynced.has(keys.groupOf(subject));
    const newest = await new EventLog(redis, keys).newest();
    const isGraced = this.config.removal.graceSpanMs > 0;
    // A quote that leaves the config is suspended, and polled with all that is known of it.
    const suspended = isGraced ? await registry.namedOf('quote') : new Set<string>();
    const unverified = await importedQuotes.sync(this.config.importedQuotes, fence, suspended);
    const wanted = wantedOf(this.config);
    await syncConfig(registry, wanted, { newestEntry: newest, fence });
    await this.#options.epoch.synchronised();
    const named = wanted.subscriptions.flatMap(({ subjects }) => subjects);
    await plan.track(named.filter(isUnsynced));
    const polled = [...unverified, ...(await unclaimedVaults(this.config, stores.subjects))];
    if (polled.length > 0) await plan.pollSoon(polled);
    if (unsynced.size > 0) {
      for await (const some of tracked.all()) {
        await wantTracked({ registry, fence }, some);
        await plan.track(some.filter(isUnsynced));
      }
    }
    await plan.noteSynced(unsynced, fence);
    // After the plans that were lost: it scans them.
    await plan.settleTransfers(fence);
    for (const { dispatcher } of polling.pollers) dispatcher.wake();
  }

  /** Adopts the config of the generation before, which may not be the newest of all processes. */
  async #adopt(): Promise<void> {
    const { registry, importedQuotes } = this.deps.stores;
    await adoptConfig(registry, wantedOf(this.config));
    importedQuotes.adopt(this.config.importedQuotes);
  }

  /** Restores config entries in Redis that a failover lost, and ends checks on chains that are not in the config. */
  async #store(): Promise<void> {
    const { registry } = this.deps.stores;
    const [isRegistryLost] = await Promise.all([registry.isLost(), this.deps.verifying.store()]);
    const { plan } = this.deps.stores;
    const unsynced = await this.#setBudgets();
    const isLost = isRegistryLost;
    if (unsynced.size === 0 && !isLost) return;
    this.#options.log.error({ endpointGroups: [...unsynced.keys()], wanted: !isLost }, 'plan.lost');
    if (isLost) await plan.clearSynced();
    await this.sync();
  }

  /** Ends polling: polls under way end, or are cut off; committed events are still delivered. */
  async stopPolling(cut: AbortSignal): Promise<void> {
    const { pollers } = this.deps.polling;
    for (const { dispatcher } of pollers) dispatcher.stop();
    await Promise.all(pollers.map(({ worker }) => worker.close(cut)));
    await Promise.all(pollers.map(({ dispatcher }) => dispatcher.close()));
  }

  /** Stops taking work and closes everything once work in flight has ended; `cut` cuts it off and releases it. */
  async close(cut: AbortSignal): Promise<void> {
    await this.#letGo(cut).drained;
  }

  /** Works as `close`; `relayed` resolves when another relay may take the lease. */
  #letGo(cut: AbortSignal): { relayed: Promise<void>; drained: Promise<void> } {
    const { polling, delivering, verifying, reconcile, books } = this.deps;
    const relayed = delivering.relay.close();
    const deliveries = delivering.workers.map((worker) => worker.close(cut));
    const polled = this.stopPolling(cut).then(() => polling.learning.close());
    const discovered = polling.discovery.close();
    const { release } = this.#options;
    // Attempts under way need none of this, and there may be many generations with hanging receivers.
    const released = [
      Promise.allSettled([polled, discovered]).then(() => this.#endPolling()),
      Promise.allSettled([relayed]).then(() => release('relay')),
      delivering.sender.stopListening().then(() => release('sender')),
    ];
    const flow = [
      polled,
      ...deliveries,
      discovered,
      relayed,
      verifying.close(),
      reconcile.close(),
      books?.close() ?? Promise.resolve(),
      ...released,
    ];
    return { relayed, drained: settledOrCut(flow, cut).then(() => this.#end()) };
  }

  #endPolling(): Promise<unknown> {
    const { polling, clients } = this.deps;
    this.#pollingEnd ??= withTimeout(Promise.allSettled([polling.queues.close()]), CUT_MS / 2).then(() =>
      Promise.allSettled(clients.map((client) => client.close())),
    );
    return this.#pollingEnd;
  }

  async #end(): Promise<void> {
    const { release } = this.#options;
    await withTimeout(Promise.allSettled([this.deps.heartbeat.close()]), CUT_MS / 2);
    const rest = [this.#endPolling(), release('relay'), release('sender')];
    await withTimeout(Promise.allSettled(rest), CUT_MS / 2);
  }
}

async function settledOrCut(work: readonly Promise<unknown>[], cut: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<null>();
  const begin = (): void => resolve(null);
  cut.addEventListener('abort', begin);
  if (cut.aborted) begin();
  const settled = Promise.allSettled(work);
  await Promise.race([settled, promise.then(() => withTimeout(settled, CUT_MS))]);
  cut.removeEventListener('abort', begin);
}

function wantedOf(config: Config): Desired {
  return {
    digest: config.digest,
    graceSpanMs: config.removal.graceSpanMs,
    addedReceivers: new Set(config.addedReceivers),
    routes: routesOf(config.subscriptions),
    receivers: config.receivers.map(({ name, type, events, filter, ordering }) => ({
      name,
      type,
      events,
      filter,
      ordering,
    })),
    subscriptions: config.subscriptions.map((subscription) => {
      const { name, receivers, metadata, history, overdueAfterMs, warnBeforeMs, recipients } = subscription;
      const { vaultQuotes } = subscription;
      const subjects = subjectsOf(subscription);
      const wishes = { overdueAfterMs, warnBeforeMs, recipients, vaultQuotes };
      return { name, receivers, metadata, history, ...wishes, subjects };
    }),
  };
}

/** Quotes whose vault is to be watched by a subscription, and is not yet: the next poll of such a quote claims it. */
async function unclaimedVaults(
  { importedQuotes, subscriptions }: Config,
  subjects: SubjectStore,
): Promise<SubjectId[]> {
  const wanted = new Set(subscriptions.flatMap(({ vaultQuotes }) => vaultQuotes));
  const found = importedQuotes.flatMap((quote) => {
    const vault = wanted.has(quote.subject) ? quoteVault(quote) : null;
    return vault === null || 'found' in vault ? [] : [{ quote: quote.subject, vault: vaultId(vault) }];
  });
  const entries = await subjects.peekEach(found.map(({ vault }) => vault));
  return found.flatMap(({ quote }, index) => {
    const keys = (entries[index]?.claims ?? []).map(({ key }) => parseClaimKey(key));
    const isClaimed = (name: string): boolean =>
      keys.some(({ subject, subscription }) => subject === quote && subscription === name);
    const wishing = subscriptions.filter(({ vaultQuotes }) => vaultQuotes.includes(quote));
    return wishing.every(({ name }) => isClaimed(name)) ? [] : [quote];
  });
}
