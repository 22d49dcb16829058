import { stringify } from 'yaml';
import { chance, integer, pick, type Random } from '../../sandbox/world/random.ts';

/** An object of a config: a wallet, an intent, a transaction, a job of the gateway or a vault, by the id of its subject. */
export type Item = string;

/** A receiver that gets the events of an item, as `<receiver> <item>`. */
export type Pair = string;

/** A subscription of a file. */
export type Desk = { items: Item[]; receivers: string[] };

/** The demands of a config: its subscriptions by name, and its receivers. */
export type Wanted = { desks: ReadonlyMap<string, Desk>; receivers: ReadonlySet<string> };

/** Further settings of a file. `closeAfter` belongs to the books; `rpc`: payments of a chain are checked. */
export type Settings = { graceSpan: string; mode: 'watch' | 'manual'; closeAfter: string; rpc: boolean };

export const CHAIN = 8453;

/** No server listens there: payments wait to be checked. */
const ENDPOINTS = [
  { name: 'own', url: 'http://127.0.0.1:9/' },
  { name: 'other', url: 'http://localhost:9/' },
];

/** The file of one process, as an operator edits it. Items under no name are out. */
export class VirtualConfig {
  readonly #frame: Readonly<Record<string, unknown>>;
  readonly #hooks: Readonly<Record<string, object>>;
  readonly #items: readonly Item[];
  desks = new Map<string, Desk>();
  away = new Set<string>();
  settings: Settings;
  #made = 0;

  constructor(options: {
    frame: Readonly<Record<string, unknown>>;
    hooks: Readonly<Record<string, object>>;
    items: readonly Item[];
    settings: Settings;
  }) {
    this.#frame = options.frame;
    this.#hooks = options.hooks;
    this.#items = options.items;
    this.settings = { ...options.settings };
  }

  get receivers(): string[] {
    return Object.keys(this.#hooks).filter((name) => !this.away.has(name));
  }

  newName(): string {
    this.#made += 1;
    return `desk-${this.#made}`;
  }

  get out(): Item[] {
    const named = new Set([...this.desks.values()].flatMap(({ items }) => items));
    return this.#items.filter((item) => !named.has(item));
  }

  /** The subscriptions without the receivers that are away. */
  #present(): [string, Desk][] {
    return [...this.desks]
      .map(([name, { items, receivers }]): [string, Desk] => [
        name,
        { items: [...items], receivers: receivers.filter((one) => !this.away.has(one)) },
      ])
      .filter(([, { items, receivers }]) => items.length > 0 && receivers.length > 0);
  }

  get wants(): Wanted & { items: Set<Item> } {
    const desks = new Map(this.#present());
    return {
      desks,
      items: new Set([...desks.values()].flatMap(({ items }) => items)),
      receivers: new Set(this.receivers),
    };
  }

  /** The text of the file of a process with its data in `dataDir`. */
  text(random: Random, dataDir: string): string {
    const of = (items: readonly Item[], kind: string): string[] =>
      items
        .filter((item) => item.startsWith(kind))
        .map((item) => item.slice(kind.length))
        .map((id) => (!id.startsWith('0x') || chance(random, 0.5) ? id : `0x${id.slice(2).toUpperCase()}`));
    const { graceSpan, mode, rpc } = this.settings;
    return stringify({
      ...this.#frame,
      dataDir,
      reload: { mode },
      removal: { graceSpan },
      ...(rpc ? { chains: { [CHAIN]: { rpc: ENDPOINTS } } } : {}),
      receivers: Object.entries(this.#hooks)
        .filter(([name]) => !this.away.has(name))
        .map(([name, hook]) => ({ name, ...hook })),
      subscriptions: this.#present().map(([name, { items, receivers }]) => ({
        name,
        wallets: of(items, 'wallet:'),
        intents: of(items, 'intent:'),
        sourceTxs: of(items, 'by-tx:source:'),
        gaslessJobs: of(items, 'gasless:gateway:').map((id) => ({ id, endpoint: 'gateway' })),
        vaults: of(items, `vault:${CHAIN}:`).map((address) => ({ address, chainId: CHAIN })),
        receivers,
      })),
    });
  }

  copy(): VirtualConfig {
    const copy = new VirtualConfig({
      frame: this.#frame,
      hooks: this.#hooks,
      items: this.#items,
      settings: this.settings,
    });
    copy.desks = new Map(
      [...this.desks].map(([name, { items, receivers }]) => [
        name,
        { items: [...items], receivers: [...receivers] },
      ]),
    );
    copy.away = new Set(this.away);
    copy.#made = this.#made;
    return copy;
  }

  /** Puts some items under a name, for some receivers where the name is new. */
  put(items: readonly Item[], random: Random): void {
    for (const item of items) {
      const names = [...this.desks.keys()];
      if (names.length > 0 && !chance(random, 0.3)) this.desks.get(pick(random, names))?.items.push(item);
      else this.desks.set(this.newName(), { items: [item], receivers: this.#some(random) });
    }
  }

  #some(random: Random): string[] {
    const all = Object.keys(this.#hooks).filter((name) => name !== OPERATOR);
    const some = all.filter(() => chance(random, 0.6));
    return some.length > 0 ? some : [pick(random, all)];
  }

  rename(random: Random): void {
    const names = [...this.desks.keys()];
    if (names.length === 0) return;
    const old = pick(random, names);
    const renamed = this.newName();
    this.desks = new Map([...this.desks].map(([name, desk]) => [name === old ? renamed : name, desk]));
  }

  /** Moves an item to another name, which may have other receivers. */
  move(random: Random): void {
    const item = pick(random, this.#items);
    if (this.out.includes(item)) return;
    this.leave([item]);
    this.put([item], random);
  }

  /** Moves all items but one of each name to a new one with its receivers, and gives the old name others. */
  split(random: Random): void {
    for (const desk of [...this.desks.values()]) {
      const [stays, ...moved] = desk.items;
      if (stays === undefined || moved.length === 0) continue;
      this.desks.set(this.newName(), { items: moved, receivers: desk.receivers });
      desk.items = [stays];
      desk.receivers = this.#some(random);
    }
  }

  reassign(random: Random): void {
    const names = [...this.desks.keys()];
    if (names.length === 0) return;
    const desk = this.desks.get(pick(random, names));
    if (desk !== undefined) desk.receivers = this.#some(random);
  }

  leave(items: readonly Item[]): void {
    for (const desk of this.desks.values()) desk.items = desk.items.filter((item) => !items.includes(item));
    for (const [name, { items: left }] of this.desks) if (left.length === 0) this.desks.delete(name);
  }

  takeOut(random: Random): void {
    const within = this.#items.filter((item) => !this.out.includes(item));
    if (within.length > 0) this.leave([pick(random, within)]);
  }

  turnReceiver(random: Random): void {
    const all = Object.keys(this.#hooks).filter((name) => name !== OPERATOR);
    if (this.away.size > 0) this.away.clear();
    else this.away.add(pick(random, all));
  }

  /** Leaves all but a few items out, as a truncated file does. */
  truncate(random: Random): void {
    const within = this.#items.filter((item) => !this.out.includes(item));
    const remaining =
      integer(random, 2) === 0 ? within.slice(0, 1) : within.slice(0, Math.ceil(within.length / 3));
    this.leave(within.filter((item) => !remaining.includes(item)));
  }
}

export const OPERATOR = 'operator';
