import { hash } from 'node:crypto';
import { z } from 'zod';
import { BoundedMap, bytesOfTexts, CACHES, type CacheLimits } from '../domain/caches.ts';
import { type RouteDefinition, USUAL_EXECUTIONS } from '../domain/quotes/route.ts';
import { ROUTE_SERVICES } from '../domain/subjects/subject.ts';
import { isTrackedKey, parseClaimKey } from '../domain/subjects/subscription.ts';
import type { Keys } from './keys.ts';
import { JSON_TEXT, type OnForeign, readStored } from './stored.ts';
import { readTracked } from './tracked.ts';

const JOINED = z.object({ entry: z.string(), atMs: z.number() });

const SUBSCRIPTION = z.object({
  name: z.string(),
  order: z.number(),
  receivers: z.array(z.string()),
  metadata: z.record(z.string(), z.string()),
  history: z.enum(['skip', 'emit']),
  overdueAfterMs: z.union([z.number(), z.literal('learned')]).nullable(),
  /** Missing in data of a version without warnings. */
  warnBeforeMs: z.number().nullable().default(null),
  /** Missing in data of a version without checks on chains. */
  recipients: z.array(z.string()).default([]),
  /** Imported quotes whose vault is watched too. */
  vaultQuotes: z.array(z.string()).exactOptional(),
  /** Receivers that it had when they were removed from the config, and that have not returned since. */
  awayReceivers: z.array(z.string()).default([]),
  /** Receivers that joined it after its start: the newest entry of the log then, and the time of that sync, ms of Redis time. */
  joined: z.record(z.string(), JOINED).default({}),
  /** Receivers that left it and stayed in the config: the time of that sync, ms of Redis time, and their place in `joined`. */
  left: z.record(z.string(), z.object({ atMs: z.number(), joined: JOINED.nullable() })).default({}),
  /** Time at which it was removed from the config, ms of Redis time; null while it is in it. */
  removedAtMs: z.number().nullable(),
});

const RECEIVER = z.object({
  name: z.string(),
  type: z.enum(['webhook', 'email', 'postgres']),
  events: z.array(z.string()),
  /** Missing in data of a version without filters. */
  filter: z
    .object({
      wallets: z.array(z.string()).nullable(),
      chains: z.array(z.string()).nullable(),
      minAmount: z.string().nullable(),
    })
    .default({ wallets: null, chains: null, minAmount: null }),
  ordering: z.enum(['none', 'subject']).default('none'),
  removed: z.boolean(),
});

const END = z.object({ chainId: z.number(), token: z.string() });

const ROUTE = z.object({
  name: z.string(),
  /** These two are missing in data of a version that had the open service only. */
  service: z.enum(ROUTE_SERVICES).default('open'),
  executions: z.array(z.string()).default([...USUAL_EXECUTIONS]),
  source: END,
  destination: END,
  amount: z.string(),
  funder: z.string(),
  recipient: z.string(),
  movedBy: z.number(),
  everyMs: z.number(),
}) satisfies z.ZodType<RouteDefinition>;

const SUBSCRIPTION_TEXT = JSON_TEXT.pipe(SUBSCRIPTION);
const RECEIVER_TEXT = JSON_TEXT.pipe(RECEIVER);
const ROUTE_TEXT = JSON_TEXT.pipe(ROUTE);

/** A subscription in the registry; `order` is its place in the config. */
export type StoredSubscription = z.infer<typeof SUBSCRIPTION>;

/** A receiver in the registry. One removed from the config is `removed` and retains its backlog. */
export type StoredReceiver = z.infer<typeof RECEIVER>;

/** A receiver that is not removed. */
export type PresentReceiver = Omit<StoredReceiver, 'removed'>;

/** Returns the stored text of a receiver that is not removed; a script searches for its end. */
export function receiverText(receiver: PresentReceiver): string {
  return JSON.stringify({ ...receiver, removed: false });
}

/** Place of a sync in which a receiver joined a subscription. */
export type JoinedAt = StoredSubscription['joined'][string];

/**
 * A sync in which receivers may join and leave subscriptions: its place, the time within which one that left may be back, the
 * receivers that come back to the config, and those that each subject had before.
 */
export type Joining = {
  at: JoinedAt;
  graceSpanMs: number;
  isBack: ReadonlySet<string>;
  before: ReadonlyMap<string, ReadonlySet<string>>;
};

/**
 * Returns the receivers that joined a subscription after its start, and those that left it; ones that join it now have the place
 * of this sync. A receiver that had one of its subjects under another name joins nothing: it moves with what it had. Nor does
 * one that is back within the grace span: events may wait behind its cursor, and a slip in the config must not lose them.
 */
