import type { Signals } from '../signals.ts';
import { withTimeout } from '../with-timeout.ts';
import { Collection } from './collection.ts';
import { type Exposed, Exposition, wantsOpenMetrics } from './exposition.ts';
import { Instruments } from './instruments.ts';
import { Named, RPC_OUTCOMES } from './label-values.ts';
import { recordSignals } from './record-signals.ts';
import type { MetricSources } from './sources.ts';
import type { KnownTokens } from './token-value.ts';

export type { MetricSources } from './sources.ts';

/** What a process says of itself, which needs no Redis. Null: it is not known, and the gauge is left out. */
export type Standing = {
  ready(): Promise<boolean>;
  redisReachable(): boolean;
  redisPersistent(): boolean | null;
};

/** The time that the check of the readiness may take; then the process counts as not ready. */
const READY_TIMEOUT_MS = 800;

/** The receivers and routes of the config, which have series of their own. */
export type MetricNames = {
  receivers: readonly { name: string; type: string }[];
  routes: readonly string[];
  /** The chains with RPC endpoints, and the names of those. */
  chains?: readonly { chainId: string; endpoints: readonly string[] }[];
};

/** What metrics are made from. */
export type MetricsOptions = MetricNames & {
  signals: Signals;
  sources: MetricSources;
  standing: Standing;
  version: string;
  nodeVersion: string;
  tokens: KnownTokens;
};

/** The metrics of a process: counters and histograms from signals, gauges from sources. */
export class Metrics {
  readonly #exposition = new Exposition();
  readonly #instruments: Instruments;
  readonly #named = new Named();
  readonly #collection: Collection;
  readonly #standing: Standing;
  readonly #stopRecording: () => void;
  /** The texts that are being made, by whether they are in OpenMetrics. */
  readonly #exposing = new Map<boolean, Promise<Exposed>>();

  constructor(options: MetricsOptions) {
    const { signals, sources, standing, receivers, routes, chains = [], version } = options;
    const { nodeVersion, tokens } = options;
    this.#instruments = new Instruments(this.#exposition.registry);
    this.configure({ receivers, routes, chains });
    this.#standing = standing;
    const known = { known: tokens, named: this.#named };
    this.#collection = new Collection(sources, this.#instruments, known);
    this.#stopRecording = recordSignals(signals, this.#instruments, known);
    this.#instruments.set('buildInfo', { version, node_version: nodeVersion }, 1);
  }

  /** Has the receivers, routes and chains of a config counted by name from now on. */
  configure({ receivers, routes, chains = [] }: MetricNames): void {
    this.#instruments.name({
      receivers: receivers.map(({ name }) => name),
      routes,
      chains: chains.map(({ chainId }) => chainId),
      endpoints: chains.flatMap(({ endpoints }) => endpoints),
    });
    this.#named.areChecked = chains.length > 0;
    for (const { chainId: chain, endpoints } of chains) {
      for (const endpoint of endpoints) {
        this.#instruments.expect('rpcDuration', { chain, endpoint });
        for (const outcome of RPC_OUTCOMES)
          this.#instruments.expect('rpcCalls', { chain, endpoint, outcome });
      }
    }
    this.#instruments.show(
      'receiverInfo',
      receivers.map(({ name, type }) => ({ labels: { receiver: name, type }, value: 1 })),
    );
  }

  /**
   * All metrics, in the text format of Prometheus or in OpenMetrics, as the `Accept` header wants it. Takes less than 1 s,
   * also without Redis, and never rejects. Scrapes at once get one text: however many come, one is made at a time.
   */
  async expose(accept?: string): Promise<Exposed> {
    const isOpen = wantsOpenMetrics(accept);
    const exposing =
      this.#exposing.get(isOpen) ?? this.#expose(isOpen).finally(() => this.#exposing.delete(isOpen));
    this.#exposing.set(isOpen, exposing);
    return exposing;
  }

  async #expose(isOpen: boolean): Promise<Exposed> {
    // Before the sources are read: it is compared with the time at which the scrape began.
    this.#instruments.set('time', {}, Date.now() / 1_000);
    await Promise.all([this.#collection.refresh(), this.#showStanding()]);
    return this.#exposition.expose(isOpen);
  }

  async #showStanding(): Promise<void> {
    const standing = this.#standing;
    const ready = await withTimeout(standing.ready(), READY_TIMEOUT_MS).catch(() => false);
    this.#instruments.set('ready', {}, ready === true ? 1 : 0);
    this.#instruments.set('redisReachable', {}, standing.redisReachable() ? 1 : 0);
    const kept = standing.redisPersistent();
    this.#instruments.show('redisPersistent', kept === null ? null : [{ labels: {}, value: kept ? 1 : 0 }]);
  }

  /** Stops listening. What was counted can still be read. */
  close(): void {
    this.#stopRecording();
  }
}
