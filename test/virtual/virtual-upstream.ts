import { chance, integer, pick, type Random } from '../../sandbox/world/random.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import {
  intentRecord,
  type Scripted,
  type ScriptedRequest,
  ScriptedUpstream,
} from '../support/scripted-upstream.ts';
import { CHAIN } from './virtual-config.ts';
import type { VirtualTime } from './virtual-time.ts';

const LIVES = [
  ['pending', 'filled', 'settled'],
  ['pending', 'filled', 'settled'],
  ['pending', 'expired', 'refundable', 'refunded'],
  ['pending', 'failed'],
];

/** Lives of jobs of the gateway and of vaults, whose records have no time. */
const JOB_LIVES = [
  ['pending', 'permit_sent', 'completed'],
  ['pending', 'failed'],
];
const VAULT_LIVES = [
  ['pending', 'funded', 'published'],
  ['pending', 'expired_unfunded'],
];

const STATUS_PATH = '/v1/intents/status';
const JOB_PATH = '/deposit-gateway/v1/gasless/jobs/';
const VAULT_PATH = '/deposit-gateway/v2/depositAddresses/';

/** A state of a transfer. `updatedAt` is Unix seconds, 0 where its records have no time; `atMs` is its true time. */
export type State = { status: string; updatedAt: number; atMs: number };

/** A transfer, job or vault; `subject` is its canonical id. Of a wallet (null: found only by its name), or of a transaction. */
export type Transfer = {
  subject: string;
  wallet: string | null;
  tx: string | null;
  life: readonly string[];
  states: State[];
};

/** A state that an answer showed. `poll` is the number of the answered poll; `isPage`: it listed a wallet. */
export type Shown = { transfer: Transfer; state: State; atMs: number; poll: number; isPage: boolean };

/** Order of the transfers on pages, and lifetime of cursors (ms). */
export type Listing = { order: 'newest' | 'oldest' | 'mixed'; cursorMs: number };

/** An upstream in virtual time that records the states that its answers showed. */
export class VirtualUpstream {
  readonly #time: VirtualTime;
  readonly #random: Random;
  readonly transfers: Transfer[] = [];
  readonly shown: Shown[] = [];
  readonly #server: ScriptedUpstream;
  #made = 0;
  #poll = 0;
  listing: Listing = { order: 'newest', cursorMs: Number.POSITIVE_INFINITY };
  /** Offsets of the `Date` of answers, ms: each answer uses the next; the last one repeats. */
  dateOffMs: number[] = [0];
  isAway = false;

  constructor(time: VirtualTime, random: Random) {
    this.#time = time;
    this.#random = random;
    this.#server = new ScriptedUpstream((request) => this.#answer(request));
  }

  async start(): Promise<void> {
    await this.#server.start();
  }

  get url(): string {
    return this.#server.url;
  }

  async close(): Promise<void> {
    await this.#server.close();
  }

  /** Begins a poll: later answers belong to it. */
  nextPoll(): void {
    this.#poll += 1;
  }

  get poll(): number {
    return this.#poll;
  }

