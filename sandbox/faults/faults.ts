import { isUnder } from '../world/path.ts';
import { chance, type Random, randomStream } from '../world/random.ts';
import type { Fault, FaultOf, FaultType } from './fault.ts';

/** A fault that is on, and how often it has struck. */
export type ActiveFault = Fault & { id: number; strikes: number };

/** The faults that are on now. */
export type Faults = {
  add(fault: Fault): ActiveFault;
  list(): ActiveFault[];
  /** Ends one fault, or all; how many it were. */
  remove(id?: number): number;
  /** The newest fault of a type that strikes here and now; undefined when none does. Each is drawn anew. */
  strike<T extends FaultType>(type: T, path: string): FaultOf<T> | undefined;
  /** The same, but one that is drawn once and for all for what `key` names. */
  strikeAlways<T extends FaultType>(type: T, where: { path: string; key: string }): FaultOf<T> | undefined;
  /** The stream that faults draw from. */
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
      const kept = id === undefined ? [] : active.filter((fault) => fault.id !== id);
      active.splice(0, before, ...kept);
      return before - kept.length;
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
