import { MOST_OPEN } from './backlog.ts';
import { redisTimeMs } from './commands.ts';
import type { CursorMove } from './log-entry.ts';
import { operatorEventTemplate, operatorSubject } from './operator-event.ts';
import { scripts } from './scripts.ts';
import { RedisStore } from './stored.ts';

/** The reasons why a delivery is never made, with their texts for the operator. */
export const DROP_REASONS = {
  retention: 'the retention of events has ended before they were delivered',
  away: 'the retention of events has ended while the receiver was out of the config',
  lost: 'what was to be delivered is not in Redis any more: its retention has ended, or Redis has lost it',
} as const;

export type DropReason = keyof typeof DROP_REASONS;

/** One report of dropped deliveries: how many, and those that it names. */
export type DropReport = { reason: DropReason; count: number; deliveries: string[] };

const CHUNK = 500;

/** Drops deliveries, records them by receiver and reports them (the states are in commands/include/dropped.lua). */
export class DroppedStore extends RedisStore {
  /** Drops the open deliveries whose event is from before a time (Redis time, ms), or whose fact is gone. Returns how many. */
  async dropExpired(receiver: string, beforeMs: number): Promise<number> {
    const keys = this.#openKeys(receiver);
    let dropped = 0;
    for (let rank = 0; rank < MOST_OPEN * 2; ) {
      const args = { ...this.#prefixes(receiver), beforeMs, rank, count: CHUNK };
      const found = await scripts.dropExpired(this.redis, { keys, args });
      dropped += found.dropped;
      rank += found.checked - found.dropped;
      if (found.checked < CHUNK) break;
    }
    return dropped;
  }

  /** Drops open deliveries for a reason that their sender has found. Returns how many were open. */
  async drop(receiver: string, ids: readonly string[], reason: DropReason): Promise<number> {
    const args = { ...this.#prefixes(receiver), reason, ids };
    return scripts.dropDeliveries(this.redis, { keys: this.#openKeys(receiver), args });
  }

  /**
   * Records events behind the cursor of a receiver as dropped for a reason, but those that it got by an earlier entry, and moves
   * the cursor past them. Returns how many; null where the cursor has moved meanwhile.
   */
  async noteBehind(
    receiver: string,
    { from, to, reason }: CursorMove & { reason: DropReason },
    events: readonly string[],
  ): Promise<number | null> {
    return scripts.dropBehind(this.redis, {
      keys: { ...this.#openKeys(receiver), cursors: this.keys.cursors },
      args: { receiver, deliveryPrefix: this.keys.delivery(receiver, ''), from, to, reason, events },
    });
  }

  /**
   * Reports losses that are due, in as many events as needed. `isAway`: losses by being out of the config wait for its return.
   */
  async report(receiver: string, { isAway }: { isAway: boolean }): Promise<DropReport[]> {
    const keys = { ...this.#openKeys(receiver), events: this.keys.events };
    const reports: DropReport[] = [];
    for (;;) {
      const nowMs = await redisTimeMs(this.redis);
      const event = (reason: string): string =>
        operatorEventTemplate({
          kind: 'receiver',
          name: receiver,
          word: 'events_dropped',
          nowMs,
          record: { receiver, count: '%COUNT%', reason, deliveries: '%DELIVERIES%' },
        });
      const reasons = Object.entries(DROP_REASONS)
        .filter(([reason]) => !isAway || reason !== 'away')
        .map(([reason, text]) => ({ reason, event: event(text) }));
      const args = { subject: operatorSubject('receiver', receiver), isFurther: reports.length > 0, reasons };
      const report = await scripts.reportDropped(this.redis, { keys, args });
      if (report === null) return reports;
      reports.push(report);
    }
  }

  #openKeys(receiver: string): Record<'pending' | 'queue' | 'receiver' | 'dropped', string> {
    return {
      pending: this.keys.pending(receiver),
      queue: this.keys.queue(receiver),
      receiver: this.keys.receiver(receiver),
      dropped: this.keys.dropped(receiver),
    };
  }

  #prefixes(receiver: string): { deliveryPrefix: string; replayPrefix: string } {
    return { deliveryPrefix: this.keys.delivery(receiver, ''), replayPrefix: this.keys.replay('') };
  }
}
