import type { Logger } from 'pino';
import { Duty } from '../duty.ts';
import type { CheckStore } from '../store/checks.ts';
import { CONNECTION_NAME } from '../store/connection.ts';
import type { DeliveryStore } from '../store/deliveries.ts';
import type { PlanStore } from '../store/plan.ts';
import { hasEnded, type ProcessInstance, readSystemProcess } from '../store/process-instance.ts';
import type { Registry } from '../store/registry.ts';
import type { OtherProcess, SenderStore } from '../store/senders.ts';

/**
 * A process notes that it runs every BEAT_MS, every BEAT_ALONE_MS while there is no other one to replace. It counts as running
 * for LEASE_MS after its last beat, unless it is proven gone. A stall of Redis or of the process of 8 s is no crash; after any
 * crash, another process has its claims within 10 s.
 */
const BEAT_MS = 300;
const BEAT_ALONE_MS = 1_000;
const LEASE_MS = 9_300;

/** Age of a heartbeat from which its connections are checked, and the time for which they must stay closed. */
const LATE_MS = 1_000;
const GRACE_MS = 4_000;

/** Nothing is begun when the last beat is older than the shortest time after which another process may have our claims, less this. */
const MARGIN_MS = 700;

/** Evidence on another process; null where this process cannot know it. */
type Evidence = {
  /** From the system: true once it has ended; on the same machine in the same pid namespace. */
  hasEnded: boolean | null;
  /** From Redis: true while a connection of it is open. */
  isConnected: boolean | null;
  /** Time for which this process has found it late and without connections, ms. */
  cutOffMs: number;
};

/**
 * The states of a process, as another one sees it:
 *
 *   State    | Entered when                                           | Left when
 *   ---------|--------------------------------------------------------|------------------------------------------------------
 *   alive    | its first heartbeat, and each later one                | it has ended, or is cut off; its lease ends ─► gone;
 *            |                                                        | it ends itself ─► gone
 *   cut off  | its heartbeat is late, Redis has seen all its          | a heartbeat or a connection ─► alive;
 *            | connections close, and the system does not show it     | GRACE_MS later ─► gone
 *   gone     | as above; or the system shows that it has ended, and   | another has its claims ─► removed
 *            | no connection of it is open                            |
 *   removed  | others have all its claims                             | a heartbeat ─► alive, in its next life
 *
 * A process that the system shows running is never cut off: it is frozen at most. Where neither the system nor Redis shows anything
 * of it (another machine and a Cluster, or an ACL without CLIENT LIST), only the end of its lease makes it gone.
 *
 * A life ends when a heartbeat finds that the process did not count as alive, or may not have. Deliveries that were claimed in an earlier life may
 * be another's, and are not begun. While no heartbeat is answered, none is begun either, from before any other process may take
 * over. All other claims have tokens that the scripts compare.
 */
export function judgeProcess({ hasEnded, isConnected, cutOffMs }: Evidence): 'alive' | 'cut-off' | 'gone' {
  if (isConnected === true) return 'alive';
  if (hasEnded !== null) return hasEnded ? 'gone' : 'alive';
  if (isConnected === null) return 'alive';
  return cutOffMs >= GRACE_MS ? 'gone' : 'cut-off';
}

/** Dependencies of a heartbeat. `id` names the process in all its claims. */
export type HeartbeatDeps = {
  id: string;
  senders: SenderStore;
  registry: Registry;
  deliveries: DeliveryStore;
  plan: PlanStore;
  checks: CheckStore;
  log: Logger;
};

/** The heartbeat of this process. It takes over the claims of the processes that are gone. */
export class Heartbeat {
  readonly #deps: HeartbeatDeps;
  readonly #beating: Duty;
  readonly #listeners: (() => void)[] = [];
  #instance: ProcessInstance = { connection: null, system: null };
  #beatAt = Number.NEGATIVE_INFINITY;
  #life = 0;
  /** True where the last heartbeat found no other process, alive or gone. */
  #isAlone = false;
  /** Number of its heartbeats in Redis by the last that was answered. Times are no evidence: clocks are set back. */
  #beats = 0;
  /** Epoch in which it was answered. */
  #epoch = 0;
  /** Processes that are cut off: the lease of each, and the begin of that (own clock, ms). */
  #cutOff = new Map<string, { lease: string; sinceMs: number }>();

