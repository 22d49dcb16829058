import { z } from 'zod';

/** A claim on its way to a worker: a member of the plan, and the token under which it was claimed. */
export const POLL_JOB = z.object({ member: z.string(), token: z.string() });

export type PollJob = z.infer<typeof POLL_JOB>;

/** The job id of a claim: no `:` and never an integer, which BullMQ reserves. */
export function pollJobId(token: string): string {
  return `claim-${token}`;
}

/**
 * What all workers have in common. The jobs of a process that died are taken over when their locks have run out and the
 * next check finds them; that is no failure, however often it happens. A lock that runs out under a living job costs a
 * second request or attempt, never an event. A job that ends leaves nothing behind, for its id names the next one.
 */
export const TAKE_OVER = {
  lockDuration: 4_000,
  stalledInterval: 2_000,
  maxStalledCount: 1_000_000,
  // A worker whose connection was cut goes on as soon as Redis is back, and not after 15 s.
  runRetryDelay: 1_000,
  removeOnComplete: { count: 0 },
  removeOnFail: { count: 0 },
} as const;
