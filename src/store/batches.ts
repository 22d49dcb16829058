import { MOST_IN_DIGEST } from '../domain/events/batching.ts';
import { scripts } from './scripts.ts';
import { RedisStore } from './stored.ts';

/** Deliveries of one message, fixed before it is sent: a repeat is equal. Only the job of the `leader`, a member, sends it. */
export type Batch = { id: string; leader: string; members: string[] };

/** A delivery without a batch: the start of its wait (Redis time, ms; now if it does not wait), and the number that wait. */
export type Waiting = { joinedAtMs: number; isWaiting: boolean; waiting: number };

/** The batches of each receiver. */
export class BatchStore extends RedisStore {
  /** Returns the batch of a delivery, else its wait; `joins` makes it wait from now on. */
  async join(receiver: string, id: string, { joins }: { joins: boolean }): Promise<Batch | Waiting> {
    const keys = this.keys;
    const { batch, first, rest } = await scripts.joinBatch(this.redis, {
      keys: { delivery: keys.delivery(receiver, id), waiting: keys.waiting(receiver) },
      args: { id, joins, deliveryPrefix: keys.delivery(receiver, ''), batchPrefix: keys.batch(receiver, '') },
    });
    if (batch !== '') return { id: batch, leader: first, members: rest };
    const [isWaiting, waiting] = rest;
    return { joinedAtMs: Number(first), isWaiting: isWaiting === '1', waiting: Number(waiting) };
  }

  /** Freezes a batch that a delivery leads: alone, or with those that wait. Null when it was frozen before. */
  async close(receiver: string, id: string, { alone }: { alone: boolean }): Promise<Batch | null> {
    const keys = this.keys;
    const [deliveryPrefix, batchPrefix] = [keys.delivery(receiver, ''), keys.batch(receiver, '')];
    const closed = await scripts.closeBatch(this.redis, {
      keys: {
        delivery: keys.delivery(receiver, id),
        waiting: keys.waiting(receiver),
        batches: keys.batches(receiver),
      },
      args: { id, most: alone ? 1 : MOST_IN_DIGEST, deliveryPrefix, batchPrefix, clock: keys.clock },
    });
    return closed && { id: closed.batch, leader: id, members: closed.members };
  }
}