  constructor(deps: HeartbeatDeps) {
    this.#deps = deps;
    this.#beating = new Duty({
      everyMs: BEAT_MS,
      isShared: true,
      run: async () => {
        await this.beat();
        return { waitMs: this.#isAlone ? BEAT_ALONE_MS : BEAT_MS };
      },
      onError: (error) => deps.log.debug({ error }, 'heartbeat.error'),
    });
  }

  get id(): string {
    return this.#deps.id;
  }

  /** Number of this process's life. A claim belongs to the life that had begun when it was requested. */
  get life(): number {
    return this.#life;
  }

  /** Calls back when this process takes over, as only those that are gone knew some due times, and when it begins a life. */
  onTakeOver(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Begins before anything is claimed. Takes over at once from processes that are proven gone. */
  async start(): Promise<void> {
    const [system, connections] = await Promise.all([readSystemProcess(), this.#deps.senders.connections()]);
    // A proxy, or an ACL without CLIENT SETNAME, may hide the name: then its absence is no evidence.
    const isNamed = connections?.has(CONNECTION_NAME) === true;
    this.#instance = { connection: isNamed ? CONNECTION_NAME : null, system };
    await this.beat();
    this.#beating.start();
  }

  /** True while a delivery that was claimed in a life of this process may be begun. */
  isSure(life: number): boolean {
    const shortestMs = this.#instance.connection === null ? LEASE_MS : GRACE_MS;
    return life === this.#life && performance.now() - this.#beatAt < shortestMs - MARGIN_MS;
  }

  /** Notes once that this process runs, and takes over the claims of processes that are gone. */
  async beat(): Promise<void> {
    const { id, senders, registry } = this.#deps;
    const { epoch } = registry.subjects;
    const startedAt = performance.now();
    const { nowMs, others, ...beat } = await senders.heartbeat(id, {
      leaseMs: LEASE_MS,
      instance: this.#instance,
    });
    // A heartbeat whose reply was lost is sent again by the client. Only the lost reply may have reported that its lease had ended.
    const isRepeated = beat.beats > this.#beats + 1;
    // Redis has an older one. Without a lease, another process has declared this one gone, and removed its count.
    const isLost = beat.before > 0 && beat.beats <= this.#beats;
    if (isLost) epoch.noteLostHeartbeat(this.#epoch);
    this.#beats = beat.beats;
    this.#epoch = epoch.begun.epoch;
    const isVoid = beat.isVoid || isRepeated;
    const gone = isRepeated ? [] : beat.gone;
    this.#isAlone = beat.gone.length === 0 && others.length === 0;
    if (isVoid) this.#life += 1;
    // What was seen before a gap is no evidence: the connections of all processes may have been closed meanwhile.
    if (isVoid || performance.now() - this.#beatAt > LATE_MS) this.#cutOff.clear();
    this.#beatAt = startedAt;
    const proven = await this.#prove(others, nowMs);
    const all = [...gone, ...proven];
    if (all.length > 0) await this.#takeOver(all);
    // While it did not count as alive, no other process woke it.
    else if (isVoid) this.#callBack();
  }

  /** Returns the processes that are proven gone, and declared so. */
  async #prove(others: readonly OtherProcess[], nowMs: number): Promise<string[]> {
    const suspects: { other: OtherProcess; hasEnded: boolean | null }[] = [];
    for (const other of others) {
      const ended = await hasEnded(other.instance?.system ?? null, this.#instance.system);
      const isLate = nowMs - (Number(other.lease) - LEASE_MS) > LATE_MS;
      if (ended === true || (ended === null && isLate)) suspects.push({ other, hasEnded: ended });
    }
    if (suspects.length === 0) {
      this.#cutOff.clear();
      return [];
    }
    const open = await this.#deps.senders.connections();
    const cutOff = new Map<string, { lease: string; sinceMs: number }>();
    const nowOwnMs = performance.now();
    const gone = suspects.filter(({ other: { process, lease, instance }, hasEnded }) => {
      const name = instance?.connection ?? null;
      const isConnected = name === null || open === null ? null : open.has(name);
      const before = this.#cutOff.get(process);
      const sinceMs = before?.lease === lease ? before.sinceMs : nowOwnMs;
      const state = judgeProcess({ hasEnded, isConnected, cutOffMs: nowOwnMs - sinceMs });
      if (state === 'cut-off') cutOff.set(process, { lease, sinceMs });
      return state === 'gone';
    });
    this.#cutOff = cutOff;
    return gone.length === 0 ? [] : this.#deps.senders.declareGone(gone.map(({ other }) => other));
  }

  /** Takes over all that processes which are gone had claimed. After a crash amid it the next process does the rest. */
  async #takeOver(gone: readonly string[]): Promise<void> {
    const { id, senders, registry, deliveries, plan, checks, log } = this.#deps;
    const receivers = await registry.receivers();
    const [counts] = await Promise.all([
      Promise.all(receivers.map(({ name }) => deliveries.takeOver(name, id))),
      senders.freeLeases(gone),
      plan.returnClaims(gone),
      checks.returnClaims(gone),
    ]);
    this.#callBack();
    await senders.remove(gone);
    const claimed = counts.reduce((sum, count) => sum + count, 0);
    if (claimed > 0) log.warn({ processes: gone, deliveries: claimed }, 'deliveries.taken_over');
  }

  #callBack(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Ends the heartbeat: other processes take over what this one still holds. */
  async close(): Promise<void> {
    await this.#beating.close();
    await this.#deps.senders.end(this.id);
  }
}
