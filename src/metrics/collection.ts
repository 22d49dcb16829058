import { withTimeout } from '../with-timeout.ts';
import type { Instruments } from './instruments.ts';
import type { Named } from './label-values.ts';
import {
  showChecks,
  showDeliveries,
  showEndpointGroups,
  showLearned,
  showQueues,
  showReceivers,
  showRoutes,
  showSubjects,
  showSuspensions,
  showSweeps,
  showWaits,
} from './show.ts';
import { showTransfers } from './show-transfers.ts';
import type { MetricSources } from './sources.ts';
import type { KnownTokens } from './token-value.ts';

/** How old gauges may be, however often somebody scrapes. */
const EVERY_MS = 2_000;

/** The time that a source may take: with the rest, a scrape is answered within 1 s. */
const TIMEOUT_MS = 800;

/** One source: how it is asked, and how its gauges show what it said, or nothing of it for null. */
type Read<T> = {
  source: keyof MetricSources;
  ask: () => Promise<T>;
  show: (metrics: Instruments, value: T | null) => void;
};

/** Reads the gauges from their sources. No source can delay or fail the others, or the scrape. */
export class Collection {
  readonly #sources: MetricSources;
  readonly #metrics: Instruments;
  readonly #asking = new Set<keyof MetricSources>();
  #last: { startedMs: number; done: Promise<unknown> } | null = null;

  readonly #showTransfers: Read<Awaited<ReturnType<MetricSources['transfers']>>>['show'];

  constructor(
    sources: MetricSources,
    metrics: Instruments,
    { known, named }: { known: KnownTokens; named: Named },
  ) {
    this.#sources = sources;
    this.#metrics = metrics;
    this.#showTransfers = (shown, answer) => showTransfers(shown, answer, { known, named });
  }

  /** Brings the gauges up to date, unless that began less than 2 s ago. Never rejects. */
  async refresh(): Promise<void> {
    const nowMs = performance.now();
    if (this.#last === null || nowMs - this.#last.startedMs >= EVERY_MS) {
      this.#last = { startedMs: nowMs, done: this.#readAll() };
    }
    await this.#last.done;
  }

  #readAll(): Promise<unknown> {
    const sources = this.#sources;
    return Promise.all([
      this.#read({ source: 'transfers', ask: async () => sources.transfers(), show: this.#showTransfers }),
      this.#read({ source: 'subjects', ask: async () => sources.subjects(), show: showSubjects }),
      this.#read({ source: 'queues', ask: async () => sources.queues(), show: showQueues }),
      this.#read({ source: 'deliveries', ask: async () => sources.deliveries(), show: showDeliveries }),
      this.#read({ source: 'receivers', ask: async () => sources.receivers(), show: showReceivers }),
      this.#read({ source: 'suspensions', ask: async () => sources.suspensions(), show: showSuspensions }),
      this.#read({
        source: 'endpointGroups',
        ask: async () => sources.endpointGroups(),
        show: showEndpointGroups,
      }),
      this.#read({ source: 'routes', ask: async () => sources.routes(), show: showRoutes }),
      this.#read({ source: 'learned', ask: async () => sources.learned(), show: showLearned }),
      this.#read({ source: 'checks', ask: async () => sources.checks(), show: showChecks }),
      this.#read({ source: 'waits', ask: async () => sources.waits(), show: showWaits }),
      this.#read({ source: 'sweeps', ask: async () => sources.sweeps(), show: showSweeps }),
    ]);
  }

  async #read<T>({ source, ask, show }: Read<T>): Promise<void> {
    const value = await this.#answer(source, ask);
    if (value === null) this.#metrics.count('scrapeErrors', { source });
    show(this.#metrics, value);
  }

  /** What a source says; null when it fails, takes too long, or still owes the answer of an earlier question. */
  async #answer<T>(source: keyof MetricSources, ask: () => Promise<T>): Promise<T | null> {
    if (this.#asking.has(source)) return null;
    this.#asking.add(source);
    try {
      return await withTimeout(
        ask().finally(() => this.#asking.delete(source)),
        TIMEOUT_MS,
      );
    } catch {
      return null;
    }
  }
}
