import { bytes, chance, integer, pick, type Random } from '../../sandbox/world/random.ts';
import { LIMITS } from '../../src/domain/limits.ts';

const { bytes: MOST_BYTES, depth: MOST_DEPTH, members: MOST_MEMBERS } = LIMITS.upstream;

/** The wallet of these transfers. The sandbox does not know it. */
export const HOSTILE_WALLET = '0x5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e';

/** Greatest number of transfers under way, and interval between their births. */
const MOST_LIVING = 12;
const BIRTH_EVERY_MS = 1_000;

/**
 * Once a well-formed answer has shown a status, it lasts for this time, and until the request is repeated. By then the daemon has
 * stored the answer, also on a slow machine, and no other answer about the transfer is under way. So each shown status has to
 * become an event.
 */
const STAYS_MS = 5_000;

/** A request is not repeated for up to an hour where pages show its transfer: after this time its answer has been stored too. */
const STORED_MS = 60_000;

/** The time that a transfer stays on the pages after its last status was shown. */
const LINGERS_MS = 20_000;

/** Share of the answers that exceed a limit once: the daemon must store nothing of them. */
const BEYOND_SHARE = 0.05;
/** Share of the pages with further records that must cause no event. */
const STRANGER_SHARE = 0.3;
const LARGE_SHARE = 0.03;

/** Levels of a page around a member of a record: its object, its list and the record. */
const LEVELS_AROUND = 3;
const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
const digits = (count: number): string => `1.${'0'.repeat(count - 3)}1`;

/** Members beside the core of a record; none may prevent its event. */
const MEMBERS: readonly ((random: Random) => string)[] = [
  (random) => `"hostileNumber":${digits(pick(random, [999, 1_000, 1_001, 50_000]))}`,
  (random) => `"hostileNumbers":[-0,1e400,${integer(random, 1_000)}e-999,9007199254740993]`,
  () => `"hostileDepth":${nested(MOST_DEPTH - LEVELS_AROUND)}`,
  () => '"hostileText":"\\ud800 \\u0000 \\u202e"',
  () => '"\\ud800":"\\udfff"',
  () => '"__proto__":{"status":"stolen","toString":1}',
  () => '"constructor":{"prototype":{"status":"stolen"}},"hasOwnProperty":0,"toJSON":"x"',
  () => '"kind":"receiver","receiver":"UPSTREAM:status","audit":"intentwatch","route":"route:1"',
  () => '"sourceTx":5,"destinationTx":{"chainId":"x"},"steps":"none","intentHashes":{"0":1}',
  () => '"steps":[null,{"status":{}},[]],"subStatuses":[{"intentHashes":7}],"txHash":[]',
  (random) =>
    `"metadata":{${Array.from({ length: 50 }, (_, index) => `"m${index}":"${word(random, 1_000)}"`).join()}}`,
  (random) => `"hostileBytes":${JSON.stringify(Buffer.from(bytes(random, 300)).toString('latin1'))}`,
];

/** Statuses that the interface does not name. A transfer has each at most once. */
const WORDS = [
  'seen',
  '__proto__',
  'constructor',
  'WAITING FOR',
  'läuft',
  'ops@example.com',
  '\ud800',
  '中文',
  '***?',
];

/** Records without events: of reserved kinds, and without a readable core. */
const STRANGERS = [
  '{"id":"receiver:backend","type":"intent","status":"stolen","updatedAt":1}',
  '{"id":"UPSTREAM:status","type":"intent","status":"stolen","updatedAt":1}',
  '{"id":"1234","type":"Audit","status":"stolen","updatedAt":1}',
  '{"id":"intentwatch:1","type":"x","status":"stolen","updatedAt":1}',
  '{"id":"route:1","type":"x","status":"stolen","updatedAt":1}',
  '{"id":5,"type":"intent","status":"stolen"}',
  '{"id":"intent:0x1","type":"intent","status":{}}',
  'null',
  '[]',
];

