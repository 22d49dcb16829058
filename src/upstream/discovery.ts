import { isJsonObject, type JsonObject, type JsonValue } from '../domain/json.ts';
import { kindOf, type Reading } from './wire.ts';

/** What the chains or tokens endpoint said. The interface does not show its shape, so it is passed on whole. */
export type Discovery = JsonObject | JsonValue[];

/** What the discovery endpoints must answer, in words. */
export const DISCOVERY_EXPECTED = 'HTTP 200 with a JSON object or array';

/** Reads a list of chains or tokens: any object or array will do. */
export function readDiscovery(body: JsonValue): Reading<Discovery> {
  if (isJsonObject(body) || Array.isArray(body)) return { value: body };
  return { mismatch: `${kindOf(body)} as the body` };
}
