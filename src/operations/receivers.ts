import { z } from 'zod';
import { matchesOf, readBatch } from '../queues/deliveries/matches.ts';
import type { StoredReceiver } from '../store/definitions.ts';
import { isHeld, RECEIVER_STATES, type ReceiverCondition, type ReceiverState } from '../store/receivers.ts';
import { type OperationContext, RefusedError } from './operation.ts';
import { receiverNamed } from './resend.ts';
import { isoTimeOrNull } from './time.ts';

/** The current state of a receiver. */
export const RECEIVER = z
  .object({
    name: z.string(),
    type: z.enum(['webhook', 'email', 'postgres']),
    origin: z
      .enum(['file', 'api'])
      .nullable()
      .describe(
        'Whether the config file has it, or it was made through the API. Null where neither is so here: it was removed, or another process has it in its file.',
      ),
    leftOut: z
      .string()
      .nullable()
      .describe(
        'Why this process makes no attempts to a receiver made through the API: it is outside `server.apiReceivers`, or was made with another `server.secretsKey`. Its open deliveries wait. Null for any other.',
      ),
    removed: z
      .boolean()
      .describe('Whether it has left the config: what it has not got is stored for `retention`.'),
    state: z
      .enum(RECEIVER_STATES)
      .describe(
        '`resting`, `failing`: tried with one delivery at a time. `disabled`, `enabling`, `paused`: not tried.',
      ),
    backlog: z.int().describe('Events that it is owed: open deliveries, and the entries behind its cursor.'),
    backlogIsMore: z.boolean().describe('Whether there is more than was counted.'),
    open: z.int().describe('Open deliveries.'),
    deadLetters: z.int(),
    oldestUndeliveredAt: z.iso
      .datetime()
      .nullable()
      .describe('Since when the oldest event waits that it is owed.'),
    nextAttemptAt: z.iso.datetime().nullable().describe('Null where it is at once, or nothing waits.'),
    cursor: z
      .string()
      .nullable()
      .describe('The entry of the event log up to which its deliveries were opened.'),
    cursorAt: z.iso.datetime().nullable().describe('When that was written.'),
    failingSince: z.iso.datetime().nullable().describe('The first failure after the last success.'),
    lastSuccessAt: z.iso.datetime().nullable(),
    lastErrorAt: z.iso.datetime().nullable(),
    lastError: z.string().nullable(),
    disabledAt: z.iso.datetime().nullable(),
    disabledBy: z.enum(['failures', 'gone', 'operator']).nullable(),
    pausedAt: z.iso.datetime().nullable(),
  })
  .meta({ id: 'Receiver' });

export type ReceiverView = z.infer<typeof RECEIVER>;

/** Returns the origin of a receiver, and the reason for which this process omits it. */
export type OriginOf = (name: string) => { origin: ReceiverView['origin']; leftOut: ReceiverView['leftOut'] };

const COUNTED = 10_000;

const COUNTED_OF_EACH = 1_000;

/** Lists the receivers by name. The log reads that count their backlogs are bounded for all of them together. */
export async function listReceivers(originOf: OriginOf, deps: OperationContext): Promise<ReceiverView[]> {
  const receivers = await deps.stores.registry.receivers();
  const share = Math.floor(COUNTED / Math.max(1, receivers.length));
  const counted = Math.min(COUNTED_OF_EACH, Math.max(1, share));
  const sorted = receivers.sort((a, b) => (a.name < b.name ? -1 : 1));
  return Promise.all(sorted.map((receiver) => viewOf(receiver, { counted, originOf }, deps)));
}

/** Reads one receiver. Throws an UnknownError for an unknown name. */
export async function readReceiver(
  name: string,
  originOf: OriginOf,
  deps: OperationContext,
): Promise<ReceiverView> {
  return viewOf(await receiverNamed(name, deps), { counted: COUNTED, originOf }, deps);
}

async function viewOf(
  receiver: StoredReceiver,
  { counted, originOf }: { counted: number; originOf: OriginOf },
  deps: OperationContext,
): Promise<ReceiverView> {
  const { name, type, removed } = receiver;
  const { receivers, backlog, lease } = deps.stores;
  const [condition, { pending, dead }, { oldestMs }, nextAtMs, cursor] = await Promise.all([
    receivers.condition(name),
    backlog.counts(name),
    backlog.depth(name),
    backlog.nextAt(name),
    lease.cursor(name),
  ]);
  const behind = await behindCursor(receiver, { cursor, counted }, deps);
  return {
    name,
    type,
    ...originOf(name),
    removed,
    state: condition.state,
    backlog: pending + behind.count,
    backlogIsMore: behind.isMore,
    open: pending,
    deadLetters: dead,
    oldestUndeliveredAt: isoTimeOrNull(oldestMs ?? behind.oldestMs),
    nextAttemptAt: isoTimeOrNull(isHeld(condition) ? null : (condition.notBefore ?? nextAtMs)),
    cursor,
    cursorAt: cursor === null ? null : isoTimeOrNull(Number(cursor.split('-')[0])),
    ...timesOf(condition),
  };
}

