import { randomBytes } from 'node:crypto';
import { BoundedMap, bytesOfTexts, CACHES } from '../domain/caches.ts';
import type { ArrivalTally } from '../domain/cadence/arrivals.ts';
import { PAGE_LIMIT, type PageLimit } from '../domain/cadence/pages.ts';
import { LISTINGS, type Listing } from '../domain/cadence/wait.ts';
import type { LastPolls, OpenTransfer, ShownTransfer } from '../domain/cadence/wallet.ts';
import { asSubjectId, parseSubjectId, type SubjectId } from '../domain/subjects/subject.ts';
import { tokenKey } from '../domain/transfers/chains.ts';
import { OPEN_STATES, type OpenAmount, type OpenState } from '../domain/transfers/transfer-move.ts';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { scripts } from './scripts.ts';
import { RedisStore } from './stored.ts';

/**
 * Status, route, since, and by how much seen and head are after since: short, since there is one per open transfer. With at most
 * 64 bytes, Redis stores it without an object of its own.
 */
type StoredOpen = [status: string, route: string, sinceMs: number, seenMs: number, headMs: number | null];

/** Checks a stored open transfer. Each poll of a wallet reads all of them, which takes half as long again with a schema of zod. */
function isStoredOpen(value: unknown): value is StoredOpen {
  if (!Array.isArray(value) || value.length !== 5) return false;
  const [status, route, sinceMs, seenMs, headMs] = value;
  const areTexts = typeof status === 'string' && typeof route === 'string';
  return areTexts && isMs(sinceMs) && isMs(seenMs) && (headMs === null || isMs(headMs));
}

function isMs(value: unknown): boolean {
  return typeof value === 'number' && Math.abs(value) <= 1e15;
}

/** The transfers of a wallet that have not ended, as far as its pages showed them; `version` is "" where there are none. */
export type OpenTransfers = { version: string; transfers: readonly OpenTransfer[] };

/**
 * The observations of a wallet's pages. `polled`: when each listing was polled last; `ingestedAtMs`: when its response was
 * ingested last, and `same` a fingerprint of that response and of the state after it; `moves` counts the commits of responses
 * about its transfers, by pages or otherwise. `sweptAtMs`: when a sweep
 * that read all pages began, and `pages` how many there were; `readAtMs`: from when on all records of the wallet were shown,
 * by a sweep that read every one; `orderAtMs`: when they were last seen in the order newest first, `disorderAtMs`: in another;
 * `unnarrowedAtMs`: when a listing of one status last showed others; `missedAtMs`: when new transfers were last not read,
 * which only a sweep that begins later finds; `headAnsweredAtMs`: when the response came by which the head was ingested last;
 * `cursorDiedAtMs`: when a cursor of a full sweep was refused last, and `cursorDiedAfterMs` how old it was; `arrivals`: how
 * often new transfers came; `limits`: of listings that had a page beyond its limits, how many records are requested. Redis
 * time, 0 for never. These are hints: they save requests, and no event depends on them.
 */
export type WalletFacts = {
  polled: LastPolls;
  ingestedAtMs: { readonly [listing in Listing]?: number };
  same: { readonly [listing in Listing]?: string };
  sweptAtMs: number;
  readAtMs: number;
  pages: number;
  orderAtMs: number;
  disorderAtMs: number;
  unnarrowedAtMs: number;
  missedAtMs: number;
  headAnsweredAtMs: number;
  cursorDiedAtMs: number;
  cursorDiedAfterMs: number;
  moves: number;
  arrivals: ArrivalTally;
  limits: { readonly [listing in Listing]?: PageLimit };
};

/** The stored fields of `WalletFacts`, each noted by itself. */
export type WalletFact =
  | Exclude<keyof WalletFacts, 'polled' | 'ingestedAtMs' | 'same' | 'arrivals' | 'limits'>
  | `arrivals:${keyof ArrivalTally}`
  | `${'polled' | 'virtual' | 'ingested' | 'same' | 'limit' | 'limitAt'}:${Listing}`;

/** Facts to store of a wallet. */
export type NotedFacts = { [fact in WalletFact]?: number | string };

/** A time further ahead was noted by a clock that has gone back since. */
const CLOCK_SLACK_MS = 60_000;

