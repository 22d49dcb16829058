import type { LogOwner } from '../domain/proof/log-owner.ts';
import { PAYMENTS, type Proof } from '../domain/proof/proof.ts';
import type { EndpointState } from '../domain/proof/recheck-times.ts';
import type { Stated } from '../domain/proof/statement.ts';
import type { WaitingReason } from '../domain/proof/verdict.ts';
import type { SubjectId } from '../domain/subjects/subject.ts';
import {
  type Check,
  type CheckState,
  checkId,
  fedPayment,
  type LastState,
  type NewCheck,
  ownerOf,
  STORED_CHECK,
  txOf,
  type Unstated,
} from './check-record.ts';
import type { RedisClient } from './commands.ts';
import { readConfirmedTime } from './confirmed-time.ts';
import type { Keys } from './keys.ts';
import { scripts } from './scripts.ts';
import { type OnForeign, RedisStore, readStored } from './stored.ts';

const LEASE_MS = 10_000;

const LONGEST_WAIT_MS = 3_600_000;

/** Interval for probing an endpoint that fails, and for reads of the final head of an endpoint that checks wait for. */
const PROBE_MS = 10_000;

/** The name for no endpoint, used by checks that ended in an error of our own. */
const NO_ENDPOINT = '';

const TRIMMED_AT_ONCE = 500;

/** Reason of a check whose chain was removed from the config: the check is requested anew when the chain is back. */
export const CHAIN_LEFT = 'chain-not-configured';

/** Reason of a check that waits for logs that other checks hold. */
const WAITS_FOR_LOGS: WaitingReason = 'claimed';

const REOPENED_AT_ONCE = 500;

/** A check that this process works on. */
export type ClaimedCheck = Check & { token: string };

/** The end of a check, in the shape of the scripts (see commands/include/check.lua). */
export type CheckEnding = {
  base: string;
  id: string;
  token: string;
  state: Exclude<CheckState, 'waiting'>;
  fields: string[];
  tx: string;
  logs: string[];
  from: string[];
  endpoints: object[];
  held: boolean;
  left: boolean;
};

/**
 * The end of a check. `logs` prove it, and prove no other from then on; `from` are the checks that they proved before, which
 * are requested anew. `isHeld`: other checks hold the logs that caused this end; it is requested anew when one is free.
 */
export type Ending = {
  state: Exclude<CheckState, 'waiting'>;
  because: string;
  proof: Proof | null;
  responses: readonly LastState[];
  endpoints: readonly EndpointState[];
  logs: readonly number[];
  from: readonly string[];
  isHeld: boolean;
};

/** The wait of a check, with its reason and responses. `seenAtMs`: when an endpoint had it in a block, if one had. */
type Postponement = {
  inMs: number;
  because: string;
  responses: readonly LastState[] | null;
  endpoints?: readonly EndpointState[] | null;
  failed?: number;
  seenAtMs?: number | null;
};

/** `gone`: the check was restated, or claimed by another process; `used`: a log that would prove it has proved another. */
export type EndOutcome = Awaited<ReturnType<typeof scripts.endCheck>>;

/** The checks of stated payments: those that wait, by chain and due time, and those that have ended. */
export class CheckStore extends RedisStore {
  readonly retentionMs: number;

  constructor(redis: RedisClient, keys: Keys, options: { retentionMs: number; onForeign?: OnForeign }) {
    super(redis, keys, options);
    this.retentionMs = options.retentionMs;
  }

  async cursor(): Promise<string> {
    return (await this.redis.get(this.keys.checksCursor)) ?? '';
  }

  /** Removes the cursor of the feed: events from now until the feed begins again are not checked. */
  async removeCursor(): Promise<void> {
    await this.redis.del(this.keys.checksCursor);
  }

  async begin(cursor: string): Promise<void> {
    await this.redis.set(this.keys.checksCursor, cursor, 'NX');
  }

  /**
   * Makes checks of statements, makes checks wait whose payment is no longer stated, and moves the cursor, in one step.
   * Returns how many began; null when another process feeds now, and then nothing was done.
   */
  async feed(
    step: { token: string; from: string; to: string },
    payments: readonly (NewCheck | Unstated)[],
  ): Promise<number | null> {
    const { token: fence, from, to } = step;
    const args = { fence, from, to, payments: payments.map(fedPayment) };
    const { isDone, begun } = await scripts.feedChecks(this.redis, { keys: this.keys, args });
    return isDone ? begun : null;
  }

