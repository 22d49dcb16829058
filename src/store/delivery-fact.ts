import { z } from 'zod';
import { INTEGER_TEXT, JSON_TEXT } from './stored.ts';

const ATTEMPT = z.object({
  atMs: z.number(),
  outcome: z.enum(['delivered', 'failed', 'rejected']),
  httpStatus: z.number().nullable(),
  smtpCode: z.number().nullable(),
  durationMs: z.number(),
  reason: z.string(),
  answer: z.string(),
  nextAtMs: z.number().nullable(),
  // Never empty: Lua writes an empty list as an object.
  remaining: z.array(z.string()).min(1).optional(),
});

export const OUTCOME = z.enum(['pending', 'delivered', 'dead']);

/** Microseconds, too long for INTEGER_TEXT. */
const TURN = z
  .string()
  .regex(/^\d{1,16}$/)
  .transform(Number)
  .nullable()
  .catch(null);

export const FACT = z.object({
  outcome: OUTCOME,
  entry: z.string().regex(/^\d+-\d+$/),
  roots: JSON_TEXT.pipe(z.array(z.string())),
  turn: TURN,
  tries: INTEGER_TEXT.default(0),
  earlierTries: INTEGER_TEXT.default(0),
  after: z.string().nullable().default(null),
  nextAt: INTEGER_TEXT.nullable().default(null),
  replay: z.string().nullable().default(null),
  deliveredAt: INTEGER_TEXT.nullable().default(null),
  batch: z.string().nullable().default(null),
  suspended: z.string().default(''),
  attempts: JSON_TEXT.pipe(z.array(ATTEMPT)).default([]),
  answer: z.string().default(''),
});

/**
 * One try of a delivery. Times in ms; `nextAtMs` is when the next try is due, null when there is none. `answer` is the
 * beginning of what was said; `remaining` are the recipients that still miss it, left out where that is all of them or none.
 */
export type Attempt = z.infer<typeof ATTEMPT>;

export type DeliveryOutcome = z.infer<typeof OUTCOME>;

/**
 * What is known of a delivery. It decides whether the delivery is done. `entry` is the event's place in the log, `roots`
 * the claims that lead to the receiver, `turn` when it was opened (Redis time, microseconds; null once it was delivered),
 * `tries` counts all attempts, `earlierTries` those that use up none: they came
 * before the delivery began anew, before its own time, or met a receiver that requested time. The last of them are in
 * `attempts` (none where the first succeeded), and what was said to the very last in `answer`. `after` is the delivery of
 * the same subject that must have ended first, `nextAt` (Redis time, ms) when it is tried again, `replay` the replay that
 * sends the event once more, `batch` the message that it is sent in together with others, `suspended` is not empty where the event waited for what had left the config, `deliveredAt` (Redis time, ms)
 * when it was first noted as delivered; null where that was not noted.
 */
export type DeliveryFact = z.infer<typeof FACT>;