function timesOf(condition: ReceiverCondition) {
  const { since, lastSuccessAt, lastErrorAt, lastError, disabledAt, disabledBy, pausedAt } = condition;
  return {
    failingSince: isoTimeOrNull(since),
    lastSuccessAt: isoTimeOrNull(lastSuccessAt),
    lastErrorAt: isoTimeOrNull(lastErrorAt),
    lastError,
    disabledAt: condition.state === 'disabled' ? isoTimeOrNull(disabledAt) : null,
    disabledBy: condition.state === 'disabled' ? disabledBy : null,
    pausedAt: isoTimeOrNull(pausedAt),
  };
}

const MOST_READ = 100;

/**
 * Time of the oldest event that a receiver has not accepted (Redis time, ms); null where there is none, or none among the first
 * entries behind its cursor. A replay counts from its opening.
 */
export async function oldestUndelivered(
  receiver: StoredReceiver,
  { oldestId, oldestMs }: { oldestId: string | null; oldestMs: number | null },
  deps: OperationContext,
): Promise<number | null> {
  const { deliveries, lease } = deps.stores;
  const { name } = receiver;
  if (oldestId === null) {
    const cursor = await lease.cursor(name);
    return (await behindCursor(receiver, { cursor, counted: MOST_READ }, deps)).oldestMs;
  }
  const fact = await deliveries.fact(name, oldestId);
  const writtenMs = fact === null || fact.replay !== null ? null : Number(fact.entry.split('-')[0]);
  return writtenMs === null || oldestMs === null ? oldestMs : Math.min(writtenMs, oldestMs);
}

async function behindCursor(
  receiver: StoredReceiver,
  { cursor, counted }: { cursor: string; counted: number },
  { stores: { events, registry }, directory }: OperationContext,
): Promise<{ count: number; isMore: boolean; oldestMs: number | null }> {
  const { entries, more } = await events.after(cursor, counted);
  const { facts, read, stoppedBy, isCut } = await readBatch(entries, events);
  const matched = await matchesOf(receiver, facts, { registry, directory });
  // What only a newer version can read waits too.
  const newer = stoppedBy === null ? undefined : entries[read]?.id;
  const oldest = matched[0]?.at ?? newer;
  const oldestMs = oldest === undefined ? null : Number(oldest.split('-')[0]);
  return { count: matched.length, isMore: more || isCut || newer !== undefined, oldestMs };
}

/** Pauses a receiver: no attempts and no new deliveries until it is resumed. Returns true when that changed anything. */
export async function pauseReceiver(name: string, deps: OperationContext): Promise<boolean> {
  await receiverNamed(name, deps);
  const before = await deps.stores.receivers.pause(name);
  if (before === 'disabled' || before === 'enabling') {
    throw new RefusedError(
      `${name} is ${before}, and gets nothing; enable it first: intentwatch receivers enable ${name}`,
    );
  }
  return before !== 'paused';
}

/** Resumes a paused receiver. Returns true when that changed anything. */
export async function resumeReceiver(name: string, deps: OperationContext): Promise<boolean> {
  await receiverNamed(name, deps);
  return (await deps.stores.receivers.unpause(name)) === 'paused';
}

/** Disables a receiver: no attempts until it is enabled. Returns the state before. */
export async function disableReceiver(name: string, deps: OperationContext): Promise<ReceiverState> {
  await receiverNamed(name, deps);
  return deps.stores.receivers.disable(name);
}

type Enabled = { before: ReceiverState; held: number; dead: number };

/** Requests the enabling of a disabled receiver, which the relay does. */
export async function enableReceiver(name: string, deps: OperationContext): Promise<Enabled> {
  const { receivers, backlog } = deps.stores;
  await receiverNamed(name, deps);
  const { since } = await receivers.condition(name);
  const { pending } = await backlog.counts(name);
  const dead = since === null ? [] : await backlog.dead(name, { sinceMs: since, count: COUNTED });
  const before = await receivers.enable(name);
  if (before === 'paused')
    throw new RefusedError(
      `${name} is paused, not disabled; resume it: intentwatch receivers resume ${name}`,
    );
  return { before, held: pending, dead: dead.length };
}
