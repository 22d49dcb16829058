import { z } from 'zod';
import { asSubjectId, type SubjectId } from '../domain/subject.ts';

/**
 * Work in a poll queue. `subject`: the long-lived poll of one subject. `page`: one page of a walk over a wallet's pages
 * behind the first; `route` says over which, `walk` is the walk's id, `tries` counts its failures.
 */
export type PollJob =
  | { do: 'subject'; subject: SubjectId; careful: number }
  | {
      do: 'page';
      wallet: SubjectId;
      route: string;
      walk: string;
      page: number;
      cursor: string;
      tries: number;
    };

const subjectId = z.string().transform(asSubjectId);

export const POLL_JOB = z.discriminatedUnion('do', [
  z.object({ do: z.literal('subject'), subject: subjectId, careful: z.number().default(0) }),
  z.object({
    do: z.literal('page'),
    wallet: subjectId,
    route: z.string(),
    walk: z.string(),
    page: z.number(),
    cursor: z.string(),
    tries: z.number(),
  }),
]);

/** The one job id of a subject's poll: no `:` and never an integer, which BullMQ reserves. */
export function pollJobId(subject: SubjectId): string {
  return `poll-${encodeURIComponent(subject)}`;
}

/** The job id of a page: one per page of a walk, so that a page asked for twice is asked once. */
export function pageJobId(page: { wallet: SubjectId; route: string; walk: string; page: number }): string {
  return `page-${encodeURIComponent(page.wallet)}-${page.route}-${page.walk}-${page.page}`;
}

export function deliveryQueueName(receiver: string): string {
  return `deliver-${receiver}`;
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
  removeOnComplete: { count: 0 },
  removeOnFail: { count: 0 },
} as const;
