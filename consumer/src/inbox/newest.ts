import type { AnyEvent } from '../event.ts';
import { factOf } from '../facts.ts';
import type { Claim } from './inbox.ts';

/** The place where an event is among those of its subject. `epoch` counts the restores of the daemon's data. */
type Position = { epoch: number; sequence: number; atMs: number };

/** For each fact of a subject the position of the newest event that was handled, by the name of the fact. */
type Newest = { [fact: string]: Position };

/** Compares an event with what is stored of its subject, as JSON; null where nothing is. `stored` is what to store now. */
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

/** Events about other facts repeat the record that one of these has shown. */
function hasRecord(fact: string): boolean {
  return fact === 'status' || fact.startsWith('update:');
}

function positionOf({ timestamp, data }: AnyEvent): Position {
  return { epoch: epochOf(data), sequence: data.sequence, atMs: Date.parse(timestamp) };
}

/** An event without `epoch` is of the first one. */
function epochOf(data: AnyEvent['data'] & { epoch?: unknown }): number {
  return typeof data.epoch === 'number' ? data.epoch : 0;
}

/**
 * A restore begins a new epoch, in which sequences may begin anew. A daemon that sends no epochs does not count its
 * restores: there the time tells, since what comes after a restore has a later one.
 */
function isNewer(one: Position, other: Position): boolean {
  if (one.epoch !== other.epoch) return one.epoch > other.epoch;
  return one.sequence > other.sequence && (one.epoch > 0 || one.atMs >= other.atMs);
}
