import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { between, chance, integer, pick, type Random, randomStream } from '../../sandbox/world/random.ts';
import type { DayRules } from '../../src/domain/books/report.ts';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { FileState } from '../../src/operations/config-state.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import { Hook } from '../support/hook.ts';
import { type Dump, PairModel } from './model.ts';
import { accountVirtual, type Got, type VirtualAccount } from './virtual-account.ts';
import { VirtualBooks } from './virtual-books.ts';
import { CHAIN, type Item, OPERATOR, VirtualConfig } from './virtual-config.ts';
import { type LogLine, VirtualProcess } from './virtual-process.ts';
import { type Copy, VirtualRedis } from './virtual-redis.ts';
import { VirtualTime } from './virtual-time.ts';
import { isTimeless, someLiving, VirtualUpstream } from './virtual-upstream.ts';

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

const PREFIX = 'life';
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const RECEIVERS = ['backend', 'audit', 'desk', OPERATOR];

const GRACE_MS: Readonly<Record<string, number>> = { '0s': 0, '1h': HOUR, '24h': DAY };

/** After a shorter stop the time counts as confirmed at once. */
const SHORT_STOP_MS = MINUTE;

const CLOSE_AFTER_MS: Readonly<Record<string, number>> = { '10m': 10 * MINUTE, '1h': HOUR, '6h': 6 * HOUR };

/** Messages that a log may have at level `error`: acts of the operator, and their consequences. */
const EXPECTED_ERRORS: ReadonlySet<string> = new Set([
  'config.large_removal',
  'config.reload_failed',
  'redis.restored',
  'receiver.events_dropped',
  'receiver.moved',
  'poll.crashed',
  'upstream.moved',
]);

/** A process of a life: the operator's config file, and the running config (null before its start). */
export type Seat = {
  name: string;
  folder: string;
  config: VirtualConfig;
  running: VirtualConfig | null;
  process: VirtualProcess | null;
};

/** A life of an operator beside one or two processes, in virtual time. */
export class Life {
  readonly random: Random;
  readonly time: VirtualTime;
  readonly model = new PairModel();
  readonly upstream: VirtualUpstream;
  readonly items: Item[] = [];
  readonly seats: Seat[] = [];
  readonly problems: string[] = [];
  readonly story: string[] = [];
  readonly redis: VirtualRedis;
  readonly hooks = new Map<string, Hook>();
  readonly #got = new Map<string, Got[]>();
  readonly #cut = new Set<number>();
  readonly #logged = new Map<string, RenderedEvent>();
  readonly #folder: string;
  readonly #log: EventLog;
  readonly #books: VirtualBooks;
  #logRead = '0-0';
  #newest: Seat | null = null;
  readonly #confirmed = new Set<string>();
  saved: { copy: Copy; dump: Dump } | null = null;
  /** The last time when a clock jumped or went on after a stop, and the last time when a process ran. */
  #disturbedMs = Number.NEGATIVE_INFINITY;
  #ranMs = Number.POSITIVE_INFINITY;
  /** The processes that have not noticed a restore of Redis: until then they store no answer. */
  readonly #unaware = new Set<Seat>();

  private constructor(seed: number, made: { time: VirtualTime; redis: VirtualRedis; folder: string }) {
    this.random = randomStream('virtual-operator', seed);
    this.time = made.time;
    this.redis = made.redis;
    this.#folder = made.folder;
    this.upstream = new VirtualUpstream(this.time, randomStream('virtual-upstream', seed));
    this.#log = new EventLog(this.redis.client, new Keys(PREFIX));
    this.#books = new VirtualBooks(join(made.folder, 'books.sqlite'));
  }

  /** Begins a life: the upstream has a past, and one process watches most of it. */
  static async begin(seed: number): Promise<Life> {
    const time = new VirtualTime();
    const redis = await VirtualRedis.start(time);
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-life-'));
    const life = new Life(seed, { time, redis, folder });
    await life.#furnish();
    return life;
  }

