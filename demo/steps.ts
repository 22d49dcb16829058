/**
 * The usual status sequences of each kind, in lower case, from the interface's notes. The daemon's own table is not used, so
 * that this one checks it. A kind is the text before the first colon of a subject's id.
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

/** True when a usual sequence leads from the second status to the first: the step goes back. */
export function isBackward(subject: string, from: string, to: string): boolean {
  const ways = WAYS[subject.slice(0, subject.indexOf(':'))] ?? [];
  const [before, after] = [from.toLowerCase(), to.toLowerCase()];
  return ways.some((way) => way.includes(after) && way.indexOf(after) < way.indexOf(before));
}