/** Parses the facts of a wallet. A value that is no number, or a future time, counts as never: the next note rewrites it. */
export function parseFacts(stored: { readonly [field: string]: string }, nowMs: number): WalletFacts {
  const time = (field: WalletFact): number => {
    const atMs = number(field);
    return atMs > nowMs + CLOCK_SLACK_MS ? 0 : atMs;
  };
  const number = (field: WalletFact): number => {
    const value = Number(stored[field] ?? 0);
    return Number.isFinite(value) ? value : 0;
  };
  const polled: { [listing in Listing]?: { atMs: number; virtual: number } } = {};
  const ingestedAtMs: { [listing in Listing]?: number } = {};
  const same: { [listing in Listing]?: string } = {};
  const limits: { [listing in Listing]?: PageLimit } = {};
  for (const listing of LISTINGS) {
    const atMs = time(`polled:${listing}`);
    if (atMs > 0) polled[listing] = { atMs, virtual: number(`virtual:${listing}`) };
    const ingested = time(`ingested:${listing}`);
    if (ingested > 0) ingestedAtMs[listing] = ingested;
    const fingerprint = stored[`same:${listing}`];
    if (fingerprint) same[listing] = fingerprint;
    const limitAtMs = time(`limitAt:${listing}`);
    const limit = Math.trunc(Math.min(PAGE_LIMIT, Math.max(0, number(`limit:${listing}`))));
    if (limitAtMs > 0) limits[listing] = { limit, atMs: limitAtMs };
  }
  return {
    polled,
    ingestedAtMs,
    same,
    sweptAtMs: time('sweptAtMs'),
    readAtMs: time('readAtMs'),
    pages: number('pages'),
    orderAtMs: time('orderAtMs'),
    disorderAtMs: time('disorderAtMs'),
    unnarrowedAtMs: time('unnarrowedAtMs'),
    missedAtMs: time('missedAtMs'),
    headAnsweredAtMs: time('headAnsweredAtMs'),
    cursorDiedAtMs: time('cursorDiedAtMs'),
    cursorDiedAfterMs: number('cursorDiedAfterMs'),
    moves: number('moves'),
    arrivals: {
      seen: number('arrivals:seen'),
      watchedSeconds: number('arrivals:watchedSeconds'),
      atMs: number('arrivals:atMs'),
    },
    limits,
  };
}

/** Parses the open transfers of a wallet. An entry of another shape is omitted; pages write it anew. */
export function parseOpen(stored: { readonly [field: string]: string }): OpenTransfer[] {
  return Object.entries(stored).flatMap(([field, text]) => {
    const transfer = jsonOf(text);
    const subject = subjectOf(field);
    if (!isStoredOpen(transfer) || subject === null) return [];
    const [status, route, sinceMs, seenMs, headMs] = transfer;
    const headAtMs = headMs === null ? null : sinceMs + headMs;
    return [{ subject, status, route, sinceMs, seenAtMs: sinceMs + seenMs, headAtMs }];
  });
}

const INTENT = /^intent:0x([0-9a-f]{64})$/;

/** The field of an open transfer: the 32 bytes of an intent as base64url, which has no colon, or the subject id. */
export function openField(subject: string): string {
  const [, digits] = INTENT.exec(subject) ?? [];
  return digits === undefined ? subject : Buffer.from(digits, 'hex').toString('base64url');
}

const INTENT_FIELD = /^[\w-]{43}$/;

