import { inject } from 'vitest';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { isOperatorKind } from '../../src/domain/events/event-types.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { eventually } from './eventually.ts';
import { logEntries } from './log-entries.ts';

/** The longest wait for a due event, or the end of a due transfer: a machine may be slow, but must not stop. */
const STILL_MS = 240_000;

/**
 * Kills several times while events arrive, spread over all of them. Resolves when they have arrived and no transfer of the
 * sandbox goes on. `kill` gets the number of its turn, from 1.
 */
export async function killByTurns({
  sandbox,
  events,
  kills,
  arrived,
  kill,
}: {
  sandbox: Sandbox;
  events: number;
  kills: number;
  arrived: () => Promise<number>;
  kill: (turn: number) => Promise<void>;
}): Promise<void> {
  sandbox.setPace(6);
  for (let turn = 1; turn <= kills; turn++) {
    const due = (turn * events) / (kills + 1);
    await reaching(`${due} have arrived`, due, arrived);
    await kill(turn);
  }
  await reaching(`${events} have arrived`, events, arrived);
  sandbox.setPace(0);
  await reaching('all transfers have ended', 0, async () => -sandbox.pace().livingTransfers);
}

/** Waits for a growing number to reach a goal. Throws, with the number, when it has not grown for STILL_MS. */
async function reaching(awaited: string, goal: number, probe: () => Promise<number>): Promise<void> {
  for (let found = await probe(); found < goal; ) {
    const before = found;
    const what = `${awaited}; it was at ${before}`;
    found = await eventually(what, () => grown(before, probe), STILL_MS);
  }
}

async function grown(before: number, probe: () => Promise<number>): Promise<number | false> {
  const found = await probe();
  return found > before ? found : false;
}

/**
 * Returns the ids of the events in the log of a prefix, in its order, except those for operators, and their records
 * elsewhere. Waits until there are at least so many events, and as many are found as the log has.
 */
export async function reportedAndFound<T>(
  prefix: string,
  { events, find }: { events: number; find: () => Promise<T[]> },
): Promise<{ reported: string[]; found: T[] }> {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  const logged = async (): Promise<string[]> =>
    (await logEntries(redis, new Keys(prefix))).flatMap((entry) =>
      entry.kind === 'event' && !isOperatorKind(entry.event.data.subject.kind) ? [entry.event.id] : [],
    );
  try {
    for (;;) {
      const count = async (): Promise<number> => (await find()).length;
      await reaching('all that was reported is found', Math.max(events, (await logged()).length), count);
      const reported = await logged();
      const found = await find();
      // An event between the two reads is in one of them only.
      if (reported.length === (await logged()).length && found.length >= reported.length)
        return { reported, found };
    }
  } finally {
    await disconnect(redis);
  }
}
