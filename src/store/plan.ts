import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { PlannedPoll } from '../domain/cadence/next-poll.ts';
import { isFollowed } from '../domain/changes/second-source.ts';
import { ENDPOINT_GROUPS, type EndpointGroup, endpointGroupKinds } from '../domain/subjects/kinds.ts';
import { asSubjectId, type SubjectId } from '../domain/subjects/subject.ts';
import { chunks, type RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import type { Fence } from './lease.ts';
import { flatObserved, type PageFacts } from './observed.ts';
import { groupOfMember, OPEN_STATUS_KIND, openStatusMember, type PlanMember } from './plan-members.ts';
import { scripts } from './scripts.ts';
import { RedisStore } from './stored.ts';

/** The clock of plans, in ms as text; null for Redis time. */
export type PlanClock = () => string | null;

export const REDIS_TIME: PlanClock = () => null;

/** A claimed poll: its member, its token, and the time until its slot of the budget. */
export type ClaimedPoll = { member: string; token: string; inMs: number };

/**
 * The result of a claim. `waitMs`: time until another claim is useful, null when nothing is known to come. `arrived`: tokens
 * of sent polls that no longer wait for a worker.
 */
export type ClaimResult = {
  polls: ClaimedPoll[];
  waitMs: number | null;
  crashed: { member: string; crashes: number }[];
  returned: number;
  arrived: string[];
};

/** The lanes of polls, which decide the order among those that wait. */
export const LANE = z.enum(['fair', 'overdue', 'first', 'requested', 'failing', 'suspect', 'probe', 'spare']);

export type Lane = z.infer<typeof LANE>;

/** The end of a poll: `back` made none, or learned nothing of the subject. */
export type PollEnd = 'next' | 'failed' | 'back' | 'finish';

/** A started poll with its end, its next poll and its observation. */
export type EndedPoll = {
  poll: { member: string; subject: SubjectId; token: string };
  outcome: PollEnd;
  next: PlannedPoll;
  observed: PageFacts;
};

/** True where the response changes the endpoint group's state; null where another process has the claim; or the fault. */
export type PollEnded = boolean | null | Error;

/** Endpoint groups whose plan may lack subjects that it must have, with the id of the plan: one that was lost gets another. */
export type UnsyncedPlans = ReadonlyMap<EndpointGroup, string>;

/** Begins the reply for a poll that could not be ended. */
const FAULT = 'error ';

/** Virtual seconds over which first polls are spread that nobody requested. */
const SPREAD_SECONDS = 30;

const RECHECK_EVERY_MS = 15_000;

const REPAIR_COUNT = 400;

const CHUNK = 500;

/** Kinds of the entries of a plan, beside pages. */
function memberKinds(endpointGroup: EndpointGroup): string[] {
  const kinds = endpointGroupKinds(endpointGroup);
  return endpointGroup === 'open-status' ? [...kinds, OPEN_STATUS_KIND] : kinds;
}

/** The plans of all endpoint groups: the next polls, and the process of each. Scripts make all decisions. */
export class PlanStore extends RedisStore {
  readonly #atMs: PlanClock;
  readonly #listeners = new Set<(endpointGroup: EndpointGroup) => void>();

  constructor(redis: RedisClient, keys: Keys, { atMs = REDIS_TIME }: { atMs?: PlanClock } = {}) {
    super(redis, keys);
    this.#atMs = atMs;
  }

  /** Calls `listener` when this process has requested polls of an endpoint group. Returns a function that ends this. */
  onRequest(endpointGroup: EndpointGroup, listener: () => void): () => void {
    const call = (requested: EndpointGroup): void => {
      if (requested === endpointGroup) listener();
    };
    this.#listeners.add(call);
    return () => void this.#listeners.delete(call);
  }

  /**
   * Sets the budgets of endpoint groups, in requests per second over all processes. The last call decides for all. Returns the
   * plans that nobody has synced: they are new, were lost, or a sync has failed since. `fence`: that of a sync.
   */
  async setBudgets(
    requestsPerSecond: { readonly [endpointGroup in EndpointGroup]?: number },
    fence: Fence | null = null,
  ): Promise<UnsyncedPlans> {
    const found = await Promise.all(
      ENDPOINT_GROUPS.map(async (endpointGroup) => {
        const budget = requestsPerSecond[endpointGroup];
        if (budget === undefined) return [];
        const key = this.keys.plan(endpointGroup);
        const read = (): Promise<(string | null)[]> => this.redis.hmget(key, 'budget', 'id', 'synced');
        const writes = [
          ['hset', key, 'budget', String(budget)],
          ['hsetnx', key, 'id', randomUUID()],
        ];
        // Each process calls this again and again, and a transaction costs ten times a read.
        let [stored, id, synced] = await read();
        if (fence !== null || stored !== String(budget) || id == null) {
          await (fence === null ? this.redis.multi(writes).exec() : fence.write(writes));
          [, id, synced] = await read();
        }
        return id == null || id === synced ? [] : [[endpointGroup, id] as const];
      }),
    );
    return new Map(found.flat());
  }

  /** Notes that plans have all subjects that they must have. A plan that was lost meanwhile stays unsynced. */
  async noteSynced(plans: UnsyncedPlans, fence: Fence): Promise<void> {
    for (const [group, id] of plans) await fence.write([['HSET', this.keys.plan(group), 'synced', id]]);
  }

  /** Makes all plans unsynced. */
  async clearSynced(): Promise<void> {
    for (const group of ENDPOINT_GROUPS) await this.redis.hdel(this.keys.plan(group), 'synced');
  }

  /** Claims up to `most` polls for a process, with slots of the budget up to `aheadMs` ahead. */
  async claim(
    endpointGroup: EndpointGroup,
    by: {
      process: string;
      most: number;
      aheadMs: number;
      sent: readonly { member: string; token: string }[];
    },
  ): Promise<ClaimResult> {
    const sent = by.sent.flatMap(({ member, token }) => [member, token]);
    const claimed = await scripts.claimPolls(this.redis, {
      keys: this.#keysOf(endpointGroup),
      args: { ...by, sent, atMs: this.#atMs(), kinds: memberKinds(endpointGroup) },
    });
    return { ...claimed, waitMs: claimed.waitMs < 0 ? null : claimed.waitMs };
  }

  async renew(
    endpointGroup: EndpointGroup,
    held: { process: string; polls: readonly { member: string; token: string }[] },
  ): Promise<void> {
    const args = { ...held, atMs: this.#atMs() };
    await scripts.renewPolls(this.redis, { keys: this.#keysOf(endpointGroup), args });
  }

  /** Ends the leases of the claims of processes that are gone: the next claim of any process returns them to the plan. */
  async returnClaims(processes: readonly string[]): Promise<void> {
    await Promise.all(
      ENDPOINT_GROUPS.map((endpointGroup) =>
        scripts.returnPolls(this.redis, {
          keys: { plan: this.keys.plan(endpointGroup) },
          args: { atMs: this.#atMs(), processes },
        }),
      ),
    );
  }

  /** Ends polls. What is wrong with one of them concerns no other. */
  async end(endpointGroup: EndpointGroup, polls: readonly EndedPoll[]): Promise<PollEnded[]> {
    const keys = this.keys;
    const ended = await scripts.endPolls(this.redis, {
      keys: { ...this.#keysOf(endpointGroup), wanted: keys.wanted, counts: keys.counts },
      args: {
        atMs: this.#atMs(),
        subjectPrefix: keys.subject(''),
        claimsPrefix: keys.claims(''),
        factsPrefix: keys.wallet(''),
        openPrefix: keys.open(''),
        polls: polls.map(({ poll: { member, token, subject }, outcome, next, observed }) => ({
          member,
          token,
          subject,
          outcome,
          virtualSeconds: next.virtualSeconds,
          restMs: Math.max(0, Math.round(next.restMs)),
          latestMs: next.latestMs === null ? null : Math.round(next.latestMs),
          alarmMs: next.alarmMs === null ? null : Math.max(0, Math.round(next.alarmMs)),
          lane: next.unseen ? ('first' as const) : ('fair' as const),
          observed: flatObserved(observed),
        })),
      },
    });
    return ended.map((reply) => {
      if (reply.startsWith(FAULT)) return new Error(reply.slice(FAULT.length));
      return reply === 'stale' ? null : reply === 'answer';
    });
  }

  /** Reserves another slot for a poll that missed its own. Returns the ms until then. */
  async reslot(endpointGroup: EndpointGroup): Promise<number> {
    return scripts.reslot(this.redis, { keys: this.#keysOf(endpointGroup), args: { atMs: this.#atMs() } });
  }

  /** Reserves a slot for another request. Returns the ms until then; null unless the endpoint group is polled as usual. */
  async spareSlot(endpointGroup: EndpointGroup): Promise<number | null> {
    const args = { atMs: this.#atMs() };
    return scripts.spareSlot(this.redis, { keys: this.#keysOf(endpointGroup), args });
  }

  /** Requests polls of subjects as soon as the budget allows, also those whose tracking had ended. */
  async pollSoon(members: readonly PlanMember[]): Promise<void> {
    await this.#pollSoon(members, { prefix: '', withinMs: 0, most: members.length });
  }

  /**
   * As `pollSoon`, but at most once in a while for one subject: for responses on pages that are behind. It requests the first
   * `most` for which that may be done now.
   */
  async recheck(members: readonly PlanMember[], most: number = members.length): Promise<void> {
    await this.#pollSoon(members, { prefix: this.keys.rechecked(''), withinMs: RECHECK_EVERY_MS, most });
  }

  async #pollSoon(
    members: readonly PlanMember[],
    { prefix: oncePrefix, withinMs, most }: { prefix: string; withinMs: number; most: number },
  ): Promise<void> {
    for (const [endpointGroup, some] of this.#byGroup(members)) {
      const args = { atMs: this.#atMs(), oncePrefix, withinMs, most, members: some };
      const requested = await scripts.requestPolls(this.redis, { keys: this.#keysOf(endpointGroup), args });
      if (requested > 0) for (const call of this.#listeners) call(endpointGroup);
    }
  }

  /** Starts tracking subjects that are not tracked, and spreads their first polls. Returns how many were new. */
  async track(subjects: readonly PlanMember[], restMs = 0): Promise<number> {
    let tracked = 0;
    for (const [endpointGroup, some] of this.#byGroup(subjects)) {
      for (const chunk of chunks(some, CHUNK)) {
        const args = { atMs: this.#atMs(), spreadSeconds: SPREAD_SECONDS, restMs, members: chunk };
        tracked += await scripts.track(this.redis, { keys: this.#keysOf(endpointGroup), args });
      }
    }
    return tracked;
  }

  /** Ends the tracking of a subject that a page showed finished, by its snapshot of a commit. False where it stays. */
  async untrackFinished(subject: SubjectId, commit: number): Promise<boolean> {
    const keys = this.keys;
    return scripts.untrackFinished(this.redis, {
      keys: {
        plan: keys.planOf(subject),
        subject: keys.subject(subject),
        claims: keys.claims(subject),
        wanted: keys.wanted,
        counts: keys.counts,
      },
      args: { subject, atMs: this.#atMs(), commit },
    });
  }

  /** Lists some tracked subjects of a kind, unordered: those that stay tracked meanwhile occur at least once. */
  async tracked(
    endpointGroup: EndpointGroup,
    kind: string,
    cursor: string,
  ): Promise<{ subjects: string[]; cursor: string }> {
    const key = this.keys.polledAt(endpointGroup, kind);
    const [next, rows] = await this.redis.zscan(key, cursor, 'COUNT', CHUNK);
    return { subjects: rows.filter((_, index) => index % 2 === 0), cursor: next };
  }

  async isTracked(member: PlanMember): Promise<boolean> {
    const plan = this.keys.plan(groupOfMember(member, this.keys));
    return (await this.redis.hexists(`${plan}:items`, member)) === 1;
  }

  /** Checks a bounded part of a plan for members that are in no list. Returns those that it put back. */
  async repair(endpointGroup: EndpointGroup): Promise<string[]> {
    const [plan, repairCursors] = [this.keys.plan(endpointGroup), this.keys.repairCursors(endpointGroup)];
    const args = { atMs: this.#atMs(), count: REPAIR_COUNT, kinds: memberKinds(endpointGroup) };
    return scripts.repairPlan(this.redis, { keys: { plan, repairCursors }, args });
  }

  #byGroup(members: readonly PlanMember[]): Map<EndpointGroup, PlanMember[]> {
    return Map.groupBy(members, (member) => groupOfMember(member, this.keys));
  }

  /**
   * Puts transfers into the plan of the source of their status, after a start with another one. With `both`, they are
   * also polled at the open source from now on; later ones by the commits of their states.
   */
  async settleTransfers(fence: Fence): Promise<void> {
    const { statusSource } = this.keys;
    const from = statusSource === 'open' ? 'status' : 'open-status';
    for await (const some of this.#allTracked(from, 'intent')) {
      await this.track(some.map(asSubjectId));
      await this.#drop(from, some, fence);
    }
    if (statusSource === 'both') {
      for await (const some of this.#allTracked('status', 'intent')) {
        const followed = await this.#followed(some.map(asSubjectId));
        await this.track(followed.map(openStatusMember));
      }
      return;
    }
    for await (const some of this.#allTracked('open-status', OPEN_STATUS_KIND)) {
      await this.#drop('open-status', some, fence);
    }
  }

  /** Those transfers of which the open source may report a step. */
  async #followed(transfers: readonly SubjectId[]): Promise<SubjectId[]> {
    const states = await Promise.all(
      transfers.map((transfer) => this.redis.hmget(this.keys.subject(transfer), 'status', 'ahead')),
    );
    return transfers.filter((transfer, index) => {
      const [status = null, ahead = null] = states[index] ?? [];
      return status !== null && isFollowed(transfer, { status, ahead: ahead === '' ? null : ahead });
    });
  }

  async *#allTracked(endpointGroup: EndpointGroup, kind: string): AsyncGenerator<string[]> {
    let cursor = '0';
    do {
      const some = await this.tracked(endpointGroup, kind, cursor);
      cursor = some.cursor;
      if (some.subjects.length > 0) yield some.subjects;
    } while (cursor !== '0');
  }

  async #drop(endpointGroup: EndpointGroup, members: readonly string[], fence: Fence): Promise<void> {
    const keys = { plan: this.keys.plan(endpointGroup), ...fence.keys };
    fence.passed(await scripts.dropMembers(this.redis, { keys, args: { token: fence.token, members } }));
  }

  #keysOf(endpointGroup: EndpointGroup): { plan: string; endpointGroup: string } {
    return { plan: this.keys.plan(endpointGroup), endpointGroup: this.keys.endpointGroup(endpointGroup) };
  }
}
