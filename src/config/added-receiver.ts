import { isJsonObject, type JsonObject, type JsonValue } from '../domain/json.ts';
import type { Receiver } from './config.ts';
import { renderPath } from './file/errors.ts';
import { buildReceiver, checkReceiver, receiverSchema } from './sections/receiver.ts';

/** What is wrong with a receiver that is made through the API: the member, and what was expected of it. */
export type ReceiverFault = { place: string; expected: string };

/**
 * Reads a receiver as the config would have it, from what the API was given. What stands in files belongs to the config:
 * `tls` is refused, and nothing is expanded.
 */
export function readAddedReceiver(
  definition: JsonValue,
  { hasSmtp, retentionMs }: { hasSmtp: boolean; retentionMs: number },
): Receiver | ReceiverFault[] {
  const parsed = receiverSchema.safeParse(definition);
  const faults = (parsed.success ? [] : parsed.error.issues).flatMap((issue): ReceiverFault[] => {
    const path = issue.path.map((key) => (typeof key === 'number' ? key : String(key)));
    if (issue.code !== 'unrecognized_keys') return [{ place: renderPath(path), expected: issue.message }];
    return issue.keys.map((key) => ({ place: renderPath([...path, key]), expected: 'none of this name' }));
  });
  faults.push(
    ...checkReceiver(definition, { hasSmtp }).map(({ path, expected }) => ({
      place: renderPath(path),
      expected,
    })),
  );
  if (isJsonObject(definition) && definition.tls !== undefined) {
    faults.push({ place: 'tls', expected: 'none: a receiver with files belongs into the config' });
  }
  if (!parsed.success || faults.length > 0) return faults;
  const receiver = buildReceiver(parsed.data, { tls: null });
  const retriesMs = receiver.retries.delaysMs.reduce((sum, delayMs) => sum + delayMs, 0);
  const expected = 'no longer than the `retention` of the config';
  if (receiver.disableAfterMs > retentionMs) return [{ place: 'disableAfter', expected }];
  if (retriesMs > retentionMs) return [{ place: 'retries.delays', expected }];
  return receiver;
}

/**
 * The secrets of a receiver with a new one before them; the others end at a time, or where they end already, whichever is
 * first. What has ended is left out.
 */
export function rotatedSecrets(
  definition: JsonObject,
  { secret, untilMs, nowMs }: { secret: string; untilMs: number; nowMs: number },
): JsonValue[] {
  const before = Array.isArray(definition.secrets) ? definition.secrets : [];
  const ending = before.flatMap((one): JsonValue[] => {
    const endsMs = isJsonObject(one) && typeof one.until === 'string' ? Date.parse(one.until) : untilMs;
    const text = isJsonObject(one) ? one.secret : one;
    const until = Math.min(endsMs, untilMs);
    if (typeof text !== 'string' || until <= nowMs) return [];
    return [{ secret: text, until: new Date(until).toISOString() }];
  });
  return [secret, ...ending];
}
