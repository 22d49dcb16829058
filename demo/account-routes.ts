import type { RenderedEvent } from '../src/domain/events/event.ts';

/** Prices in an answer of the open quoting service: one output per quote, in base units. */
export type GivenPrices = { outputs: readonly string[] };

/** Counts of one route, and each difference as text. `shown` counts answers. */
export type RouteAccount = { shown: number; due: number; reported: number; problems: string[] };

/**
 * Compares the events of one route with the answers, in order. These answers must each have one event: the first, one without
 * quotes after one with, the reverse, and one with a best output further from the last reported than the share (in
 * millionths). There must be no other event. `hasUnused`: an answer was not used, because a later one was committed before it
 * or its poll was cut off; then only the order of the events can be checked.
 */
export function accountRoute(input: {
  answers: readonly GivenPrices[];
  events: readonly RenderedEvent[];
  movedByMillionths: bigint;
  hasUnused: boolean;
}): RouteAccount {
  const due: string[] = [];
  let reported: bigint | null | undefined;
  for (const { outputs } of input.answers) {
    const best = outputs.map(BigInt).reduce<bigint | null>((a, b) => (a === null || b > a ? b : a), null);
    const isNew = reported === undefined || (reported === null) !== (best === null);
    if (!isNew && (reported === null || reported === undefined || best === null)) continue;
    if (!isNew && !isFurther(best ?? 0n, reported ?? 0n, input.movedByMillionths)) continue;
    due.push(`${isNew ? (best === null ? 'unavailable' : 'available') : 'moved'} ${best ?? 'none'}`);
    reported = best;
  }
  const events = [...input.events].sort((a, b) => a.data.sequence - b.data.sequence);
  const came = events.map(
    ({ type, data }) => `${type.slice('route.'.length)} ${String(data.record.output ?? 'none')}`,
  );
  const isSame = due.length === came.length && due.every((one, index) => one === came[index]);
  const problems =
    isSame || input.hasUnused
      ? []
      : [`the route was shown as ${due.join(', ')} but reported as ${came.join(', ')}`];
  const wrong = events.some((event, index) => event.data.sequence !== index + 1);
  if (wrong) problems.push(`the route has sequences ${events.map(({ data }) => data.sequence).join(', ')}`);
  return { shown: input.answers.length, due: due.length, reported: came.length, problems };
}

function isFurther(from: bigint, to: bigint, millionths: bigint): boolean {
  const difference = from > to ? from - to : to - from;
  return difference * 1_000_000n > to * millionths;
}