  bear(of: { wallet?: string; tx?: string; hash?: string; isAddress?: boolean }): Transfer {
    this.#made += 1;
    const id = of.hash ?? `0x${(this.#made + 0xa0_00_00).toString(16).padStart(of.isAddress ? 40 : 64, 'c')}`;
    const transfer: Transfer = {
      subject: `${of.isAddress ? 'deposit-address' : 'intent'}:${id}`,
      wallet: of.wallet ?? null,
      tx: of.tx ?? null,
      life: pick(this.#random, LIVES),
      states: [],
    };
    this.transfers.push(transfer);
    this.move(transfer);
    return transfer;
  }

  /** Adds a job of the gateway, or a vault, by its id. */
  bearTimeless(subject: string): void {
    const life = pick(this.#random, subject.startsWith('vault:') ? VAULT_LIVES : JOB_LIVES);
    const transfer: Transfer = { subject, wallet: null, tx: null, life, states: [] };
    this.transfers.push(transfer);
    this.move(transfer);
  }

  /** Moves a transfer on. An ended one does not change. */
  move(transfer: Transfer): void {
    const status = transfer.life[transfer.states.length];
    if (status === undefined) return;
    const before = transfer.states.at(-1)?.updatedAt ?? 0;
    const updatedAt = isTimeless(transfer) ? 0 : Math.max(before + 1, Math.floor(this.#time.nowMs / 1_000));
    transfer.states.push({ status, updatedAt, atMs: this.#time.nowMs });
  }

  get living(): Transfer[] {
    return this.transfers.filter(({ life, states }) => states.length < life.length);
  }

  #answer({ path, query }: ScriptedRequest): Scripted {
    if (this.isAway) return { status: 503, body: '{}' };
    const idOf = (prefix: string): string | null =>
      path.startsWith(prefix) ? path.slice(prefix.length).toLowerCase() : null;
    const [job, vault] = [idOf(JOB_PATH), idOf(VAULT_PATH)];
    if (job !== null) return this.#timeless(`gasless:gateway:${job}`, { id: job }, 'status');
    if (vault !== null)
      return this.#timeless(
        `vault:${CHAIN}:${vault}`,
        { vaultAddress: vault, sourceChainId: CHAIN },
        'state',
      );
    if (path !== STATUS_PATH) return { status: 404, body: '{}' };
    const { wallet, cursor } = query;
    if (wallet !== undefined) return this.#page(wallet.toLowerCase(), query, cursor ?? null);
    const hash = query.intentHash?.toLowerCase();
    const tx = query.sourceTxHash?.toLowerCase();
    const found = this.transfers.filter((one) =>
      hash === undefined ? tx !== undefined && one.tx === tx : one.subject === `intent:${hash}`,
    );
    if (found.length > 0) return this.#recordsPage(found, { isPage: false });
    const unknown = hash ?? tx ?? '';
    return this.#json([intentRecord(unknown, 'unknown', null)], null);
  }

  #timeless(subject: string, record: JsonObject, member: 'status' | 'state'): Scripted {
    const transfer = this.transfers.find((one) => one.subject === subject);
    const state = transfer?.states.at(-1);
    if (transfer === undefined || state === undefined) return { status: 404, body: '{}' };
    this.shown.push({ transfer, state, atMs: this.#time.nowMs, poll: this.#poll, isPage: false });
    return this.#answerWith({ data: { ...record, [member]: state.status } });
  }

  #page(
    wallet: string,
    { status, limit }: Record<string, string | undefined>,
    cursor: string | null,
  ): Scripted {
    let from = 0;
    if (cursor !== null) {
      const [issuedMs = 0, place = 0] = cursor.split('-').map(Number);
      if (this.#time.nowMs - issuedMs > this.listing.cursorMs)
        return {
          status: 400,
          body: JSON.stringify({
            type: 'about:blank/invalid-request',
            title: 'x',
            status: 400,
            code: 'invalid-request',
            errors: [{ field: 'cursor', detail: 'Invalid cursor' }],
          }),
        };
      from = place;
    }
    const all = this.transfers
      .filter((one) => one.wallet === wallet)
      .filter(({ states }) => status === undefined || states.at(-1)?.status === status);
    const at = ({ states }: Transfer): number => states.at(-1)?.updatedAt ?? 0;
    if (this.listing.order === 'newest')
      all.sort((a, b) => at(b) - at(a) || (a.subject < b.subject ? -1 : 1));
    if (this.listing.order === 'oldest')
      all.sort((a, b) => at(a) - at(b) || (a.subject < b.subject ? -1 : 1));
    if (this.listing.order === 'mixed') all.sort((a, b) => (turned(a) < turned(b) ? -1 : 1));
    const to = from + Math.min(Number(limit ?? 20), MOST);
    const nextCursor = to < all.length ? `${this.#time.nowMs}-${to}` : null;
    return this.#recordsPage(all.slice(from, to), { isPage: true, nextCursor });
  }

  #recordsPage(
    transfers: readonly Transfer[],
    { isPage, nextCursor = null }: { isPage: boolean; nextCursor?: string | null },
  ): Scripted {
    const records = transfers.flatMap((transfer) => {
      const state = transfer.states.at(-1);
      if (state === undefined) return [];
      this.shown.push({ transfer, state, atMs: this.#time.nowMs, poll: this.#poll, isPage });
      return [this.#record(transfer, state)];
    });
    return this.#json(records, nextCursor);
  }

  #record({ subject, tx }: Transfer, { status, updatedAt }: State): JsonObject {
    const colon = subject.indexOf(':');
    const [kind, id] = [subject.slice(0, colon), subject.slice(colon + 1)];
    // A client that checksums an address writes it in another case.
    const spelled = chance(this.#random, 0.5) ? id : `0x${id.slice(2).toUpperCase()}`;
    if (kind === 'deposit-address') return { id: `${kind}:${spelled}`, type: kind, status, updatedAt };
    const paid = (txHash: string): JsonObject => ({
      chainId: CHAIN,
      txHash,
      token: TOKEN,
      amount: '1000000',
    });
    return intentRecord(id, status, updatedAt, {
      sourceTx: paid(tx ?? id.replaceAll('c', 'a')),
      ...(PAID_OUT.has(status) ? { destinationTx: paid(id.replaceAll('c', 'd')) } : {}),
    });
  }

  #json(records: readonly JsonObject[], nextCursor: string | null): Scripted {
    return this.#answerWith({ results: [...records], nextCursor });
  }

  #answerWith(body: JsonObject): Scripted {
    const offMs = (this.dateOffMs.length > 1 ? this.dateOffMs.shift() : this.dateOffMs[0]) ?? 0;
    const date = new Date(this.#time.nowMs + offMs).toUTCString();
    return { status: 200, body: JSON.stringify(body), headers: { date } };
  }
}

/** Greatest number of records of a page: small, so that some wallets have several. */
const MOST = 8;

const TOKEN = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';

const PAID_OUT: ReadonlySet<string> = new Set(['filled', 'settled']);

/** True when records of a transfer have no `updatedAt`. */
export function isTimeless({ subject }: Pick<Transfer, 'subject'>): boolean {
  return subject.startsWith('gasless:') || subject.startsWith('vault:');
}

function turned({ subject }: Transfer): string {
  return [...subject].reverse().join('');
}

/** A random transfer of some life that has not ended. */
export function someLiving(upstream: VirtualUpstream, random: Random, most: number): Transfer[] {
  const { living } = upstream;
  return Array.from(
    { length: Math.min(most, living.length) },
    () => living[integer(random, living.length)],
  ).flatMap((one) => one ?? []);
}
