/**
 * The usual ways of each kind, in lower case, after the interface's notes; the daemon's own table is not used, so that
 * one is held against the other. A kind is what stands before the first colon of a subject's id.
 */
const WAYS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  intent: [
    ['pending', 'filled', 'settled'],
    ['pending', 'expired', 'refundable', 'refunded'],
    ['pending', 'failed', 'refundable', 'refunded'],
  ],
  quote: [
    ['active', 'submitted'],
    ['active', 'expired'],
    ['active', 'failed'],
  ],
  gasless: [
    ['pending', 'submitted', 'published'],
    ['pending', 'submitted', 'failed'],
    ['pending', 'permit_sent', 'completed'],
    ['pending', 'permit_sent', 'failed'],
  ],
  vault: [
    ['pending', 'funding_detected', 'published'],
    ['pending', 'expired_unfunded'],
    ['pending', 'failed'],
    ['funding_detected', 'failed'],
  ],
};

/** True when a usual way leads from the second status to the first: the step goes back. */
export function isBackward(subject: string, from: string, to: string): boolean {
  const ways = WAYS[subject.slice(0, subject.indexOf(':'))] ?? [];
  const [before, after] = [from.toLowerCase(), to.toLowerCase()];
  return ways.some((way) => way.includes(after) && way.indexOf(after) < way.indexOf(before));
}
