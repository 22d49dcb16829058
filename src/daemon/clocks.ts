import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { Signals } from '../signals.ts';
import type { RedisClient } from '../store/commands.ts';
import { ConfirmedTime } from '../store/confirmed-time.ts';
import type { Keys } from '../store/keys.ts';
import { ResponseDates } from '../upstream/client/response-dates.ts';

/** What a process knows of the clocks, whatever its config. `dates` takes in those of the upstream's responses. */
export type Clocks = { confirmed: ConfirmedTime; dates: ResponseDates };

/** Begins to compare the clocks. */
export async function startClocks({
  redis,
  keys,
  signals,
  log,
}: {
  redis: RedisClient;
  keys: Keys;
  signals: Signals;
  log: Logger;
}): Promise<Clocks> {
  const dates = new ResponseDates();
  let isFailing = false;
  const confirmed = new ConfirmedTime({
    redis,
    keys,
    process: randomUUID(),
    upstreamAhead: (at) => dates.aheadOf(at),
    onCompared: (clock, before) => {
      isFailing = false;
      signals.emit('clocks.compared', { isHeld: clock.isHeld });
      const { state, isHeld, confirmedMs, jumpMs, upstreamAheadMs } = clock;
      if (before.state === state && before.isHeld === isHeld) return;
      const isRight = state === 'steady' && !isHeld;
      const confirmedTime = new Date(confirmedMs).toISOString();
      log[isRight ? 'info' : 'warn'](
        { state, waits: isHeld, confirmedTime, jumpMs, upstreamAheadMs },
        'clocks.moved',
      );
    },
    onError: (error) => {
      if (!isFailing) log.warn({ error }, 'clocks.not_compared');
      isFailing = true;
    },
  });
  await confirmed.start();
  return { confirmed, dates };
}
