/** A target with an upper or a lower bound. */
export type Target = { what: string; found: number; most?: number; least?: number };

/** Prints every target with the found value. True when all are met. */
export function printTargets(targets: readonly Target[]): boolean {
  let missed = 0;
  for (const { what, found, most = Number.POSITIVE_INFINITY, least = Number.NEGATIVE_INFINITY } of targets) {
    const isMet = found <= most && found >= least;
    if (!isMet) missed++;
    const bound = most === Number.POSITIVE_INFINITY ? `at least ${least}` : `at most ${most}`;
    console.log(`  ${isMet ? 'met   ' : 'MISSED'}  ${what}: ${Number(found.toFixed(3))}, ${bound}`);
  }
  console.log(missed === 0 ? `all ${targets.length} met` : `${missed} of ${targets.length} missed`);
  return missed === 0;
}
