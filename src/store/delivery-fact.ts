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
  isAsLogged: z
    .literal('1')
    .optional()
    .transform((text) => text !== undefined),
  entry: z.string().regex(/^\d+-\d+$/),
  claimKeys: JSON_TEXT.pipe(z.array(z.string())),
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
 * One try of a delivery. Times in ms; `nextAtMs` is the due time of the next try, null for none. `answer` is the beginning of
 * the answer; `remaining` are the recipients that still miss it, omitted where that is all of them or none.
 */
export type Attempt = z.infer<typeof ATTEMPT>;

export type DeliveryOutcome = z.infer<typeof OUTCOME>;

/**
 * The stored state of a delivery, which decides whether it is done:
 * - `entry`: place of the event in the log; `claimKeys`: the claims that lead to the receiver; where they are those of the entry
 *   (`isAsLogged`), a delivered one does not repeat them;
 * - `turn`: time of opening (Redis time, microseconds; null once it was delivered);
 * - `tries`: all attempts; `earlierTries`: those that use up none. They came before the delivery began anew, before its
 *   own time, or met a receiver that requested time;
 * - `attempts`: the last of them (none where the first succeeded); `answer`: the answer to the very last;
 * - `after`: the delivery of the same subject that must end first; `nextAt`: time of the next try (Redis time, ms);
 * - `replay`: the replay that sends the event again; `batch`: the message that it shares with others;
 * - `suspended`: not empty where the event waited for a suspended claim;
 * - `deliveredAt`: time at which it was first recorded as delivered (Redis time, ms; null where that was not recorded).
 */
export type DeliveryFact = z.infer<typeof FACT>;

const MORE = JSON_TEXT.pipe(
  z.object({
    claimKeys: z.string().exactOptional(),
    suspended: z.string().exactOptional(),
    attempts: z.string().exactOptional(),
  }),
);

/** Returns the fields of a fact from the text of a delivered one (commands/include/delivered.lua). */
export function deliveredFields(text: string, replay: string | null): { [field: string]: string } {
  const [entry = '', tries = '', afterMs = '', ...more] = text.split('|');
  const others: z.infer<typeof MORE> = MORE.safeParse(more.join('|')).data ?? {};
  const deliveredMs = Number(entry.split('-')[0]) + Number(afterMs);
  return {
    outcome: 'delivered',
    entry,
    tries,
    ...(others.claimKeys === undefined ? { isAsLogged: '1', claimKeys: '[]' } : {}),
    ...(entry === '0-0' ? {} : { deliveredAt: String(deliveredMs) }),
    ...(replay === null ? {} : { replay }),
    ...others,
  };
}
