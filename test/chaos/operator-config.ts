import { stringify } from 'yaml';
import { integer, pick, type Random } from '../../src/sandbox/world/random.ts';

/** What stays the same in every config of a run: everything but the subscriptions. */
export type Frame = Record<string, unknown>;

/**
 * The subscriptions as an operator edits them: a name has wallets, and wallets that stand under no name are out. Every
 * subscription has all receivers, so that whatever is told of a wallet is told to each of them.
 */
export class OperatorConfig {
  readonly #frame: Frame;
  readonly #receivers: readonly string[];
  readonly #wallets: readonly string[];
  #named = new Map<string, string[]>();
  #made = 0;

  constructor(parts: { frame: Frame; receivers: readonly string[]; wallets: readonly string[] }) {
    this.#frame = parts.frame;
    this.#receivers = parts.receivers;
    this.#wallets = parts.wallets;
    const half = Math.ceil(parts.wallets.length / 2);
    this.#named.set(this.#newName(), parts.wallets.slice(0, half));
    this.#named.set(this.#newName(), parts.wallets.slice(half));
  }

  #newName(): string {
    this.#made += 1;
    return `desk-${this.#made}`;
  }

  /** The wallets that stand under no name. */
  get out(): string[] {
    const named = new Set([...this.#named.values()].flat());
    return this.#wallets.filter((wallet) => !named.has(wallet));
  }

  /** The file as it is to be. */
  get text(): string {
    const subscriptions = [...this.#named]
      .filter(([, wallets]) => wallets.length > 0)
      .map(([name, wallets]) => ({ name, wallets, receivers: this.#receivers }));
    return stringify({ ...this.#frame, subscriptions });
  }

  /** Another file than this with all but a few wallets gone, as a slip makes it. */
  get truncated(): string {
    const [name, wallets] = [...this.#named].find(([, some]) => some.length > 0) ?? ['desk-0', this.#wallets];
    const subscriptions = [{ name, wallets: wallets.slice(0, 1), receivers: this.#receivers }];
    return stringify({ ...this.#frame, subscriptions });
  }

  rename(random: Random): void {
    const old = pick(random, [...this.#named.keys()]);
    const renamed = this.#newName();
    this.#named = new Map(
      [...this.#named].map(([name, wallets]) => [name === old ? renamed : name, wallets]),
    );
  }

  /** Moves a wallet to another subscription, sometimes to one that has just been made. */
  move(random: Random): void {
    const wallet = pick(random, this.#wallets);
    this.#leave(wallet);
    const target = integer(random, 3) === 0 ? this.#newName() : pick(random, [...this.#named.keys()]);
    this.#named.set(target, [...(this.#named.get(target) ?? []), wallet]);
  }

  /** Takes a wallet out: fewer than a reload has confirmed. */
  takeOut(random: Random): void {
    this.#leave(pick(random, this.#wallets));
  }

  /** Puts everything back that is out, under any name. */
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
