/**
 * A figure of a benchmark: a target with an upper or a lower bound, the `goal` beyond it, and the `baseline` of the same run.
 * `isRatio`: the bounds are those of its ratio to the baseline. Without a bound it is only reported.
 */
export type Target = {
  what: string;
  found: number;
  most?: number;
  least?: number;
  goal?: number;
  baseline?: number;
  isRatio?: boolean;
};

const printed: Target[] = [];

/** Prints every target with the found value. True when all are met. */
export function printTargets(targets: readonly Target[]): boolean {
  printed.push(...targets);
  const bound = targets.filter(({ most, least }) => most !== undefined || least !== undefined);
  const missed = bound.filter((target) => !isMet(target)).length;
  for (const target of targets) console.log(`  ${lineOf(target)}`);
  console.log(missed === 0 ? `all ${bound.length} met` : `${missed} of ${bound.length} missed`);
  return missed === 0;
}

/** Targets that this process has printed, in order. */
export function printedTargets(): readonly Target[] {
  return printed;
}

/** True when the found value is within its bounds; that is never true of no value. */
function isMet(target: Target): boolean {
  const { most = Number.POSITIVE_INFINITY, least = Number.NEGATIVE_INFINITY } = target;
  const value = boundValue(target);
  return value <= most && value >= least;
}

/** The value to which the bounds apply. */
function boundValue({ found, baseline = Number.NaN, isRatio = false }: Target): number {
  return isRatio ? found / baseline : found;
}

function lineOf(target: Target): string {
  const { what, found, most, least, goal, baseline } = target;
  const bounds = [
    ...(most === undefined ? [] : [`at most ${most}`]),
    ...(least === undefined ? [] : [`at least ${least}`]),
    ...(goal === undefined ? [] : [`goal ${goal}`]),
    ...(baseline === undefined || Number.isNaN(baseline)
      ? []
      : [`baseline ${shown(baseline)}, ratio ${shown(found / baseline)}`]),
  ];
  const verdict = most === undefined && least === undefined ? 'found ' : isMet(target) ? 'met   ' : 'MISSED';
  return [`${verdict}  ${what}: ${shown(found)}`, ...bounds].join(', ');
}

function shown(value: number): number {
  return Number(value.toFixed(3));
}

/** The value below which a share of all values is. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const [below, above] = [sorted[Math.ceil(sorted.length / 2) - 1], sorted[Math.floor(sorted.length / 2)]];
  return ((below ?? Number.NaN) + (above ?? Number.NaN)) / 2;
}