type Transfer = {
  hash: string;
  /** In order; the last one is final. */
  statuses: readonly string[];
  step: number;
  /** Unix seconds. */
  updatedAt: number;
  /** Time when an answer first showed its present status; null before that. */
  shownAtMs: number | null;
  /** The request of that answer; null before that, and once it was repeated. */
  shownBy: string | null;
  record: string;
};

/**
 * Transfers with well-formed records and hostile members around the core. A status changes only after an answer within the limits
 * has shown it and it has lasted: `shown` is exactly the set that the daemon has to report.
 */
export class HostileTransfers {
  readonly #random: Random;
  readonly #transfers = new Map<string, Transfer>();
  #bornAtMs = 0;
  readonly shown = new Map<string, string[]>();

  constructor(random: Random) {
    this.#random = random;
  }

  /** Advances the transfers; new ones are born only while `isOpen`. */
  advance(nowMs: number, isOpen: boolean): void {
    for (const transfer of this.#transfers.values()) {
      if (transfer.shownAtMs === null) continue;
      const shownForMs = nowMs - transfer.shownAtMs;
      if (transfer.step === transfer.statuses.length - 1) {
        if (shownForMs >= LINGERS_MS) this.#transfers.delete(transfer.hash);
      } else if (shownForMs >= (transfer.shownBy === null ? STAYS_MS : STORED_MS)) {
        this.#setStep(transfer, transfer.step + 1, nowMs);
      }
    }
    if (!isOpen || this.#transfers.size >= MOST_LIVING || nowMs - this.#bornAtMs < BIRTH_EVERY_MS) return;
    this.#bornAtMs = nowMs;
    const first = integer(this.#random, WORDS.length);
    const words = [...WORDS, ...WORDS].slice(first, first + 1 + integer(this.#random, 3));
    const transfer: Transfer = {
      hash: `0x${Buffer.from(bytes(this.#random, 32)).toString('hex')}`,
      statuses: ['pending', ...words, 'settled'],
      step: 0,
      updatedAt: 0,
      shownAtMs: null,
      shownBy: null,
      record: '',
    };
    this.#setStep(transfer, 0, nowMs);
    this.#transfers.set(transfer.hash, transfer);
  }

  get waiting(): string[] {
    return [...this.#transfers.values()]
      .filter(({ step, statuses, shownAtMs }) => step < statuses.length - 1 || shownAtMs === null)
      .map(
        ({ hash, statuses, step, shownAtMs, record }) =>
          `intent:${hash} ${statuses[step]} (${shownAtMs === null ? 'not shown' : 'shown'}, ${record.length} characters)`,
      );
  }

  #setStep(transfer: Transfer, step: number, nowMs: number): void {
    const random = this.#random;
    transfer.step = step;
    transfer.updatedAt = Math.ceil(nowMs / 1_000);
    transfer.shownAtMs = null;
    transfer.shownBy = null;
    const id = chance(random, 0.2)
      ? `INTENT:0x${transfer.hash.slice(2).toUpperCase()}`
      : `intent:${transfer.hash}`;
    const core = [
      `"id":"${id}"`,
      '"type":"intent"',
      `"status":${JSON.stringify(transfer.statuses[step] ?? '')}`,
      `"updatedAt":${transfer.updatedAt}`,
    ];
    const added = Array.from({ length: integer(random, 4) }, () => pick(random, MEMBERS)(random));
    const record = `{${[...added, ...core].join()}}`;
    transfer.record = chance(random, LARGE_SHARE) ? largeRecord(random, record) : record;
  }

  /** Body of the answer to a request about these transfers; null for any other request. */
  answer(path: string, nowMs: number): string | null {
    const query = new URL(path, 'http://upstream').searchParams;
    const found = this.#found(query);
    if (found === null) return null;
    const listing = `${query.get('intentHash') ?? query.get('wallet')} ${query.get('status')}`;
    // A poll ends before the next one of the same item begins.
    const isNext = !query.has('cursor');
    for (const transfer of this.#transfers.values()) {
      if (isNext && transfer.shownBy === listing) transfer.shownBy = null;
    }
    const { transfers, nextCursor } = found;
    const records = transfers.map(({ record }) => record);
    const random = this.#random;
    if (query.has('wallet') && chance(random, STRANGER_SHARE)) {
      records.splice(integer(random, records.length + 1), 0, pick(random, STRANGERS));
    }
    const body = pageOf(records, nextCursor);
    if (transfers.length > 0 && chance(random, BEYOND_SHARE)) return beyond(random, body);
    // The strangers count towards the limits too.
    const isWithin = Buffer.byteLength(body) <= MOST_BYTES && membersOf(body) <= MOST_MEMBERS;
    if (isWithin) for (const transfer of transfers) this.#note(transfer, { nowMs, listing });
    return body;
  }

  #found(query: URLSearchParams): { transfers: Transfer[]; nextCursor: string | null } | null {
    const hash = query.get('intentHash')?.toLowerCase();
    if (hash !== undefined) {
      const transfer = this.#transfers.get(hash);
      return transfer === undefined ? null : { transfers: [transfer], nextCursor: null };
    }
    if (query.get('wallet')?.toLowerCase() !== HOSTILE_WALLET) return null;
    const status = query.get('status')?.toLowerCase();
    const listed = [...this.#transfers.values()]
      .filter(({ statuses, step }) => status === undefined || statuses[step]?.toLowerCase() === status)
      .toSorted((a, b) => b.updatedAt - a.updatedAt);
    const from = Number(query.get('cursor') ?? 0);
    // As long as `null`, so that a page of one record has the same length with it as without.
    const to = from + Number(query.get('limit') ?? 20);
    return {
      transfers: listed.slice(from, to),
      nextCursor: to < listed.length ? String(to).padStart(2, '0') : null,
    };
  }

  #note(transfer: Transfer, { nowMs, listing }: { nowMs: number; listing: string }): void {
    if (transfer.shownAtMs !== null) return;
    transfer.shownAtMs = nowMs;
    transfer.shownBy = listing;
    const subject = `intent:${transfer.hash}`;
    const status = (transfer.statuses[transfer.step] ?? '').toWellFormed();
    this.shown.set(subject, [...(this.shown.get(subject) ?? []), status]);
  }
}

function pageOf(records: readonly string[], nextCursor: string | null): string {
  return `{"results":[${records.join()}],"nextCursor":${JSON.stringify(nextCursor)}}`;
}

/** A record that makes a page of one exactly as large as a limit, or one smaller. */
function largeRecord(random: Random, record: string): string {
  const less = integer(random, 2);
  const alone = pageOf([`{"pad":"",${record.slice(1)}`], null);
  if (chance(random, 0.5)) {
    const pad = 'x'.repeat(MOST_BYTES - Buffer.byteLength(alone) - less);
    return `{"pad":"${pad}",${record.slice(1)}`;
  }
  const pad = Array(MOST_MEMBERS - membersOf(alone) - less).fill('0');
  return `{"pad":[${pad.join()}],${record.slice(1)}`;
}

/** A page with one more member, which exceeds a limit. */
function beyond(random: Random, body: string): string {
  const pad = pick(random, [
    `"${'x'.repeat(Math.max(0, MOST_BYTES + 1 - Buffer.byteLength(body) - '"pad":"",'.length))}"`,
    `[${Array(Math.max(0, MOST_MEMBERS - membersOf(body)))
      .fill('0')
      .join()}]`,
    nested(MOST_DEPTH),
  ]);
  return `{"pad":${pad},${body.slice(1)}`;
}

/** Number of elements of all lists, and members of all objects, of a JSON text; a repeated name counts twice. */
function membersOf(text: string): number {
  const bare = text.replaceAll(/"[^"\\]*(?:\\.[^"\\]*)*"/g, '0');
  return bare.split(',').length - 1 + (bare.match(/[[{](?![\]}])/g) ?? []).length;
}

function word(random: Random, length: number): string {
  return Buffer.from(bytes(random, length / 2)).toString('hex');
}
