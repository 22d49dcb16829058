import { isUnder } from '../world/path.ts';
import { chance, type Random, randomStream } from '../world/random.ts';
import type { Fault, FaultOf, FaultType } from './fault.ts';

/** An active fault, and the number of times it has struck. */
export type ActiveFault = Fault & { id: number; strikes: number };

/** The active faults. */
export type Faults = {
  add(fault: Fault): ActiveFault;
  list(): ActiveFault[];
  remove(id?: number): number;
  /** Returns the newest fault of a type that strikes now, undefined for none. Each call draws anew. */
  strike<T extends FaultType>(type: T, path: string): FaultOf<T> | undefined;
  /** Like `strike`, but drawn once and for all for each `key`. */
  strikeAlways<T extends FaultType>(type: T, where: { path: string; key: string }): FaultOf<T> | undefined;
  random: Random;
};

export function createFaults({ seed }: { seed: number }): Faults {
  const active: ActiveFault[] = [];
  const random = randomStream(seed, 'faults');
  let added = 0;

  function candidates<T extends FaultType>(type: T, path: string): (ActiveFault & FaultOf<T>)[] {
    const isOfType = (fault: ActiveFault): fault is ActiveFault & FaultOf<T> => fault.type === type;
    return active
      .filter(isOfType)
      .filter((fault) => touches(fault, path))
      .reverse();
  }

  function struck<F extends ActiveFault>(fault: F | undefined): F | undefined {
    if (fault !== undefined) fault.strikes += 1;
    return fault;
  }

  return {
    random,
    add(fault) {
      added += 1;
      const started = { ...fault, id: added, strikes: 0 };
      active.push(started);
      return started;
    },
    list: () => active.map((fault) => ({ ...fault })),
    remove(id) {
      const before = active.length;
      const remaining = id === undefined ? [] : active.filter((fault) => fault.id !== id);
      active.splice(0, before, ...remaining);
      return before - remaining.length;
    },
    strike: (type, path) => struck(candidates(type, path).find(({ rate }) => chance(random, rate))),
    strikeAlways: (type, { path, key }) =>
      struck(
        candidates(type, path).find(({ id, rate }) => chance(randomStream(seed, 'fault', id, key), rate)),
      ),
  };
}

function touches({ path: prefix }: Fault, path: string): boolean {
  return prefix === '/' || isUnder(path, prefix.replace(/\/$/, ''));
}
