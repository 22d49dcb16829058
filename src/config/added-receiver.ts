import { isJsonObject, type JsonObject, type JsonValue } from '../domain/json.ts';
import type { ApiReceiverLimits, Receiver } from './config.ts';
import { isInNetworks, isPrivateHost } from './fields/http.ts';
import { renderPath } from './file/errors.ts';
import { buildReceiver, checkReceiver, receiverSchema } from './sections/receiver.ts';

/** A fault of a receiver made through the API: the member, the found value where it may be shown, and the expected one. */
export type ReceiverFault = { place: string; found?: string; expected: string };

/** Settings of the config that limit receivers made through the API. */
export type AddedReceiverRules = { hasSmtp: boolean; retentionMs: number; limits: ApiReceiverLimits };

/** Reads a receiver of the API into the config's form. `tls` is refused, and nothing is expanded: only the config uses files. */
export function readAddedReceiver(
  definition: JsonValue,
  { hasSmtp, retentionMs, limits }: AddedReceiverRules,
): Receiver | ReceiverFault[] {
  const parsed = receiverSchema.safeParse(definition);
  const faults = (parsed.success ? [] : parsed.error.issues).flatMap((issue): ReceiverFault[] => {
    const path = issue.path.map((key) => (typeof key === 'number' ? key : String(key)));
    if (issue.code !== 'unrecognized_keys') return [{ place: renderPath(path), expected: issue.message }];
    return issue.keys.map((key) => ({ place: renderPath([...path, key]), expected: 'none of this name' }));
  });
  faults.push(
    ...checkReceiver(definition, { hasSmtp }).map(({ path, found, expected }) => ({
      place: renderPath(path),
      ...(found === undefined ? {} : { found }),
      expected,
    })),
  );
  if (isJsonObject(definition) && definition.tls !== undefined) {
    faults.push({ place: 'tls', expected: 'none: a receiver with files belongs into the config' });
  }
  if (!parsed.success) return faults;
  const receiver = limited(buildReceiver(parsed.data, { tls: null }), limits);
  const outside = outsideLimits(receiver, limits);
  // A member of the receiver cannot permit what the config forbids: then only the setting of the config is named.
  const places = new Set(outside.map(({ place }) => place));
  const shown = [...outside, ...faults.filter(({ place }) => !places.has(place))];
  if (shown.length > 0) return shown;
  const retriesMs = receiver.retries.delaysMs.reduce((sum, delayMs) => sum + delayMs, 0);
  const expected = 'no longer than the `retention` of the config';
  if (receiver.disableAfterMs > retentionMs) return [{ place: 'disableAfter', expected }];
  if (retriesMs > retentionMs) return [{ place: 'retries.delays', expected }];
  return receiver;
}

/** Limits a receiver's connections to permitted addresses, whatever its URL resolves to. */
function limited(receiver: Receiver, { allowNetworks }: ApiReceiverLimits): Receiver {
  return receiver.type === 'email' ? receiver : { ...receiver, apiNetworks: allowNetworks };
}

/** Members outside the limits. The addresses of a host name are checked at each connection, not here. */
function outsideLimits(receiver: Receiver, limits: ApiReceiverLimits): ReceiverFault[] {
  const { type } = receiver;
  if (!limits.types.includes(type)) {
    return [{ place: 'type', found: `"${type}"`, expected: 'a type of server.apiReceivers.types' }];
  }
  if (type === 'email') return [];
  const url = new URL(receiver.url.reveal());
  const faults: ReceiverFault[] = [];
  if (!limits.allowInsecure && url.protocol === 'http:') {
    const expected = 'an https:// URL (or server.apiReceivers.allowInsecure: true)';
    faults.push({ place: 'url', found: 'an http:// URL', expected });
  }
  if (!limits.allowInsecure && type === 'postgres' && receiver.allowInsecure) {
    const expected = 'false (or server.apiReceivers.allowInsecure: true)';
    faults.push({ place: 'allowInsecure', found: 'true', expected });
  }
  const proxy = type === 'webhook' ? receiver.proxy : null;
  if (proxy !== null && !limits.proxies.includes(new URL(proxy.reveal()).origin)) {
    const expected = 'one of server.apiReceivers.proxies';
    faults.push({ place: 'proxy', found: 'a proxy that is not listed', expected });
  }
  if (proxy === null && isPrivateHost(url) && !isInNetworks(url, limits.allowNetworks)) {
    const expected = 'a public host (or its network in server.apiReceivers.allowNetworks)';
    faults.push({ place: 'url', found: 'a URL on a private or loopback address', expected });
  }
  return faults;
}

/** Puts a new secret first. The others end at the given time, or at their earlier end; expired ones are omitted. */
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
