import { z } from 'zod';
import type { JsonObject } from './json.ts';

/** What names an event, the same for every receiver. */
const HEAD = {
  id: z
    .string()
    .regex(/^evt_[0-9a-f]{40}$/)
    .describe(
      'Names the event. The same for every receiver, attempt and replay; also the `webhook-id` header.',
    ),
  type: z
    .string()
    .regex(/^[a-z0-9._-]+$/)
    .describe('The kind of the subject, a dot, and a word: a status in lower case or what happened.'),
  timestamp: z.iso.datetime().describe('When the change was seen: UTC, Redis time, with milliseconds.'),
};

const SUBJECT = {
  kind: z
    .string()
    .describe(
      '`intent`, `quote`, `gasless`, `vault`, `deposit-address`, `route`, `upstream`, `receiver`, `intentwatch` or a word of the upstream.',
    ),
  id: z.string().describe('The id, with its prefix, such as `intent:0x…`.'),
};

const RECORD: z.ZodType<JsonObject> = z.record(z.string(), z.json());

const STATE = {
  subject: z.object(SUBJECT).describe('What the event is about.'),
  sequence: z
    .int()
    .min(1)
    .describe('Counts the events of this subject: 1, 2, 3 … Order by it, not by arrival.'),
  status: z
    .string()
    .nullable()
    .describe('The status after the change, as the upstream writes it (`PENDING` of a vault).'),
  previousStatus: z
    .string()
    .nullable()
    .describe('The status before. Null at first sight. Equal to `status` when something else changed.'),
  changes: z
    .array(z.string())
    .describe(
      'Paths within `record` that changed. At first sight all members; empty when the clock or a verification made the event.',
    ),
  record: RECORD.describe(
    'What the upstream said, whole, members that are not documented included. Two types add a member: `quote.expired` has `expiresAt`, `quote.signature_invalid` has `signature` with `part` (which is wrong), `reason` and `recovered` (who signed, or null).',
  ),
};

const CUT = {
  recordTruncated: z
    .literal(true)
    .exactOptional()
    .describe(
      'True when the event was larger than a webhook may be: the largest members of `record` (then the last of `changes`) are left out. Otherwise absent.',
    ),
  recordUrl: z
    .string()
    .exactOptional()
    .describe(
      'Where the event can be read whole, by whoever has this link, for 7 to 8 days after the attempt. Only beside `recordTruncated`, where `server.publicUrl` and `server.token` are set.',
    ),
};

const REMARKS = {
  skipped: z
    .boolean()
    .exactOptional()
    .describe('True when a usual step between `previousStatus` and `status` was not seen; otherwise absent.'),
  regression: z
    .boolean()
    .exactOptional()
    .describe(
      'True when the subject moved backward, or an older answer was confirmed until it was accepted; otherwise absent.',
    ),
  elapsedSeconds: z
    .int()
    .min(0)
    .exactOptional()
    .describe(
      'How long the subject had been under way: from the first `updatedAt` seen while it waited to `upstreamUpdatedAt`, for `overdue` to `timestamp`. Absent where it did not move on from waiting, or either is not known.',
    ),
};

const AUDIENCE = {
  wallets: z.array(z.string()).describe('The wallets of your subscriptions whose pages showed the subject.'),
  subscriptions: z.array(z.string()).describe('Your subscriptions that lead to this receiver.'),
  metadata: z
    .record(z.string(), z.string())
    .describe('The `metadata` of those subscriptions, merged in the order of the config.'),
};

const TIMES = {
  upstreamUpdatedAt: z
    .int()
    .nullable()
    .describe("The record's `updatedAt` in Unix seconds; null where it has none."),
  detectionDelaySeconds: z
    .number()
    .min(0)
    .nullable()
    .describe('`timestamp` minus `upstreamUpdatedAt`, good to a second; null where the latter is.'),
};

const FACTS = { ...STATE, ...REMARKS, ...TIMES };

/** The event as it is made: one for all receivers, and immutable. */
export const EVENT = z.object({ ...HEAD, data: z.object(FACTS) });

/** The event as the log gives it back: members that a later version has added stay in it, and reach the receivers. */
export const STORED_EVENT = z.looseObject({
  ...HEAD,
  data: z.looseObject({ ...FACTS, subject: z.looseObject(SUBJECT) }),
});

/** The event as a receiver gets it: what a webhook's body holds, and what its consumers may rely on. */
export const RENDERED_EVENT = z
  .object({ ...HEAD, data: z.object({ ...STATE, ...CUT, ...REMARKS, ...AUDIENCE, ...TIMES }) })
  .meta({ title: 'Intentwatch event' });
