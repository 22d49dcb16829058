import { isJsonObject, type JsonValue } from '../domain/json.ts';
import { parseJson } from './json.ts';

/** What an error body said, as far as it could be read. */
export type Problem = {
  /** The stable code to branch on. */
  code: string | null;
  /** `detail` of a problem body, or the gateway's `Message`; unfiltered text. */
  detail: string | null;
};

/** Reads any error body: a problem, the gateway's `{ Message }`, HTML, nothing. Never throws. */
export function readProblem(text: string): Problem {
  const body = jsonOrNull(text);
  if (!isJsonObject(body)) return { code: null, detail: null };
  const { code, detail, Message: message } = body;
  return {
    // A code is an identifier; whatever else stands there must not reach labels and logs.
    code: typeof code === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(code) ? code : null,
    detail: typeof detail === 'string' ? detail : typeof message === 'string' ? message : null,
  };
}

function jsonOrNull(text: string): JsonValue {
  try {
    return parseJson(text);
  } catch {
    return null;
  }
}
