import type { Item, Pair, Wanted } from './virtual-config.ts';
import type { State, Transfer } from './virtual-upstream.ts';

/**
 * The span during which a pair of a receiver and an item was in the config (`in`), or suspended (`out`). The receiver must get
 * changes from `startMs` on, and no change before `earliestMs`. `isUnclear`: a state shown in it may reach the receiver or not,
 * for example where the span was over and no process ran to end it.
 */
export type PairSpan = {
  state: 'in' | 'out';
  fromMs: number;
  untilMs: number;
  startMs: number;
  earliestMs: number;
  isUnclear: boolean;
  /** Redis went back to a time when it was in the config: it may be suspended from then on. */
  isFound?: boolean;
};

/** The pairs at a time, as a dump of Redis holds them. */
export type Dump = { atMs: number; pairs: ReadonlyMap<Pair, PairSpan> };

/** The `retention` of the configs, which is the default. */
export const RETENTION_MS = 30 * 24 * 3_600_000;

/** Time limit for the suspensions that undo a restore. */
const FOUND_MS = 3_600_000;

/** Longest time until the time is confirmed after a stop or a jump. */
const CONFIRMED_MS = 24 * 3_600_000;

const NEVER = Number.POSITIVE_INFINITY;

/** The assignment of items to receivers by the configs of a life, from the documents alone: nothing here calls the program. */
export class PairModel {
  readonly #now = new Map<Pair, PairSpan>();
  readonly #all = new Map<Pair, PairSpan[]>();
  /** Pairs whose receiver is away, with the subscriptions that still name their item. */
  readonly #paused = new Map<Pair, string[]>();
  readonly #away: { receiver: string; fromMs: number; untilMs: number }[] = [];
  readonly #awaySinceMs = new Map<string, number>();
  #wanted: Wanted = { desks: new Map(), receivers: new Set() };
  /** Times when Redis was put back, and to which time; `isUnwatched`: no running process knew the lost data. */
  readonly restores: { fromMs: number; atMs: number; isUnwatched: boolean }[] = [];
  /** Time of the copy that was put in place while no process ran, until one applies a config. */
  #copiedMs = NEVER;
  /** The time that a removed item is suspended, by the newest config. */
  #graceMs = 0;

