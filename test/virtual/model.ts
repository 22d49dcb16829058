import type { Item, Pair, Wanted } from './virtual-config.ts';
import type { State, Transfer } from './virtual-upstream.ts';

/**
 * The time that a pair of a receiver and an item was in the config (`in`), or suspended (`out`). What changed from `startMs` on it
 * must get, what changed before `earliestMs` it must not. `isUnclear`: what is shown then may reach it or not, as where the
 * span was over and nobody ran to end it.
 */
export type Standing = {
  state: 'in' | 'out';
  fromMs: number;
  untilMs: number;
  startMs: number;
  earliestMs: number;
  isUnclear: boolean;
  /** Redis went back to where it was in the config: it may be suspended from then on. */
  isFound?: boolean;
};

/** The pairs at a time, as a dump of Redis has them. */
export type Dump = { atMs: number; pairs: ReadonlyMap<Pair, Standing> };

/** The `retention` of the configs, which is the default. */
export const RETENTION_MS = 30 * 24 * 3_600_000;

/** Until when a suspension is made by which a restore is undone. */
const FOUND_MS = 3_600_000;

/** The longest that a time is not confirmed after a stop or a jump. */
const CONFIRMED_MS = 24 * 3_600_000;

const NEVER = Number.POSITIVE_INFINITY;

/** What the configs of a life give to whom, by the documents alone: nothing here asks the program. */
export class PairModel {
  readonly #now = new Map<Pair, Standing>();
  readonly #all = new Map<Pair, Standing[]>();
  /** Pairs whose receiver is away, with the subscriptions that still name their item. */
  readonly #paused = new Map<Pair, string[]>();
  readonly #away: { receiver: string; fromMs: number; untilMs: number }[] = [];
  readonly #awaySinceMs = new Map<string, number>();
  #wanted: Wanted = { desks: new Map(), receivers: new Set() };
  /** When Redis was put back, to which time, and whether nobody ran who knew what was lost. */
  readonly restores: { fromMs: number; atMs: number; isUnwatched: boolean }[] = [];
  /** The time that what leaves is suspended, by the newest config. */
  #graceMs = 0;