function subjectOf(field: string): SubjectId | null {
  if (INTENT_FIELD.test(field))
    return asSubjectId(`intent:0x${Buffer.from(field, 'base64url').toString('hex')}`);
  return parseSubjectId(field) === null ? null : asSubjectId(field);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Formats an open transfer for storage. */
export function openText(transfer: OpenTransfer): string {
  const { status, route, sinceMs, seenAtMs, headAtMs } = transfer;
  const headMs = headAtMs === null ? null : headAtMs - sinceMs;
  return JSON.stringify([status, route, sinceMs, seenAtMs - sinceMs, headMs] satisfies StoredOpen);
}

/** Bytes of an open transfer beside its texts, as V8 stores it. */
const TRANSFER_BYTES = 150;

function bytesOf(wallet: SubjectId, { version, transfers }: OpenTransfers): number {
  let bytes = bytesOfTexts(wallet, version);
  for (const { subject, status, route } of transfers)
    bytes += TRANSFER_BYTES + subject.length + 2 * (status.length + route.length);
  return bytes;
}

/** The states of a wallet's first sweep: it is running, or a cursor was refused. In the order of their scores. */
export const UNSWEPT_STATES = ['sweeping', 'broken'] as const;

export type UnsweptState = (typeof UNSWEPT_STATES)[number];

const TRIMMED_AT_ONCE = 200;

/** Facts of wallets beyond the records of their pages, where no poll of the wallet itself notes them. */
export class WalletStore extends RedisStore {
  /** The open transfers that this process has read or stored last. Redis decides whether they still count, by their version. */
  readonly #open = new BoundedMap<SubjectId, OpenTransfers>({ ...CACHES.openTransfers, bytesOf });
  #trimCursor = '0';

  /** Notes that no sweep has read a wallet to its end yet: one is running, or a cursor was refused. */
  async noteUnswept(wallet: SubjectId, state: UnsweptState): Promise<void> {
    if (state === 'broken') await this.redis.zadd(this.keys.unswept, 1, wallet);
    else await this.redis.zadd(this.keys.unswept, 'NX', 0, wallet);
  }

  async noteSwept(wallet: SubjectId): Promise<void> {
    await this.redis.zrem(this.keys.unswept, wallet);
  }

  async unswept(): Promise<{ state: UnsweptState; count: number }[]> {
    return Promise.all(
      UNSWEPT_STATES.map(async (state, score) => ({
        state,
        count: await this.redis.zcount(this.keys.unswept, score, score),
      })),
    );
  }

  /** Removes wallets that nobody tracks any more from the unswept ones, a bounded number at a time. */
  async trimUnswept(isTracked: (wallet: SubjectId) => Promise<boolean>): Promise<void> {
    const { unswept } = this.keys;
    const [cursor, rows] = await this.redis.zscan(unswept, this.#trimCursor, 'COUNT', TRIMMED_AT_ONCE);
    this.#trimCursor = cursor;
    for (const wallet of rows.filter((_, index) => index % 2 === 0)) {
      if (!(await isTracked(asSubjectId(wallet)))) await this.redis.zrem(unswept, wallet);
    }
  }

  async note(wallet: SubjectId, facts: NotedFacts): Promise<void> {
    await this.redis.hset(this.keys.wallet(wallet), facts);
  }

  /** Returns the open transfers of a wallet that are in memory; null for none. */
  heldOpen(wallet: SubjectId): OpenTransfers | null {
    return this.#open.get(wallet) ?? null;
  }

  holdOpen(wallet: SubjectId, open: OpenTransfers): void {
    if (open.transfers.length > 0) this.#open.set(wallet, open);
    else this.#open.delete(wallet);
  }

  /** Stores the state of a transfer from its own poll in some wallets; the time of the head stays as it was. */
  async noteTransfer(
    wallets: readonly SubjectId[],
    transfer: ShownTransfer & { isOver: boolean },
  ): Promise<void> {
    const { subject, isOver } = transfer;
    for (const wallet of wallets) {
      const key = this.keys.open(wallet);
      const field = openField(subject);
      const [before] = isOver ? [] : parseOpen({ [field]: (await this.redis.hget(key, field)) ?? '' });
      const state = isOver ? null : openText({ ...transfer, headAtMs: before?.headAtMs ?? null });
      const version = randomBytes(6).toString('base64url');
      await scripts.noteOpen(this.redis, { keys: { open: key }, args: { field, state, version } });
    }
  }
}

/** Digits per part of an amount: each part stays a number that Redis can add. */
const PART_DIGITS = 12;

const MOST_FIELDS = 7;

/** Whole base units, up to those of a uint256. */
const AMOUNT = /^\d{1,78}$/;

const TOKEN = /^[A-Za-z0-9_-]{1,40}:[A-Za-z0-9]{1,80}$/;

/** The number of transfers in a state, by route and source token, and the amount that they sent, in base units. */
export type OpenSum = {
  state: OpenState;
  route: string;
  chainId: string;
  token: string;
  count: number;
  amount: bigint;
};

/** Sums of all processes by state, route and token, and the start of the oldest transfer in each state (Unix seconds). */
export type OpenSums = { sums: OpenSum[]; oldest: { state: OpenState; since: number | null }[] };

/** Formats a transfer for the counts of a commit: `<state>|<route>|<token>|<ones>,<10^12>,…|<since>`; `""` for none. */
export function openSumText(open: OpenAmount | null): string {
  if (open === null) return '';
  const { state, route, sent, since } = open;
  const key = tokenKey(sent.chainId ?? '', sent.token ?? '');
  const isReadable = TOKEN.test(key) && AMOUNT.test(sent.amount ?? '');
  const parts = isReadable ? limbsOf(sent.amount ?? '') : '';
  return [state, route, isReadable ? key : '', parts, since].join('|');
}

/** Splits an amount into limbs, the lowest first: `12,1` for 10^12 + 12. */
function limbsOf(amount: string): string {
  const parts: string[] = [];
  for (let end = amount.length; end > 0; end -= PART_DIGITS) {
    parts.push(String(Number(amount.slice(Math.max(0, end - PART_DIGITS), end))));
  }
  return parts.join(',');
}

/** Reads the open transfers: a bounded number of fields and one entry per state, however many there are. */
export async function readOpenTransfers(redis: RedisClient, keys: Keys): Promise<OpenSums> {
  const base = `${keys.counts}:open`;
  const [stored, ...firsts] = await Promise.all([
    redis.hgetall(base),
    ...OPEN_STATES.map((state) => redis.zrange(`${base}:${state}`, '0', '0', 'WITHSCORES')),
  ]);
  const sums = Object.entries(stored).flatMap(([field, count]) => {
    const [state, route = '', token = '', part] = field.split('|');
    const open = OPEN_STATES.find((one) => one === state);
    if (open === undefined || part !== undefined) return [];
    const amount = Array.from({ length: MOST_FIELDS }, (_, index) =>
      whole(stored[`${field}|${index}`]),
    ).reduceRight((sum, one) => sum * 10n ** BigInt(PART_DIGITS) + one, 0n);
    const [chainId = '', address = ''] = token.split(':');
    return [{ state: open, route, chainId, token: address, count: Number(whole(count)), amount }];
  });
  const oldest = OPEN_STATES.map((state, index) => {
    const since = firsts[index]?.[1];
    return { state, since: since === undefined ? null : Number(since) };
  });
  return { sums, oldest };
}

function whole(text: string | undefined): bigint {
  return /^-?\d+$/.test(text ?? '') ? BigInt(text ?? '') : 0n;
}
