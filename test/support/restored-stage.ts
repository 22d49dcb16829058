import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { configYaml, testPrefix } from './daemon.ts';
import { Hook } from './hook.ts';
import type { Program } from './program.ts';
import { intentRecord, ScriptedUpstream } from './scripted-upstream.ts';
import { Stage } from './stage.ts';

type OnTestFinished = (cleanUp: () => Promise<void>) => unknown;

class MovedUpstream {
  readonly #transfers = new Map<string, { wallet: string; status: string; updatedAt: number | null }>();
  readonly server = new ScriptedUpstream(({ query: { wallet, intentHash } }) => {
    const shown = [...this.#transfers].filter(([hash, one]) =>
      wallet === undefined ? hash === intentHash : one.wallet === wallet.toLowerCase(),
    );
    const records = shown.map(([hash, { status, updatedAt }]) => intentRecord(hash, status, updatedAt));
    const unknown = intentHash === undefined ? [] : [intentRecord(intentHash, 'unknown', null)];
    const date = new Date().toUTCString();
    const results = records.length > 0 ? records : unknown;
    return { status: 200, body: JSON.stringify({ results, nextCursor: null }), headers: { date } };
  });

  set(wallet: string, hash: string, status: string): void {
    const before = this.#transfers.get(hash)?.updatedAt ?? 0;
    const updatedAt = Math.max(Math.floor(Date.now() / 1_000), before + 1);
    this.#transfers.set(hash, { wallet, status, updatedAt });
  }

  /** Moves a transfer whose records have no time. */
  setTimeless(hash: string, status: string): void {
    this.#transfers.set(hash, { wallet: '', status, updatedAt: null });
  }
}

/** The subjects that a config of these tests watches. */
export type Watched = { wallets?: string[]; intents?: string[] };

/** A shipped daemon with one receiver and one for the operator, and all that it needs. */
export class RestoredStage {
  readonly upstream = new MovedUpstream();
  readonly backend = new Hook();
  readonly operator = new Hook();
  readonly prefix = testPrefix();
  readonly #stage: Stage;
  readonly #redisUrl: string | null;
  readonly #folders: string[] = [];

  private constructor(stage: Stage, redisUrl: string | null) {
    this.#stage = stage;
    this.#redisUrl = redisUrl;
  }

  /** Without a `redisUrl`, each daemon has its embedded Redis. */
  static async of(onTestFinished: OnTestFinished, redisUrl: string | null): Promise<RestoredStage> {
    const one = new RestoredStage(new Stage(onTestFinished), redisUrl);
    for (const part of [one.upstream.server, one.backend, one.operator]) {
      await part.start();
      onTestFinished(() => part.close());
    }
    return one;
  }

  async #folder(process: number): Promise<string> {
    this.#folders[process] ??= await this.#stage.folder();
    return this.#folders[process];
  }

  async dataDir(process = 0): Promise<string> {
    return join(await this.#folder(process), 'data');
  }

  async write({ wallets, intents }: Watched, process = 0): Promise<string> {
    const file = join(await this.#folder(process), 'intentwatch.yaml');
    const yaml = configYaml({
      baseUrl: this.upstream.server.url,
      redisUrl: this.#redisUrl ?? '',
      prefix: this.prefix,
      receivers: {
        backend: { url: this.backend.url },
        operator: { url: this.operator.url, more: { events: ['intentwatch.*'] } },
      },
      subscriptions: [
        {
          name: 'all',
          receivers: ['backend', 'operator'],
          ...(wallets === undefined ? {} : { wallets }),
          ...(intents === undefined ? {} : { intents }),
        },
      ],
      more: { dataDir: await this.dataDir(process), ...(this.#redisUrl === null ? { redis: {} } : {}) },
    });
    await writeFile(`${file}.new`, yaml);
    await rename(`${file}.new`, file);
    return file;
  }

  async daemon(process = 0): Promise<Program> {
    return this.#stage.daemon(join(await this.#folder(process), 'intentwatch.yaml'));
  }

  async came(hash: string, status: string): Promise<RenderedEvent[]> {
    const of = (): RenderedEvent[] =>
      this.backend.came.flatMap(({ event }) => (event.data.subject.id === `intent:${hash}` ? [event] : []));
    await this.backend.until(() => of().some(({ data }) => data.status === status));
    return of();
  }

  async reports(type: string, count = 1): Promise<RenderedEvent[]> {
    const of = (): RenderedEvent[] =>
      this.operator.came.flatMap(({ event }) => (event.type === type ? [event] : []));
    const ids = (): number => new Set(of().map(({ id }) => id)).size;
    await this.operator.until(() => ids() >= count);
    return of();
  }

  get events(): RenderedEvent[] {
    return this.backend.came.map(({ event }) => event);
  }
}

/** The ids of the events of each state of a subject. */
export function idsByState(events: readonly RenderedEvent[]): Record<string, string[]> {
  const states = Map.groupBy(events, ({ type, data }) => `${data.subject.id} ${type}`);
  return Object.fromEntries(
    [...states].map(([state, some]) => [state, [...new Set(some.map(({ id }) => id))]]),
  );
}

/** True when no two different events share a subject, an epoch and a sequence. */
export function placesAreUnique(events: readonly RenderedEvent[]): boolean {
  const places = new Map<string, string>();
  return events.every(({ id, data: { subject, epoch, sequence } }) => {
    const place = `${subject.id} ${epoch} ${sequence}`;
    const isUnique = (places.get(place) ?? id) === id;
    places.set(place, id);
    return isUnique;
  });
}