  /** A config becomes the newest. `earliestMs`: a process that died may have begun with it then. */
  apply(
    wanted: Wanted,
    { atMs, graceMs, earliestMs = atMs }: { atMs: number; graceMs: number; earliestMs?: number },
  ): void {
    this.pass(atMs);
    const before = this.#wanted;
    this.#wanted = wanted;
    const pairs = pairsOf(wanted);
    const named = new Set([...this.#now.keys()].map(itemOf));
    this.#noteAway(before, atMs);
    for (const pair of pairs) this.#enter(pair, { atMs, earliestMs, isKnown: named.has(itemOf(pair)) });
    for (const [pair, { state, startMs, earliestMs: earliest }] of [...this.#now]) {
      if (pairs.has(pair) || state === 'out') continue;
      const [receiver, item] = [receiverOf(pair), itemOf(pair)];
      const roots = this.#paused.get(pair) ?? rootsOf(before, receiver, item);
      const staying = roots.filter((desk) => wanted.desks.get(desk)?.items.includes(item) === true);
      const isAway = !wanted.receivers.has(receiver);
      // A receiver that is away goes on where it stood; one that a subscription gives up is done with it.
      if (isAway && staying.length > 0) {
        if (!this.#paused.has(pair))
          this.#set(pair, { state: 'in', startMs, earliestMs: earliest, isUnclear: true }, atMs);
        this.#paused.set(pair, staying);
      } else {
        const isPaused = this.#paused.delete(pair);
        if (graceMs > 0 && staying.length < roots.length && !isPaused)
          this.#set(pair, { state: 'out', startMs, earliestMs: earliest, isUnclear: false }, atMs);
        else this.#end(pair, atMs);
      }
    }
    this.#graceMs = graceMs;
  }

  /** A receiver that comes back gets what happened meanwhile by the subscriptions that it has now. */
  #noteAway(before: Wanted, atMs: number): void {
    const { receivers } = this.#wanted;
    for (const name of before.receivers) if (!receivers.has(name)) this.#awaySinceMs.set(name, atMs);
    for (const [name, fromMs] of this.#awaySinceMs) {
      if (!receivers.has(name)) continue;
      this.#awaySinceMs.delete(name);
      this.#away.push({ receiver: name, fromMs, untilMs: atMs });
    }
  }

  #note(pair: Pair, standing: Standing): void {
    const all = this.#all.get(pair) ?? [];
    all.push(standing);
    this.#all.set(pair, all);
  }

  /** A pair stands in the newest config. `isKnown`: somebody has its item already. */
  #enter(
    pair: Pair,
    { atMs, earliestMs, isKnown }: { atMs: number; earliestMs: number; isKnown: boolean },
  ): void {
    const before = this.#now.get(pair);
    const [receiver, item] = [receiverOf(pair), itemOf(pair)];
    const paused = this.#paused.get(pair);
    this.#paused.delete(pair);
    const goesOn =
      paused === undefined || paused.some((desk) => rootsOf(this.#wanted, receiver, item).includes(desk));
    if (before?.state === 'in' && goesOn) {
      // It has stood there all the time, and gets what happened meanwhile.
      if (paused !== undefined) before.isUnclear = false;
      return;
    }
    if (before === undefined || !goesOn) {
      // Whoever joins what others had gets what is found from now on, also where it is older.
      this.#set(
        pair,
        { state: 'in', startMs: atMs, earliestMs: isKnown ? 0 : earliestMs, isUnclear: false },
        atMs,
      );
      return;
    }
    const { isUnclear, startMs, earliestMs: earliest } = before;
    this.#set(
      pair,
      { state: 'in', startMs: isUnclear ? atMs : startMs, earliestMs: earliest, isUnclear: false },
      atMs,
    );
  }

  /** What is in the config now may have been so from an earlier time on: a process died while it began with it. */
  begunAt(atMs: number): void {
    for (const standing of this.#now.values())
      standing.earliestMs = Math.min(standing.earliestMs, Math.max(atMs, 0));
  }

  /** What is suspended for longer than its span ends; until a process notices, it is unclear. */
  pass(atMs: number): void {
    for (const [pair, { state, fromMs, startMs, earliestMs, isUnclear }] of [...this.#now]) {
      const endMs = fromMs + this.#graceMs;
      if (state === 'out' && !isUnclear && endMs <= atMs)
        this.#set(pair, { state, startMs, earliestMs, isUnclear: true }, endMs);
    }
  }

  /**
   * Everything that was suspended for longer than its span has ended: processes have run since. What a clock says after a stop or
   * a jump (`disturbedMs`) counts once responses agree with it, or after a day.
   */
  settle(atMs: number, disturbedMs: number): void {
    this.pass(atMs);
    for (const [pair, { state, fromMs, isUnclear, isFound }] of [...this.#now]) {
      const endMs = isFound === true ? fromMs + this.#graceMs + FOUND_MS : fromMs;
      if (state === 'out' && isUnclear && Math.max(endMs, disturbedMs + CONFIRMED_MS) <= atMs)
        this.#end(pair, atMs);
    }
  }

  /** The items that are suspended for somebody, and have not ended for anybody. */
  get suspended(): Item[] {
    const out = [...this.#now].filter(([, { state }]) => state === 'out');
    const unclear = new Set(out.flatMap(([pair, { isUnclear }]) => (isUnclear ? [itemOf(pair)] : [])));
    return [...new Set(out.map(([pair]) => itemOf(pair)))].filter((item) => !unclear.has(item));
  }

  /** An operator ends what is suspended of an item. */
  remove(item: Item, atMs: number): void {
    for (const [pair, { state }] of [...this.#now])
      if (state === 'out' && itemOf(pair) === item) this.#end(pair, atMs);
  }

  dump(atMs: number): Dump {
    return { atMs, pairs: new Map([...this.#now].map(([pair, standing]) => [pair, { ...standing }])) };
  }

  /**
   * Redis was put back. The newest config holds on; what it does not name, and the dump does, is suspended anew or ended, and
   * which of them the program has to find out.
   */
  restore(dump: Dump, atMs: number, { isUnwatched }: { isUnwatched: boolean }): void {
    this.restores.push({ fromMs: dump.atMs, atMs, isUnwatched });
    for (const [pair, before] of [...this.#now]) {
      const { state, startMs, earliestMs } = before;
      const isFound = state === 'out';
      const isUnclear = isFound || before.isUnclear;
      this.#set(
        pair,
        { state, startMs, earliestMs: Math.min(earliestMs, dump.atMs), isUnclear, isFound },
        atMs,
      );
    }
    for (const [pair, { startMs, earliestMs }] of dump.pairs) {
      if (!this.#now.has(pair))
        this.#set(pair, { state: 'out', startMs, earliestMs, isUnclear: true, isFound: true }, atMs);
    }
  }

  #set(pair: Pair, standing: Omit<Standing, 'fromMs' | 'untilMs'>, atMs: number): void {
    this.#end(pair, atMs);
    const next = { ...standing, fromMs: atMs, untilMs: NEVER };
    this.#now.set(pair, next);
    this.#note(pair, next);
  }

  #end(pair: Pair, atMs: number): void {
    const before = this.#now.get(pair);
    if (before !== undefined) before.untilMs = atMs;
    this.#now.delete(pair);
  }

  /** How a receiver stood to the items of a transfer at a time; at its end, too, where `atEnd` says so. */
  standings(receiver: string, transfer: Transfer, atMs: number, { atEnd = false } = {}): Standing[] {
    return itemsOf(transfer).flatMap((item) =>
      (this.#all.get(`${receiver} ${item}`) ?? []).filter(
        ({ fromMs, untilMs }) => fromMs <= atMs && (atMs < untilMs || (atEnd && atMs === untilMs)),
      ),
    );
  }

  /** True when a receiver was given up, and not suspended, at the end of a standing. */
  isGivenUp(receiver: string, transfer: Transfer, { state, untilMs }: Standing): boolean {
    return state === 'in' && this.standings(receiver, transfer, untilMs).length === 0;
  }

  /** True when a receiver was out of the config at some time of a span, and has come back. */
  wasAway(receiver: string, { fromMs, untilMs }: { fromMs: number; untilMs: number }): boolean {
    return this.#away.some(
      (away) => away.receiver === receiver && away.fromMs <= untilMs && fromMs < away.untilMs,
    );
  }

  /** All that a receiver ever was to the items of a transfer. */
  history(receiver: string, transfer: Transfer): Standing[] {
    return itemsOf(transfer).flatMap((item) => this.#all.get(`${receiver} ${item}`) ?? []);
  }
}

function pairsOf({ desks }: Wanted): Set<Pair> {
  return new Set(
    [...desks.values()].flatMap(({ items, receivers }) =>
      receivers.flatMap((receiver) => items.map((item) => `${receiver} ${item}`)),
    ),
  );
}

/** The subscriptions that lead from an item to a receiver. */
function rootsOf({ desks }: Wanted, receiver: string, item: Item): string[] {
  return [...desks].flatMap(([name, { items, receivers }]) =>
    receivers.includes(receiver) && items.includes(item) ? [name] : [],
  );
}

function receiverOf(pair: Pair): string {
  return pair.slice(0, pair.indexOf(' '));
}

function itemOf(pair: Pair): Item {
  return pair.slice(pair.indexOf(' ') + 1);
}

/** The items by which a transfer is found. */
function itemsOf({ subject, wallet, tx }: Transfer): Item[] {
  return [
    ...(wallet === null ? [] : [`wallet:${wallet}`]),
    ...(tx === null ? [] : [`by-tx:source:${tx}`]),
    ...(wallet === null && tx === null ? [subject] : []),
  ];
}

/** Names a state of a transfer. */
export function stateKey(
  { subject }: Pick<Transfer, 'subject'>,
  { status, updatedAt }: Pick<State, 'status' | 'updatedAt'>,
): string {
  return `${subject} ${status} ${updatedAt}`;
}
