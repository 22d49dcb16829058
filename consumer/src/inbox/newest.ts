import type { AnyEvent } from '../event.ts';
import { factOf } from '../facts.ts';
import type { Claim } from './inbox.ts';

/** Position of an event among those of its subject. `epoch` counts the restores of the daemon's data. */
type Position = { epoch: number; sequence: number; atMs: number };

type Newest = { [fact: string]: Position };

/** Compares an event with the stored state of its subject, as JSON; null where there is none. `stored` is the new state. */
export function judgeEvent(event: AnyEvent, before: string | null): { claim: Claim; stored: string } {
  const newest: Newest = before === null ? {} : JSON.parse(before);
  const { kind, name } = factOf(event);
  const position = positionOf(event);
  const last = newest[name];
  const isStale = last !== undefined && isNewer(last, position);
  const isRecordStale = Object.entries(newest).some(
    ([fact, other]) => hasRecord(fact) && isNewer(other, position),
  );
  const claim: Claim = { fact: kind, lastSequence: last?.sequence ?? null, isStale, isRecordStale };
  return { claim, stored: JSON.stringify(isStale ? newest : { ...newest, [name]: position }) };
}

/** True for facts with a record. Events about other facts repeat the record of one of these. */
function hasRecord(fact: string): boolean {
  return fact === 'status' || fact.startsWith('update:');
}

function positionOf({ timestamp, data }: AnyEvent): Position {
  return { epoch: epochOf(data), sequence: data.sequence, atMs: Date.parse(timestamp) };
}

/** The epoch of an event; without `epoch` it is the first. */
function epochOf(data: AnyEvent['data'] & { epoch?: unknown }): number {
  return typeof data.epoch === 'number' ? data.epoch : 0;
}

/**
 * Compares positions. A restore begins a new epoch, in which sequences may begin again. A daemon that sends no epochs does
 * not count its restores: then the time decides, since events after a restore have a later one.
 */
function isNewer(one: Position, other: Position): boolean {
  if (one.epoch !== other.epoch) return one.epoch > other.epoch;
  return one.sequence > other.sequence && (one.epoch > 0 || one.atMs >= other.atMs);
}