export function membersOf(
  { receivers, awayReceivers, joined, left }: StoredSubscription,
  next: { receivers: readonly string[]; subjects: readonly string[] },
  { at, graceSpanMs, isBack, before }: Joining,
): { joined: StoredSubscription['joined']; left: StoredSubscription['left'] } {
  const had = new Set([...receivers, ...awayReceivers]);
  const wasMember = (name: string): boolean =>
    had.has(name) || isBack.has(name) || next.subjects.some((subject) => before.get(subject)?.has(name));
  const recent = Object.entries(left).filter(([, { atMs }]) => at.atMs - atMs < graceSpanMs);
  const leaving = receivers.map((name) => [name, { atMs: at.atMs, joined: joined[name] ?? null }] as const);
  const all = new Map([...recent, ...(graceSpanMs > 0 ? leaving : [])]);
  return {
    joined: Object.fromEntries(
      next.receivers.flatMap((name) => {
        const place = wasMember(name) ? joined[name] : all.has(name) ? all.get(name)?.joined : at;
        return place == null ? [] : [[name, place]];
      }),
    ),
    left: Object.fromEntries([...all].filter(([name]) => !next.receivers.includes(name))),
  };
}

/** A parsed definition, and the stored text that it was read from. */
type ReadDefinition<T> = { value: T; text: string };

/** Bytes of a parsed definition beside twice its text: its objects, as V8 stores them. */
const PARSED_BYTES = 500;

/** Parses and caches the stored texts of subscriptions, receivers and routes. */
export class Definitions {
  /** The definitions of this process's config: a stored entry of another shape is rewritten from them. */
  own: {
    receivers: readonly PresentReceiver[];
    routes: readonly RouteDefinition[];
    subscriptions: ReadonlyMap<string, StoredSubscription>;
  } = { receivers: [], routes: [], subscriptions: new Map() };
  readonly #keys: Keys;
  readonly #onForeign: OnForeign;
  readonly #receivers = parsedTexts<StoredReceiver>(CACHES.receivers);
  readonly #subscriptions = parsedTexts<StoredSubscription>(CACHES.subscriptions);
  readonly #texts = new WeakMap<object, string>();
  readonly #digests = new WeakMap<object, string>();

  constructor(keys: Keys, onForeign: OnForeign) {
    this.#keys = keys;
    this.#onForeign = onForeign;
  }

  /** Null for an entry of another shape. */
  subscription(name: string, text: string): StoredSubscription | null {
    if (isTrackedKey(name)) return this.#tracked(name, text);
    const where = `${this.#keys.subscriptions} ${name}`;
    return this.#once(this.#subscriptions, { id: text, text }, () =>
      readStored(SUBSCRIPTION_TEXT, text, { what: 'subscription', where, onForeign: this.#onForeign }),
    );
  }

  /** Returns a tracked subject as a subscription to that alone, ordered after those of the config. */
  #tracked(key: string, text: string): StoredSubscription | null {
    return this.#once(this.#subscriptions, { id: `${key} ${text}`, text }, () => {
      const where = `${this.#keys.tracked} ${parseClaimKey(key).subject}`;
      const tracked = readTracked(text, { where, onForeign: this.#onForeign });
      if (tracked === null) return null;
      const { metadata, receivers, overdueAfterMs, removedAtMs, recipients, watchVault } = tracked;
      const wishes = { metadata, receivers, overdueAfterMs, warnBeforeMs: null, removedAtMs, recipients };
      const definition = { name: key, order: Number.MAX_SAFE_INTEGER, history: 'skip' } as const;
      const vaultQuotes = watchVault ? [parseClaimKey(key).subject] : [];
      return { ...definition, awayReceivers: [], joined: {}, left: {}, ...wishes, vaultQuotes };
    });
  }

  /** Null for an entry of another shape. */
  receiver(name: string, text: string): StoredReceiver | null {
    const where = `${this.#keys.receivers} ${name}`;
    return this.#once(this.#receivers, { id: text, text }, () =>
      readStored(RECEIVER_TEXT, text, { what: 'receiver', where, onForeign: this.#onForeign }),
    );
  }

  /** Null for an entry of another shape. */
  route(name: string, text: string): RouteDefinition | null {
    const where = `${this.#keys.routes} ${name}`;
    return readStored(ROUTE_TEXT, text, { what: 'route', where, onForeign: this.#onForeign });
  }

  /** Returns the SHA-1 of the stored text of a definition, as Redis computes it; null where it was not read from a text. */
  digestOf(definition: StoredReceiver | StoredSubscription): string | null {
    const text = this.#texts.get(definition);
    if (text === undefined) return null;
    const digest = this.#digests.get(definition) ?? hash('sha1', text);
    this.#digests.set(definition, digest);
    return digest;
  }

  /** Returns the bytes of a definition in memory, with its text. */
  bytesOf(definition: StoredReceiver | StoredSubscription): number {
    const text = this.#texts.get(definition) ?? '';
    return PARSED_BYTES + bytesOfTexts(text, text);
  }

  /** Parses a stored text once: every round and every delivery reads the same texts. */
  #once<T extends object>(
    cache: BoundedMap<string, ReadDefinition<T>>,
    { id, text }: { id: string; text: string },
    read: () => T | null,
  ): T | null {
    const found = cache.get(id);
    if (found !== undefined) return found.value;
    const value = read();
    if (value === null) return null;
    cache.set(id, { value, text });
    this.#texts.set(value, text);
    return value;
  }
}

function parsedTexts<T>(limits: CacheLimits): BoundedMap<string, ReadDefinition<T>> {
  return new BoundedMap({
    ...limits,
    bytesOf: (id, { text }) => PARSED_BYTES + bytesOfTexts(id, text),
  });
}
