import { expect } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import type { UpstreamRecord } from '../../src/domain/subjects/record.ts';
import type { SubjectId } from '../../src/domain/subjects/subject.ts';
import { openTransfer } from '../../src/domain/transfers/transfer-move.ts';
import { commitDue } from '../../src/queues/polls/commit-flagged.ts';
import { commitRecord } from '../../src/queues/polls/commit-record.ts';
import type { CommitContext } from '../../src/queues/polls/poll-context.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { OwnEntries } from '../../src/store/own-entries.ts';
import { PlanStore } from '../../src/store/plan.ts';
import { parseMember } from '../../src/store/plan-members.ts';
import { type SubjectEntry, SubjectStore } from '../../src/store/subjects.ts';
import { type OpenSums, readOpenTransfers } from '../../src/store/wallets.ts';
import { commitDeps } from './commit-deps.ts';
import { testPrefix } from './daemon.ts';
import { firstEpoch } from './epoch.ts';
import { eventually } from './eventually.ts';

export const T0 = 1_800_000_000;
export const T0_MS = T0 * 1_000;

/** A token's address as an upstream writes it, in mixed case, and as it is stored. */
export const TOKEN = '0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d';

/** A record with the amount that its source transaction sent. */
export function sent(amount: string, more: JsonObject = {}): JsonObject {
  return { sourceTx: { chainId: 56, token: TOKEN, amount, txHash: '0xab', ...more } };
}

export function record(
  subject: SubjectId,
  status: string,
  updatedAt: number,
  more: JsonObject,
): UpstreamRecord {
  const raw = { id: subject, type: 'intent', status, updatedAt, ...more };
  return { subject, status, updatedAt, names: [], raw, unreadable: [] };
}

/** Transfers on pages of wallets, in the stores that count open ones. */
export class OpenTransfersStage {
  readonly redis: RedisClient;
  readonly keys: Keys;
  readonly own = new OwnEntries();
  readonly subjects: SubjectStore;
  readonly plan: PlanStore;
  readonly deps: CommitContext;

  readonly #redisUrl: string;

  constructor(redisUrl: string, keys: Keys = new Keys(testPrefix())) {
    this.#redisUrl = redisUrl;
    this.keys = keys;
    this.redis = connect({ kind: 'server', url: redisUrl });
    this.subjects = new SubjectStore(this.redis, this.keys, {
      epoch: firstEpoch(this.redis, this.keys),
      own: this.own,
    });
    this.plan = new PlanStore(this.redis, this.keys);
    this.deps = commitDeps(this.redis, this.keys, { subjects: this.subjects, plan: this.plan });
  }

  close(): void {
    this.redis.disconnect();
  }

  /** Runs an act of another process, which loses its connection as soon as it has sent its commit. */
  async killedWhile(act: (other: OpenTransfersStage) => Promise<void>): Promise<void> {
    const other = new OpenTransfersStage(this.#redisUrl, this.keys);
    const id = String(await other.redis.client('ID'));
    const commit = other.subjects.commit.bind(other.subjects);
    other.subjects.commit = (wanted) => {
      const sentIt = commit(wanted);
      other.close();
      return sentIt;
    };
    await act(other).catch(() => undefined);
    other.close();
    await eventually('the connection to be gone', async () => {
      const clients = String(await this.redis.client('LIST'));
      return !clients.includes(`id=${id} `);
    });
  }

  async entryOf(subject: SubjectId): Promise<SubjectEntry> {
    const [entry] = await this.subjects.readEach([subject]);
    if (entry === undefined) throw new Error('nothing was found');
    return entry;
  }

  /** Ingests an answer as a page of a wallet would show it, which tracks the transfer; `nowMs` is when it comes. */
  async take(raw: UpstreamRecord, { nowMs = T0_MS, wallet = 's' } = {}): Promise<void> {
    const asOf = (await this.redis.get(this.keys.commit)) ?? '0';
    const claim = { key: `${wallet}|wallet:0x01`, atMs: 1, historyBefore: null, served: false };
    await this.redis.hset(this.keys.wanted, claim.key, '1');
    const observation = { asOf, nowMs, price: 1, exact: false, claims: [claim] };
    const stored = await this.entryOf(raw.subject);
    expect((await commitRecord(this.deps, raw, stored, observation)).outcome).not.toBe('superseded');
  }

  /** Emits a transfer as overdue; nothing where it is not known. */
  async reportOverdue(subject: SubjectId, nowMs: number): Promise<void> {
    const { snapshot, claims } = await this.entryOf(subject);
    if (snapshot === null) return;
    const { status } = snapshot;
    const transition = {
      type: 'intent.overdue',
      status,
      previousStatus: status,
      changes: [],
      skipped: false,
      regression: false,
    };
    const flagged = { flag: 'overdue:60000', overdueAfter: 60_000, warnBeforeMs: null, untilMs: null };
    const due = [{ atMs: nowMs, event: { ...flagged, transition, raw: {} }, claimKeys: null }];
    await commitDue(this.deps, { subject, snapshot, claims, promised: null }, { due, nowMs });
  }

  /** Ends the tracking of a transfer; nothing where it is not tracked. */
  async retire(subject: SubjectId): Promise<void> {
    const { snapshot } = await this.entryOf(subject);
    await this.plan.untrackFinished(subject, snapshot?.commit ?? 0);
  }

  read(): Promise<OpenSums> {
    return readOpenTransfers(this.redis, this.keys);
  }

  /** The start of the oldest transfer in each state; without states that have none. */
  async oldest(): Promise<Record<string, number>> {
    const { oldest } = await this.read();
    return Object.fromEntries(oldest.flatMap(({ state, since }) => (since === null ? [] : [[state, since]])));
  }

  async sums(): Promise<string[]> {
    const { sums } = await this.read();
    return sums
      .map(({ state, route, chainId, token, count, amount }) =>
        [state, route, chainId, token === TOKEN.toLowerCase() ? 'token' : token, count, amount].join(' '),
      )
      .sort();
  }

  /** True when no counts of open transfers are stored; no other data about them may grow. */
  async isEmpty(): Promise<boolean> {
    const found = await this.redis.keys(`${this.keys.counts}:open*`);
    return found.length === 0;
  }

  /** Computes the correct sums from the snapshots of all tracked transfers, and the start of the oldest one in each state. */
  async truth(): Promise<{ sums: string[]; oldest: Record<string, number> }> {
    const tracked = await this.redis.hkeys(`${this.keys.plan('status')}:items`);
    const subjects = tracked.map((member) => parseMember(member).subject);
    const sums = new Map<string, { count: number; amount: bigint }>();
    const oldest: Record<string, number> = {};
    for (const subject of subjects) {
      const { snapshot } = await this.entryOf(subject);
      const open = snapshot === null ? null : openTransfer(subject, snapshot);
      if (open === null) continue;
      const { state, route, sent: paid, since } = open;
      // Without a token there is no amount either.
      const hasToken = paid.token != null;
      const name = [state, route, hasToken ? paid.chainId : '', hasToken ? 'token' : ''].join(' ');
      const { count, amount } = sums.get(name) ?? { count: 0, amount: 0n };
      sums.set(name, { count: count + 1, amount: amount + BigInt(hasToken ? (paid.amount ?? '0') : '0') });
      oldest[state] = Math.min(oldest[state] ?? since, since);
    }
    return {
      sums: [...sums].map(([name, { count, amount }]) => `${name} ${count} ${amount}`).sort(),
      oldest,
    };
  }
}
