import { expect, inject } from 'vitest';
import { z } from 'zod';
import type { JsonObject } from '../../src/domain/json.ts';
import { type TestConfig, testPrefix } from './daemon.ts';
import { eventually } from './eventually.ts';
import { Hook } from './hook.ts';
import type { opening } from './opening.ts';
import { type Reloadable, reloadable } from './reloadable.ts';
import { hashOf, intentRecord, ScriptedUpstream } from './scripted-upstream.ts';

export const WALLET = '0x52908400098527886e0f7030069857d2e4169ee7';
export const OTHER = '0x8617e340b3d01fa5f11f306f4090fd50e238070d';
export const [ONE, TWO, THREE] = [hashOf(1), hashOf(2), hashOf(3)];

class Wallets {
  readonly #transfers = new Map<string, { wallet: string; status: string; updatedAt: number }>();
  #updatedAt = 0;
  isAway = false;
  readonly server = new ScriptedUpstream(({ query }) => {
    if (this.isAway) return { status: 503, body: '' };
    const wallet = query.wallet?.toLowerCase();
    const shown = [...this.#transfers].filter(([hash, one]) =>
      wallet === undefined ? hash === query.intentHash : wallet === one.wallet,
    );
    const records = shown.map(
      ([hash, { status, updatedAt }]): JsonObject => intentRecord(hash, status, updatedAt),
    );
    const isFound = records.length > 0 || wallet !== undefined;
    return { records: isFound ? records : [intentRecord(query.intentHash ?? '', 'unknown', null)] };
  });

  set(hash: string, status: string, wallet = WALLET): void {
    this.#updatedAt = Math.floor(Date.now() / 1_000);
    this.#transfers.set(hash, { wallet, status, updatedAt: this.#updatedAt });
  }

  /** Resolves when the newest change is history for a subscription made from then on: the upstream reports whole seconds. */
  async past(): Promise<void> {
    await eventually('a later second', () => Date.now() / 1_000 > this.#updatedAt + 2.5);
  }
}

export const TREASURY = {
  name: 'treasury',
  receivers: ['backend'],
  wallets: [WALLET],
  metadata: { desk: 'one' },
};
export const REST = { name: 'rest', receivers: ['desk'], wallets: [OTHER] };

/**
 * A daemon whose subscription `treasury` leaves the config and returns. `desk` also gets the operator's events. The receiver
 * `audit` is only in the configs that name it.
 */
export async function suspensionStage({ later, started }: ReturnType<typeof opening>) {
  const upstream = new Wallets();
  await started(upstream.server);
  const [backend, desk] = [await started(new Hook()), await started(new Hook())];
  const audit = await started(new Hook());
  const prefix = testPrefix();
  const configOf = (subscriptions: object[], more: object = {}, names = ['backend', 'desk']): TestConfig => ({
    baseUrl: upstream.server.url,
    redisUrl: inject('redisUrl'),
    prefix,
    receivers: Object.fromEntries(
      [
        ['backend', { url: backend.url, more: { concurrency: 1 } }] as const,
        ['desk', { url: desk.url, more: { events: ['*', 'intentwatch.*'] } }] as const,
        ['audit', { url: audit.url }] as const,
      ].filter(([name]) => names.includes(name)),
    ),
    subscriptions,
    more: { polling: { longestWait: '1s' }, ...more },
  });
  let running: Reloadable = await reloadable(configOf([TREASURY]), { later });
  const lines: Reloadable['lines'] = [];
  const all = () => [...lines, ...running.lines];
  return {
    upstream,
    backend,
    desk,
    audit,
    url: () => running.daemon.url,
    reload: async (subscriptions: object[], more?: object, names?: string[]): Promise<void> => {
      await running.write(configOf(subscriptions, more, names));
      expect(await running.daemon.reload()).toMatchObject({ ok: true });
    },
    restart: async (): Promise<void> => {
      await running.daemon.close();
      lines.push(...running.lines);
      running = await reloadable(configOf([]), { later, file: running.file });
    },
    /** Sets the state of a transfer; returns once its event is stored. */
    change: async (hash: string, status: string, wallet?: string): Promise<void> => {
      const isStored = () =>
        all().some(
          ({ msg, ...line }) =>
            msg === 'event.committed' && line.subject === `intent:${hash}` && line.status === status,
        );
      upstream.set(hash, status, wallet);
      await eventually(`${status} is stored`, isStored);
    },
  };
}

/** Requests a route of the API. */
export const request = async (url: string): Promise<JsonObject> =>
  z.record(z.string(), z.json()).parse(await (await fetch(url)).json());

export const shown = (hook: Hook, from = 0) =>
  hook.came.slice(from).map(({ event: { type, data } }) => [type, data.subject.id, data.suspended ?? false]);

export const eventOf = (hook: Hook, type: string) =>
  hook.came.find(({ event }) => event.type === type)?.event;
