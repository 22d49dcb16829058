import { inject } from 'vitest';
import { isOperatorKind } from '../../src/domain/events/event-types.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import { eventually } from './eventually.ts';

/** How long any part of them may take. */
const WAIT_MS = 240_000;

/**
 * Kills so often while so many events arrive, spread over all of them. Resolves when they have arrived and no transfer of
 * the sandbox goes on. `kill` is told the number of its turn, from 1.
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
    await eventually(`${due} have arrived`, async () => (await arrived()) >= due, WAIT_MS);
    await kill(turn);
  }
  await eventually(`${events} have arrived`, async () => (await arrived()) >= events, WAIT_MS);
  sandbox.setPace(0);
  await eventually('all transfers have ended', () => sandbox.pace().livingTransfers === 0, WAIT_MS);
}

/**
 * The ids of the events in the log of a prefix, in its order, but those for operators, and what is found of them: once
 * there are at least so many events, and as much is found as was told.
 */
export async function toldAndFound<T>(
  prefix: string,
  { events, find }: { events: number; find: () => Promise<T[]> },
): Promise<{ told: string[]; found: T[] }> {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  const log = new EventLog(redis, new Keys(prefix));
  const logged = async (): Promise<string[]> =>
    (await log.after('0-0', 1_000_000)).flatMap((entry) =>
      entry.kind === 'event' && !isOperatorKind(entry.event.data.subject.kind) ? [entry.event.id] : [],
    );
  try {
    return await eventually(
      'all that was told is found',
      async () => {
        const told = await logged();
        const found = await find();
        // What comes between the two looks is in one of them only.
        const isStill = (await logged()).length === told.length;
        return isStill && told.length >= events && found.length >= told.length ? { told, found } : null;
      },
      WAIT_MS,
    );
  } finally {
    await disconnect(redis);
  }
}
