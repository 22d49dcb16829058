import type { Logger } from 'pino';
import type { DeliveryStore } from '../store/deliveries.ts';
import type { ReceiverCondition, ReceiverStore } from '../store/receivers.ts';
import type { DeliveryQueues } from './delivery-queues.ts';

/** How many deliveries are opened or queued again in one round, so that no receiver waits long for another. */
const BATCH = 500;

/** What resumption works with. */
export type ResumptionParts = {
  receivers: ReceiverStore;
  deliveries: DeliveryStore;
  queues: DeliveryQueues;
  log: Logger;
};

/** Where a receiver stands in a round: its cursor may go on, must stand, or must stand and there is more to do at once. */
type Standing = 'open' | 'held' | 'busy';

/**
 * Enables receivers, one batch per round. `enabling`: the dead letters of the failing span are opened again, and what is
 * left in the queue is taken off, for workers drop it. `resuming`: all that is open is queued in the order of the log,
 * and only then the cursor goes on. Each step can be done again, so that whoever relays next goes on after a crash.
 */
export class Resumption {
  readonly #parts: ResumptionParts;
  /** What is still to be queued, per receiver, as the relay with this token found it. */
  readonly #rest = new Map<string, { token: string; ids: string[] }>();

  constructor(parts: ResumptionParts) {
    this.#parts = parts;
  }

  /** Takes a receiver one step further, under the relay's fencing token. */
  async step(token: string, name: string): Promise<Standing> {
    const condition = await this.#parts.receivers.condition(name);
    if (condition.state === 'disabled') return 'held';
    if (condition.state === 'enabling') return this.#prepare(token, name, condition);
    return condition.resuming ? this.#queue(token, name) : 'open';
  }

  async #prepare(token: string, name: string, { since }: ReceiverCondition): Promise<Standing> {
    const { receivers, deliveries, queues, log } = this.#parts;
    const dead = since === null ? [] : await deliveries.dead(name, { sinceMs: since, count: BATCH });
    for (const id of dead) {
      if ((await deliveries.renew(token, name, id)) === 'fenced') return 'held';
    }
    if (dead.length > 0) return 'busy';
    // A worker that has seen the receiver disabled drops its job: queued now, it would be absorbed and then lost.
    if (!(await queues.empty(name))) return 'held';
    this.#rest.delete(name);
    if (!(await receivers.resume(token, name, 'begin'))) return 'held';
    log.info({ receiver: name }, 'receiver.enabled');
    return 'busy';
  }

  async #queue(token: string, name: string): Promise<Standing> {
    const { receivers, deliveries, queues } = this.#parts;
    const known = this.#rest.get(name);
    const ids = known?.token === token ? known.ids : await deliveries.pendingByEntry(name);
    const ready: string[] = [];
    for (const id of ids.slice(0, BATCH)) {
      const renewed = await deliveries.renew(token, name, id);
      if (renewed === 'fenced') return 'held';
      if (renewed === 'open') ready.push(id);
    }
    await queues.add(
      name,
      ready.map((id) => ({ id, afterMs: 0 })),
    );
    this.#rest.set(name, { token, ids: ids.slice(BATCH) });
    if (ids.length > BATCH) return 'busy';
    this.#rest.delete(name);
    return (await receivers.resume(token, name, 'end')) ? 'open' : 'held';
  }
}