  /**
   * Makes a config the newest. `earliest`: a process that died may have begun with it then. After a copy was put in place, a
   * pair that is missing may have been lost: it begins at the time of the copy.
   */
  apply(
    wanted: Wanted,
    { atMs, graceMs, earliest = atMs }: { atMs: number; graceMs: number; earliest?: number },
  ): void {
    this.pass(atMs);
    const earliestMs = Math.min(earliest, this.#copiedMs);
    this.#copiedMs = NEVER;
    const before = this.#wanted;
    this.#wanted = wanted;
    const pairs = pairsOf(wanted);
    const named = new Set([...this.#now.keys()].map(itemOf));
    this.#noteAway(before, atMs);
    for (const pair of pairs) this.#enter(pair, { atMs, earliestMs, hasItem: named.has(itemOf(pair)) });
    for (const [pair, { state, startMs, earliestMs: earliest }] of [...this.#now]) {
      if (pairs.has(pair) || state === 'out') continue;
      const [receiver, item] = [receiverOf(pair), itemOf(pair)];
      const desks = this.#paused.get(pair) ?? keysOf(before, receiver, item);
      const staying = desks.filter((desk) => wanted.desks.get(desk)?.items.includes(item) === true);
      const isAway = !wanted.receivers.has(receiver);
      // A receiver that is away resumes its position; one that a subscription gives up is done with it.
      if (isAway && staying.length > 0) {
        if (!this.#paused.has(pair))
          this.#set(pair, { state: 'in', startMs, earliestMs: earliest, isUnclear: true }, atMs);
        this.#paused.set(pair, staying);
      } else {
        const isPaused = this.#paused.delete(pair);
        if (graceMs > 0 && staying.length < desks.length && !isPaused)
          this.#set(pair, { state: 'out', startMs, earliestMs: earliest, isUnclear: false }, atMs);
        else this.#end(pair, atMs);
      }
    }
    this.#graceMs = graceMs;
  }

  /** A receiver that comes back gets the changes since then by its present subscriptions. */
  #noteAway(before: Wanted, atMs: number): void {
    const { receivers } = this.#wanted;
    for (const name of before.receivers) if (!receivers.has(name)) this.#awaySinceMs.set(name, atMs);
    for (const [name, fromMs] of this.#awaySinceMs) {
      if (!receivers.has(name)) continue;
      this.#awaySinceMs.delete(name);
      this.#away.push({ receiver: name, fromMs, untilMs: atMs });
    }
  }

  #note(pair: Pair, span: PairSpan): void {
    const all = this.#all.get(pair) ?? [];
    all.push(span);
    this.#all.set(pair, all);
  }

  /** A pair is in the newest config. `hasItem`: another receiver has its item already. */
  #enter(
    pair: Pair,
    { atMs, earliestMs, hasItem }: { atMs: number; earliestMs: number; hasItem: boolean },
  ): void {
    const before = this.#now.get(pair);
    const [receiver, item] = [receiverOf(pair), itemOf(pair)];
    const paused = this.#paused.get(pair);
    this.#paused.delete(pair);
    const goesOn =
      paused === undefined || paused.some((desk) => keysOf(this.#wanted, receiver, item).includes(desk));
    if (before?.state === 'in' && goesOn) {
      // It has been there all the time, and gets the changes since then.
      if (paused !== undefined) before.isUnclear = false;
      return;
    }
    if (before === undefined || !goesOn) {
      // A receiver that joins others gets the items found from now on, older ones included.
      this.#set(
        pair,
        { state: 'in', startMs: atMs, earliestMs: hasItem ? 0 : earliestMs, isUnclear: false },
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

  /** The pairs of the config may be in it since an earlier time: a process died while it began with it. */
  begunAt(atMs: number): void {
    for (const span of this.#now.values()) span.earliestMs = Math.min(span.earliestMs, Math.max(atMs, 0));
  }

  /** Ends the suspensions that are longer than their span; until a process notices, they are unclear. */
  pass(atMs: number): void {
    for (const [pair, { state, fromMs, startMs, earliestMs, isUnclear }] of [...this.#now]) {
      const endMs = fromMs + this.#graceMs;
      if (state === 'out' && !isUnclear && endMs <= atMs)
        this.#set(pair, { state, startMs, earliestMs, isUnclear: true }, endMs);
    }
  }

  /**
   * Ends all suspensions longer than their span: processes have run since. A clock after a stop or a jump (`disturbedMs`) counts
   * once responses agree with it, or after a day.
   */
  settle(atMs: number, disturbedMs: number): void {
    this.pass(atMs);
    for (const [pair, { state, fromMs, isUnclear, isFound }] of [...this.#now]) {
      const endMs = isFound === true ? fromMs + this.#graceMs + FOUND_MS : fromMs;
      if (state === 'out' && isUnclear && Math.max(endMs, disturbedMs + CONFIRMED_MS) <= atMs)
        this.#end(pair, atMs);
    }
  }

  /** The items that are suspended for some receiver, and have not ended for any. */
  get suspended(): Item[] {
    const out = [...this.#now].filter(([, { state }]) => state === 'out');
    const unclear = new Set(out.flatMap(([pair, { isUnclear }]) => (isUnclear ? [itemOf(pair)] : [])));
    return [...new Set(out.map(([pair]) => itemOf(pair)))].filter((item) => !unclear.has(item));
  }

  /** An operator ends the suspensions of an item. */
  remove(item: Item, atMs: number): void {
    for (const [pair, { state }] of [...this.#now])
      if (state === 'out' && itemOf(pair) === item) this.#end(pair, atMs);
  }

  dump(atMs: number): Dump {
    return { atMs, pairs: new Map([...this.#now].map(([pair, span]) => [pair, { ...span }])) };
  }

  /** Redis was put back. Pairs that only the dump names are suspended anew or ended; the program has to find out which. */
  restore(dump: Dump, atMs: number, { isUnwatched }: { isUnwatched: boolean }): void {
    this.restores.push({ fromMs: dump.atMs, atMs, isUnwatched });
    if (isUnwatched) this.#copiedMs = Math.min(this.#copiedMs, dump.atMs);
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

  #set(pair: Pair, span: Omit<PairSpan, 'fromMs' | 'untilMs'>, atMs: number): void {
    this.#end(pair, atMs);
    const next = { ...span, fromMs: atMs, untilMs: NEVER };
    this.#now.set(pair, next);
    this.#note(pair, next);
  }

  #end(pair: Pair, atMs: number): void {
    const before = this.#now.get(pair);
    if (before !== undefined) before.untilMs = atMs;
    this.#now.delete(pair);
  }

  /** The standings of a receiver towards the items of a transfer at a time; with `atEnd`, also at its end. */
  standings(receiver: string, transfer: Transfer, atMs: number, { atEnd = false } = {}): PairSpan[] {
    return itemsOf(transfer).flatMap((item) =>
      (this.#all.get(`${receiver} ${item}`) ?? []).filter(
        ({ fromMs, untilMs }) => fromMs <= atMs && (atMs < untilMs || (atEnd && atMs === untilMs)),
      ),
    );
  }

  /** True when a receiver was given up, and not suspended, at the end of a state. */
  isGivenUp(receiver: string, transfer: Transfer, { state, untilMs }: PairSpan): boolean {
    return state === 'in' && this.standings(receiver, transfer, untilMs).length === 0;
  }

  /** True when a receiver was out of the config during a part of a span, and has come back. */
  wasAway(receiver: string, { fromMs, untilMs }: { fromMs: number; untilMs: number }): boolean {
    return this.#away.some(
      (away) => away.receiver === receiver && away.fromMs <= untilMs && fromMs < away.untilMs,
    );
  }

  history(receiver: string, transfer: Transfer): PairSpan[] {
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
function keysOf({ desks }: Wanted, receiver: string, item: Item): string[] {
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

function itemsOf({ subject, wallet, tx }: Transfer): Item[] {
  return [
    ...(wallet === null ? [] : [`wallet:${wallet}`]),
    ...(tx === null ? [] : [`by-tx:source:${tx}`]),
    ...(wallet === null && tx === null ? [subject] : []),
  ];
}

/** Name of a state of a transfer. */
export function stateKey(
  { subject }: Pick<Transfer, 'subject'>,
  { status, updatedAt }: Pick<State, 'status' | 'updatedAt'>,
): string {
  return `${subject} ${status} ${updatedAt}`;
}