  async #furnish(): Promise<void> {
    await this.upstream.start();
    for (const name of RECEIVERS) {
      const hook = new Hook();
      hook.answer = ({ event }) => {
        const got = this.#got.get(name) ?? [];
        got.push({ event, atMs: this.time.nowMs });
        this.#got.set(name, got);
        return 204;
      };
      await hook.start();
      this.hooks.set(name, hook);
    }
    const { random, upstream } = this;
    for (let index = 0; index < 8; index += 1)
      this.items.push(`wallet:0x${index.toString(16).padStart(40, 'a')}`);
    for (let index = 0; index < 4; index += 1)
      this.items.push(`intent:0x${index.toString(16).padStart(64, 'b')}`);
    for (let index = 0; index < 2; index += 1)
      this.items.push(`by-tx:source:0x${index.toString(16).padStart(64, 'e')}`);
    for (let index = 0; index < 2; index += 1) {
      this.items.push(`gasless:gateway:7d9f1c52-8a4e-4b6d-b0c3-2e5a9f7d1b6${index}`);
      this.items.push(`vault:${CHAIN}:0x${index.toString(16).padStart(40, 'd')}`);
    }
    for (const item of this.items) {
      if (isTimeless({ subject: item })) upstream.bearTimeless(item);
      if (item.startsWith('intent:') && chance(random, 0.5))
        upstream.bear({ hash: item.slice('intent:'.length) });
      if (item.startsWith('wallet:'))
        for (let count = integer(random, 12); count > 0; count -= 1)
          upstream.bear({ wallet: item.slice('wallet:'.length) });
    }
    this.time.advance(HOUR);
    const config = new VirtualConfig({
      frame: {
        upstream: { baseUrl: upstream.url, apiKey: 'k', requestsPerSecond: pick(random, [20, 100, 1_000]) },
        redis: { url: this.redis.url, prefix: PREFIX },
        server: { host: '127.0.0.1', port: 0 },
      },
      hooks: Object.fromEntries(
        [...this.hooks].map(([name, { url }]) => [
          name,
          {
            type: 'webhook',
            url,
            secrets: [SECRET],
            retries: { delays: Array<string>(100).fill('1s') },
            allowPrivateNetwork: true,
            allowInsecure: true,
            ...(name === OPERATOR ? { events: ['intentwatch.*', 'receiver.*'] } : {}),
          },
        ]),
      ),
      items: this.items,
      settings: {
        graceSpan: pick(random, ['0s', '1h', '24h', '24h']),
        mode: chance(random, 0.2) ? 'manual' : 'watch',
        closeAfter: '1h',
        rpc: chance(random, 0.3),
      },
    });
    config.put(
      this.items.filter(() => chance(random, 0.8)),
      random,
    );
    await this.seat('one', config);
  }

  async seat(name: string, config: VirtualConfig): Promise<Seat> {
    const folder = join(this.#folder, name);
    await mkdir(folder, { recursive: true });
    const seat: Seat = { name, folder, config, running: null, process: null };
    this.seats.push(seat);
    await this.write(seat);
    await this.start(seat);
    return seat;
  }

  get main(): Seat {
    const [main] = this.seats;
    if (main === undefined) throw new Error('nobody is seated');
    return main;
  }

  fileOf({ folder }: Seat): string {
    return join(folder, 'intentwatch.yaml');
  }

  async write(seat: Seat, text?: string): Promise<void> {
    const file = this.fileOf(seat);
    await writeFile(`${file}.new`, text ?? seat.config.text(this.random, join(seat.folder, 'data')));
    await rename(`${file}.new`, file);
  }

  /** Starts a process on its file, which is then the newest config. Starts it again where it dies meanwhile. */
  async start(seat: Seat, dying: { commands: number; isLastMade: boolean } | null = null): Promise<void> {
    const beganMs = this.time.nowMs;
    if (beganMs - this.#ranMs > SHORT_STOP_MS) this.disturb();
    const process = await VirtualProcess.on(this.fileOf(seat), this.time);
    seat.process = process;
    process.onPoll = () => this.upstream.nextPoll();
    process.onBooks = async (sources, isCertain) => {
      const { redisMs: nowMs, nowMs: trueMs } = this.time;
      if (seat === this.main)
        await this.#books.feed(sources, rulesOf(seat), { nowMs, trueMs, mayClose: isCertain(nowMs) });
    };
    if (dying !== null) process.die(dying);
    const isUp = await process.start();
    this.#read(seat);
    if (!isUp) {
      this.#cut.add(this.upstream.poll);
      await this.start(seat);
      this.#applied(seat, beganMs);
      return;
    }
    if (dying !== null) process.die({ commands: Number.MAX_SAFE_INTEGER, isLastMade: true });
    this.#applied(seat, beganMs);
  }

  /** A process has written its config: that of its file, or once more the one that it runs. */
  #applied(seat: Seat, earliest: number, config = seat.config.copy()): void {
    seat.running = config;
    this.#newest = seat;
    const { settings, wants } = config;
    this.model.apply(wants, {
      atMs: this.time.nowMs,
      graceMs: GRACE_MS[settings.graceSpan] ?? 0,
      earliest,
    });
  }

  /** Ends a process as a service manager does, or kills it. */
  async end(seat: Seat, how: 'close' | 'kill'): Promise<void> {
    if (how === 'close') await seat.process?.close();
    else seat.process?.kill();
    this.#read(seat);
    seat.process = null;
  }

  /** True when a running process may apply its new file at once, by the documents. */
  #isLarge({ running, config }: Seat): boolean {
    if (running === null) return false;
    const [before, after] = [running.wants, config.wants];
    const kinds = [
      [before.items, after.items, (id: string) => id.startsWith('wallet:')],
      [before.items, after.items, (id: string) => !id.startsWith('wallet:')],
      [before.receivers, after.receivers, () => true],
    ] as const;
    return kinds.some(([were, are, isOf]) => {
      const all = [...were].filter(isOf);
      const gone = all.filter((id) => !are.has(id)).length;
      return gone >= 3 && gone > 0.2 * all.length;
    });
  }

  /** Has a process read its file, on request or because it changed, and compares its reaction with the documents. */
  async reread(
    seat: Seat,
    how: 'noticed' | 'requested',
    dying: { commands: number; isLastMade: boolean } | null = null,
  ): Promise<void> {
    const { process } = seat;
    if (process === null) return;
    const beganMs = this.time.nowMs;
    if (dying !== null) process.die(dying);
    const found =
      how === 'requested' ? await process.reload() : (await process.check()) ? process.fileState : null;
    this.#read(seat);
    if (!process.isAlive) {
      this.#cut.add(this.upstream.poll);
      await this.start(seat);
      this.#earlier(beganMs);
      return;
    }
    if (dying !== null) process.die({ commands: Number.MAX_SAFE_INTEGER, isLastMade: true });
    this.#hold(seat, how, found, beganMs);
  }

  #earlier(ms: number): void {
    this.model.begunAt(ms);
  }

  #hold(seat: Seat, how: 'noticed' | 'requested', found: FileState | string | null, beganMs: number): void {
    const { running, config } = seat;
    if (running === null || found === null) return;
    const state = typeof found === 'string' ? found : found.state;
    const isPassive = how === 'noticed' && running.settings.mode === 'manual';
    const text = JSON.stringify([...config.wants.desks]);
    const isLarge = this.#isLarge(seat);
    const wanted = isPassive
      ? ['changed', 'running', 'held']
      : isLarge
        ? this.#confirmed.has(text)
          ? ['held', 'running']
          : ['held']
        : ['running'];
    if (!wanted.includes(state)) {
      const text = typeof found === 'string' ? found : JSON.stringify(found).slice(0, 300);
      this.problems.push(`the file of ${seat.name} is ${state}, expected ${wanted.join(' or ')}: ${text}`);
    }
    if (!isPassive && state === 'running') this.#applied(seat, beganMs);
  }

  async confirm(seat: Seat): Promise<void> {
    const { process } = seat;
    const state = process?.fileState;
    if (process === null || state?.state !== 'held') return;
    const beganMs = this.time.nowMs;
    const wrong = await process.reload('0'.repeat(32));
    if (typeof wrong !== 'string')
      this.problems.push(`a wrong digest was accepted: ${JSON.stringify(wrong)}`);
    if (process.fileState?.state !== 'held') this.problems.push('a wrong digest has confirmed a file');
    const found = await process.reload(state.removal.digest);
    this.#read(seat);
    if (found === null || typeof found === 'string' || found.state !== 'running') {
      this.problems.push(`a confirmed file was not applied: ${JSON.stringify(found)}`);
      return;
    }
    this.#confirmed.add(JSON.stringify([...seat.config.wants.desks]));
    this.#applied(seat, beganMs);
  }

  /** Passes time in steps; processes work, and the upstream changes meanwhile. */
  async pass(
    ms: number,
    pieces: number,
    dying: { commands: number; isLastMade: boolean } | null = null,
  ): Promise<void> {
    for (let piece = 0; piece < pieces; piece += 1) {
      this.stir();
      this.time.advance(ms / pieces);
      await this.work(piece === 0 ? dying : null);
    }
  }

  /** Changes the upstream, apart from all other acts: times are reported in whole seconds. */
  stir(): void {
    const { random, upstream } = this;
    this.time.advance(2_000);
    for (const transfer of someLiving(upstream, random, integer(random, 4))) upstream.move(transfer);
    for (let count = integer(random, 3); count > 0; count -= 1) this.#bear();
    this.time.advance(2_000);
  }

  #bear(): void {
    const { random, upstream } = this;
    const item = pick(random, this.items);
    const id = item.slice(item.lastIndexOf(':') + 1);
    if (item.startsWith('wallet:')) upstream.bear({ wallet: id, isAddress: chance(random, 0.2) });
    else if (item.startsWith('intent:')) {
      if (!upstream.transfers.some(({ subject }) => subject === item)) upstream.bear({ hash: id });
    } else if (item.startsWith('by-tx:')) {
      const others = upstream.transfers.filter(({ tx }) => tx === id);
      // A transaction is polled as long as one of its transfers is open.
      const isPolled = others.some(({ life, states }) => states.length < life.length);
      if (others.length === 0 || (isPolled && others.length < 3)) upstream.bear({ tx: id });
    }
  }

  /** Every process does all due work; one of them may die in the middle, and is restarted. */
  async work(dying: { commands: number; isLastMade: boolean } | null = null): Promise<void> {
    // Where Redis was put back, the one with the newest file has to check within 10 s: a step may be longer.
    const restored = [...this.#unaware].filter(({ process }) => process !== null);
    if (restored.length > 1) for (const { process } of restored) await process?.compare();
    for (const seat of this.seats) {
      const { process } = seat;
      if (process === null) continue;
      if (dying !== null && seat === this.main) process.die(dying);
      const before = this.upstream.poll;
      const isUp = await process.step({ checksFirst: chance(this.random, 0.5) });
      this.#read(seat);
      if (this.#unaware.delete(seat))
        for (let poll = before + 1; poll <= this.upstream.poll; poll += 1) this.#cut.add(poll);
      this.#ranMs = this.time.nowMs;
      if (!isUp) {
        this.#cut.add(this.upstream.poll);
        await this.start(seat);
      } else if (dying !== null) process.die({ commands: Number.MAX_SAFE_INTEGER, isLastMade: true });
    }
    await this.#readLog();
    if (this.#newest?.process !== null) this.model.settle(this.time.nowMs, this.#disturbedMs);
  }

  #read(seat: Seat): void {
    for (const line of seat.process?.lines.splice(0) ?? []) {
      if (line.level < 50 || EXPECTED_ERRORS.has(line.msg) || isDeadCursor(line)) continue;
      this.problems.push(`${seat.name} logged ${JSON.stringify(line).slice(0, 600)}`);
    }
  }

  async #readLog(): Promise<void> {
    for (;;) {
      const { entries, more } = await this.#log.after(this.#logRead, 1_000);
      for (const entry of entries) {
        if (entry.kind === 'event') this.#logged.set(entry.event.id, entry.event as RenderedEvent);
        this.#logRead = entry.id;
      }
      if (!more) return;
    }
  }

  /** Disturbs the clocks in a way that only responses, or time, confirm. */
  disturb(): void {
    this.#disturbedMs = this.time.nowMs;
  }

  async save(): Promise<void> {
    this.saved = { copy: await this.redis.copy(), dump: this.model.dump(this.time.nowMs) };
  }

  async restore(): Promise<void> {
    if (this.saved === null) return;
    await this.#readLog();
    await this.redis.restore(this.saved.copy);
    const isUnwatched = this.seats.every(({ process }) => process === null);
    this.model.restore(this.saved.dump, this.time.nowMs, { isUnwatched });
    for (const seat of this.seats) this.#unaware.add(seat);
    this.disturb();
    // The process with the newest config is gone: another one writes its own.
    const { main } = this;
    if (this.#newest?.process === null && main.process !== null && main.running !== null)
      this.#applied(main, this.time.nowMs, main.running);
    this.#logRead = '0-0';
  }

  /** Restores order, lets all of it come to its end, and compares the events with the required ones. */
  async settleUp(): Promise<VirtualAccount> {
    this.upstream.listing = { order: this.upstream.listing.order, cursorMs: Number.POSITIVE_INFINITY };
    for (const seat of this.seats.slice(1)) await this.end(seat, 'close');
    const { main, random } = this;
    main.config.away.clear();
    main.config.put(main.config.out, random);
    main.config.settings = { ...main.config.settings, graceSpan: '1h', mode: 'watch' };
    await this.write(main);
    if (main.process === null) await this.start(main);
    else await this.reread(main, 'requested');
    for (const ms of [MINUTE, MINUTE, HOUR, HOUR, 2 * HOUR, 12 * HOUR, DAY, MINUTE, MINUTE]) {
      this.time.advance(ms);
      await this.work();
    }
    const operator = this.#got.get(OPERATOR) ?? [];
    const account = accountVirtual({
      model: this.model,
      transfers: this.upstream.transfers,
      shown: this.upstream.shown,
      cut: this.#cut,
      got: new Map([...this.#got].filter(([name]) => name !== OPERATOR)),
      logged: this.#logged,
      ...reportedTo(operator),
    });
    account.problems.unshift(...this.problems);
    if (main.process !== null) {
      const rules = { closeAfterMs: 2 * DAY, checked: new Set(['1']) };
      const books = await this.#books.account(main.process.bookSources, rules, this.time.redisMs);
      account.closedDays = books.days;
      account.problems.push(...books.problems);
    }
    return account;
  }

  async close(): Promise<void> {
    for (const seat of this.seats) await this.end(seat, 'close');
    for (const hook of this.hooks.values()) await hook.close();
    await this.upstream.close();
    await this.redis.close();
    await this.#books.close();
    this.time.close();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  /** A span that an operator lets pass: mostly seconds, at times a day. */
  someSpan(): number {
    return (
      pick(this.random, [5 * SECOND, 20 * SECOND, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, 26 * HOUR]) *
      between(this.random, 0.8, 1.2)
    );
  }
}

function rulesOf({ running, config }: Seat): DayRules {
  const { closeAfter, rpc } = (running ?? config).settings;
  return { closeAfterMs: CLOSE_AFTER_MS[closeAfter] ?? HOUR, checked: new Set(rpc ? [String(CHAIN)] : []) };
}

function isDeadCursor({ msg, reason }: LogLine): boolean {
  return msg === 'poll.failed' && String(reason).includes('Invalid cursor');
}

/** The items that operator events named as dropped, with reasons, and the times when each restore was reported. */
function reportedTo(operator: readonly Got[]): { named: Map<string, string>; restoredMs: number[] } {
  const named = new Map<string, string>();
  const restoredMs: number[] = [];
  for (const { event, atMs } of operator) {
    const { record } = event.data;
    const reason = String(record.reason ?? '');
    const ids = record.eventIds ?? (event.type === 'receiver.events_dropped' ? record.deliveries : []);
    if (Array.isArray(ids)) for (const id of ids) named.set(String(id), reason);
    if (event.type.endsWith('storage_restored')) restoredMs.push(atMs);
  }
  return { named, restoredMs };
}