  /**
   * Claims due checks, at most so many of each chain; with `all` also those that are not due, or that others work on. With the
   * `endpoints` of each chain, a check that waits for a failing endpoint becomes due now and then, and `heads` names the
   * endpoints whose final head is to be read now. `nextInMs`: time until the next check of these chains is due; null where
   * none waits.
   */
  async claim(
    token: string,
    capacities: ReadonlyMap<string, number>,
    { all = false, endpoints }: { all?: boolean; endpoints?: ReadonlyMap<string, readonly string[]> } = {},
  ): Promise<{
    claimed: ClaimedCheck[];
    nextInMs: number | null;
    heads: { chainId: string; endpoint: string }[];
  }> {
    const found = await scripts.claimChecks(this.redis, {
      keys: this.keys,
      args: {
        token,
        leaseMs: LEASE_MS,
        longestWaitMs: LONGEST_WAIT_MS,
        aheadMs: all ? LONGEST_WAIT_MS : 0,
        probeMs: PROBE_MS,
        chains: [...capacities].map(([chain, most]) => ({
          chain,
          most,
          endpoints: endpoints?.get(chain) ?? null,
        })),
      },
    });
    const claimed = found.claimed.flatMap(({ id, fields }) => {
      const check = this.#read(id, fields);
      // A check of a newer version waits for that version: its claim expires.
      return check === null ? [] : [{ ...check, token }];
    });
    const { nowMs, nextMs, heads } = found;
    return { claimed, nextInMs: nextMs === null ? null : Math.max(0, nextMs - nowMs), heads };
  }

  /** Makes those checks due that wait until the final head of an endpoint has reached this block. */
  async noteHead({ chainId, endpoint }: { chainId: string; endpoint: string }, head: string): Promise<void> {
    const args = { chain: chainId, endpoint, block: head };
    await scripts.noteHead(this.redis, { keys: this.keys, args });
  }

  /** Requests checks anew that ended by the removal of these chains, a bounded number. Returns how many. */
  async reopen(chains: readonly string[]): Promise<number> {
    return scripts.reopenChecks(this.redis, { keys: this.keys, args: { most: REOPENED_AT_ONCE, chains } });
  }

  /** Renews claims. Returns the ids of those that are lost. */
  async renew(claims: readonly { id: string; token: string }[]): Promise<string[]> {
    if (claims.length === 0) return [];
    return scripts.renewChecks(this.redis, { keys: this.keys, args: { leaseMs: LEASE_MS, claims } });
  }

  /** Makes the checks due that processes had claimed which are gone. */
  async returnClaims(processes: readonly string[]): Promise<void> {
    await scripts.returnChecks(this.redis, { keys: this.keys, args: { processes } });
  }

  /**
   * Postpones a check, and releases its logs where it wants those of others. `responses` and `endpoints`: the responses; null
   * where nothing was read. Without `endpoints`, a check that has `failed` waits for others to end without an error. False
   * when the claim is lost.
   */
  async postpone(
    { id, token }: { id: string; token: string },
    { inMs, because, responses, endpoints = null, failed = 0, seenAtMs = null }: Postponement,
  ): Promise<boolean> {
    const noted = responses === null ? [] : [{ name: 'responses', value: JSON.stringify(responses) }];
    const seen = seenAtMs === null ? [] : [{ name: 'seenAt', value: String(seenAtMs) }];
    const isRead = responses !== null;
    return scripts.postponeCheck(this.redis, {
      keys: this.keys,
      args: {
        id,
        token,
        inMs: Math.round(Math.min(inMs, LONGEST_WAIT_MS)),
        isRead,
        isForLogs: because === WAITS_FOR_LOGS && isRead,
        endpoints: endpoints === null ? failedStates(failed) : withoutError(endpoints),
        fields: [
          { name: 'because', value: because },
          { name: 'failed', value: String(failed) },
          ...seen,
          ...noted,
        ],
      },
    });
  }

