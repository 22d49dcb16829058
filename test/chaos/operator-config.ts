import { getAddress } from 'viem';
import { stringify } from 'yaml';
import { chance, integer, pick, type Random } from '../../sandbox/world/random.ts';

/** The part of every config of a run that the operator does not edit. */
export type Frame = Record<string, unknown>;

/** Spellings of an EVM address in the file; the wallet is the same. */
const SPELLINGS = [
  (wallet: string) => wallet.toLowerCase(),
  (wallet: string) => `0x${wallet.slice(2).toUpperCase()}`,
  (wallet: string) => getAddress(wallet),
];

/**
 * The file as an operator edits it. A subscription has wallets; wallets under no name are out. Every subscription has all
 * receivers, so that each event of a wallet goes to each of them.
 */
export class OperatorConfig {
  readonly #frame: Frame;
  readonly #receivers: readonly string[];
  readonly #wallets: readonly string[];
  #named = new Map<string, string[]>();
  #made = 0;
  readonly #spelled = new Map<string, string>();
  readonly #endpoints: Readonly<Record<string, object>>;
  readonly #checked = new Set<string>();
  isManual = false;

  /** `endpoints`: the file's endpoints of a chain, by its id, once its payments are checked. */
  constructor(options: {
    frame: Frame;
    receivers: readonly string[];
    wallets: readonly string[];
    endpoints: Readonly<Record<string, object>>;
  }) {
    this.#endpoints = options.endpoints;
    this.#frame = options.frame;
    this.#receivers = options.receivers;
    this.#wallets = options.wallets;
    const half = Math.ceil(options.wallets.length / 2);
    this.#named.set(this.#newName(), options.wallets.slice(0, half));
    this.#named.set(this.#newName(), options.wallets.slice(half));
  }

  #newName(): string {
    this.#made += 1;
    return `desk-${this.#made}`;
  }

  get out(): string[] {
    const named = new Set([...this.#named.values()].flat());
    return this.#wallets.filter((wallet) => !named.has(wallet));
  }

  get text(): string {
    return this.#write([...this.#named]);
  }

  /** The same file without all but a few wallets, as after a slip. */
  get truncated(): string {
    const [name, wallets] = [...this.#named].find(([, some]) => some.length > 0) ?? ['desk-0', this.#wallets];
    return this.#write([[name, wallets.slice(0, 1)]]);
  }

  /** The file of another machine: with a port of its own, without one of the wallets. */
  another(random: Random): string {
    const without = pick(random, this.#wallets);
    const left = [...this.#named].map(([name, wallets]): [string, string[]] => [
      name,
      wallets.filter((wallet) => wallet !== without),
    ]);
    return this.#write(left, { server: { host: '127.0.0.1', port: 0 } });
  }

  #write(named: readonly [string, readonly string[]][], more: Frame = {}): string {
    const subscriptions = named
      .filter(([, wallets]) => wallets.length > 0)
      .map(([name, wallets]) => ({
        name,
        wallets: wallets.map((wallet) => this.#spelled.get(wallet) ?? wallet),
        receivers: this.#receivers,
      }));
    const chains = Object.fromEntries([...this.#checked].map((id) => [id, this.#endpoints[id]]));
    const reload = { mode: this.isManual ? 'manual' : 'watch' };
    return stringify({ ...this.#frame, reload, chains, subscriptions, ...more });
  }

  respell(random: Random): void {
    for (const wallet of this.#wallets) {
      if (!/^0x[0-9a-f]{40}$/i.test(wallet) || chance(random, 0.5)) continue;
      this.#spelled.set(wallet, pick(random, SPELLINGS)(wallet));
    }
  }

  /** Adds the endpoints of a chain: from then on its payments are checked. */
  addEndpoints(random: Random): void {
    this.#checked.add(pick(random, Object.keys(this.#endpoints)));
  }

  rename(random: Random): void {
    const old = pick(random, [...this.#named.keys()]);
    const renamed = this.#newName();
    this.#named = new Map(
      [...this.#named].map(([name, wallets]) => [name === old ? renamed : name, wallets]),
    );
  }

  /** Moves a wallet to another subscription, sometimes to a new one. */
  move(random: Random): void {
    const wallet = pick(random, this.#wallets);
    this.#leave(wallet);
    const target = integer(random, 3) === 0 ? this.#newName() : pick(random, [...this.#named.keys()]);
    this.#named.set(target, [...(this.#named.get(target) ?? []), wallet]);
  }

  /** Takes out fewer wallets than a reload has to confirm. */
  takeOut(random: Random): void {
    this.#leave(pick(random, this.#wallets));
  }

  /** Puts all wallets that are out back, under any name. */
  putBack(random: Random): void {
    for (const wallet of this.out) {
      const target = pick(random, [...this.#named.keys()]);
      this.#named.set(target, [...(this.#named.get(target) ?? []), wallet]);
    }
  }

  #leave(wallet: string): void {
    this.#named = new Map(
      [...this.#named].map(([name, wallets]) => [name, wallets.filter((one) => one !== wallet)]),
    );
  }
}
