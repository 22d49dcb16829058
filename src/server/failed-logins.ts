const WINDOW_MS = 60_000;

/** The wait doubles with every failure of an address, from the first to the last of these. */
const FIRST_MS = 100;
const LONGEST_MS = 5_000;

/** From this many failures of all addresses within the window, each waits the longest. */
const MOST_UNHURRIED = 100;

/** How many wrong logins wait for their answer at once; those beyond are answered at once, and their connection ended. */
const MOST_WAITING = 50;

/** How many addresses are remembered; the one that failed longest ago is forgotten first. */
const MOST_ADDRESSES = 1_000;

/**
 * Slows the answers to failed logins, by address and over all of them. It has no say in a login that succeeds, which is
 * never delayed, so nobody locks another out.
 */
export class FailedLogins {
  readonly #byAddress = new Map<string, { count: number; untilMs: number }>();
  #all = { count: 0, untilMs: 0 };
  #waiting = 0;

  /** Notes a failed login and waits as long as its answer has to; `false` when too many wait, and this one did not. */
  async wait(address: string, nowMs: number): Promise<boolean> {
    const delayMs = this.#note(address, nowMs);
    if (this.#waiting >= MOST_WAITING) return false;
    this.#waiting += 1;
    await new Promise((resolve) => setTimeout(resolve, delayMs).unref());
    this.#waiting -= 1;
    return true;
  }

  #note(address: string, nowMs: number): number {
    const known = this.#byAddress.get(address);
    const own = { count: known && known.untilMs > nowMs ? known.count + 1 : 1, untilMs: nowMs + WINDOW_MS };
    // Put in again, so that the order is that of the last failure.
    this.#byAddress.delete(address);
    this.#byAddress.set(address, own);
    const [oldest] = this.#byAddress.keys();
    if (this.#byAddress.size > MOST_ADDRESSES && oldest !== undefined) this.#byAddress.delete(oldest);
    if (this.#all.untilMs <= nowMs) this.#all = { count: 0, untilMs: nowMs + WINDOW_MS };
    this.#all.count += 1;
    if (this.#all.count > MOST_UNHURRIED) return LONGEST_MS;
    return Math.min(LONGEST_MS, FIRST_MS * 2 ** (own.count - 1));
  }
}