  ending({ id, token, statement }: ClaimedCheck, ending: Ending): CheckEnding {
    const { state, because, proof, responses, endpoints, logs, from, isHeld } = ending;
    const fields = ['because', because, 'responses', JSON.stringify(responses)];
    return {
      base: this.keys.checks,
      id,
      token,
      state,
      fields: proof === null ? fields : [...fields, 'proof', JSON.stringify(proof)],
      tx: txOf(statement),
      logs: logs.map(String),
      from: [...from],
      endpoints: endpoints.length === 0 ? [] : withoutError(endpoints),
      held: isHeld,
      left: because === CHAIN_LEFT,
    };
  }

  async end(check: ClaimedCheck, ending: Ending): Promise<EndOutcome> {
    return scripts.endCheck(this.redis, { keys: this.keys, args: { ending: this.ending(check, ending) } });
  }

  /** Returns the other payments that logs of a statement's transaction proved: index of the log -> its owner. */
  async ownersOfLogs(statement: Stated): Promise<Map<number, LogOwner>> {
    const base = this.keys.checks;
    const ids = await this.redis.hgetall(`${base}:logs:${txOf(statement)}`);
    const others = Object.entries(ids).filter(([, id]) => id !== checkId(statement));
    const owners = await Promise.all(
      others.map(async ([index, id]): Promise<[number, LogOwner]> => {
        const fields = await this.redis.hgetall(`${base}:of:${id}`);
        return [Number(index), ownerOf(id, Object.keys(fields).length === 0 ? null : this.#read(id, fields))];
      }),
    );
    return new Map(owners);
  }

  /** In the order of the subject's payments. */
  async of(subject: SubjectId): Promise<Check[]> {
    const ids = PAYMENTS.map((payment) => checkId({ subject, payment }));
    const rows = await Promise.all(ids.map((id) => this.redis.hgetall(`${this.keys.checks}:of:${id}`)));
    return rows.flatMap((fields, index) => {
      const id = ids[index] ?? '';
      return Object.keys(fields).length === 0 ? [] : (this.#read(id, fields) ?? []);
    });
  }

  async counts(): Promise<{ chain: string; state: string; count: number }[]> {
    const counts = await this.redis.hgetall(`${this.keys.checks}:counts`);
    return Object.entries(counts).map(([field, count]) => {
      const bar = field.lastIndexOf('|');
      return { chain: field.slice(0, bar), state: field.slice(bar + 1), count: Number(count) };
    });
  }

  /** Returns the start of the oldest wait of each chain (Redis time, ms); null where no check waits. */
  async oldest(chains: readonly string[]): Promise<{ chain: string; sinceMs: number | null }[]> {
    return Promise.all(
      chains.map(async (chain) => {
        const key = `${this.keys.checks}:waiting:${chain}`;
        const [, since] = await this.redis.zrange(key, '0', '0', 'WITHSCORES');
        return { chain, sinceMs: since === undefined ? null : Number(since) };
      }),
    );
  }

  /** Removes checks whose retention is over, a bounded number. Returns how many. */
  async trim(): Promise<number> {
    const { confirmedMs } = await readConfirmedTime(this.redis, this.keys);
    const args = { beforeMs: confirmedMs - this.retentionMs, most: TRIMMED_AT_ONCE };
    return scripts.trimChecks(this.redis, { keys: this.keys, args });
  }

  #read(id: string, fields: { [field: string]: string }): Check | null {
    const where = `${this.keys.checks}:of:${id}`;
    const check = readStored(STORED_CHECK, fields, { what: 'check', where, onForeign: this.onForeign });
    return check && { ...check, id };
  }
}

/** Endpoint states in the shape of the scripts: without null members, and with the fact that there was no error. */
function withoutError(endpoints: readonly EndpointState[]): object[] {
  const states = endpoints.map(({ name, outcome, head, until }) => ({
    name,
    outcome,
    ...(head === null ? {} : { head }),
    ...(until === null ? {} : { until }),
  }));
  return [...states, { name: NO_ENDPOINT, outcome: 'answered' }];
}

function failedStates(failed: number): object[] | null {
  return failed === 0 ? null : [{ name: NO_ENDPOINT, outcome: 'failed' }];
}
