import { isJsonObject, type JsonObject, type JsonValue, parseJson } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';

/** A refused field of the request, as a dotted path, with the reason. */
export type FieldFault = { field: string; detail: string };

/** Reason of one solver's refusal to quote. */
export type SolverFault = { solver: string; code: string; message: string };

/** Details of a problem for the operator's support; missing ones are absent. */
export type SupportDetails = { requestId?: string; legacyCode?: string; instance?: string; title?: string };

/** Readable content of an error body; texts are unfiltered. */
export type Problem = {
  /** The stable code to branch on. */
  code: string | null;
  /** `detail` of a problem body, the gateway's `Message`, or the deposit gateway's `message`. */
  detail: string | null;
  fields: FieldFault[];
  solvers: SolverFault[];
  support: SupportDetails;
};

/** Most entries of either list: more would make a message too long. */
const MAX_FAULTS = 20;

/**
 * Reads any error body: a problem, the gateway's `{ Message }`, the deposit gateway's `{ statusCode, message, code
 * }`, the open quoting service's `{ statusCode, createdBy, validationErrors }`, HTML, or an empty one. Never throws.
 */
export function readProblem(text: string): Problem {
  const body = jsonOrNull(text);
  if (!isJsonObject(body)) return { code: null, detail: null, fields: [], solvers: [], support: {} };
  return {
    code: [body.code, body.errorCode].find(isCode) ?? null,
    detail:
      detailsOf(body).flatMap((one) => (typeof one === 'string' && one.trim() !== '' ? [one] : []))[0] ??
      null,
    fields: [...objects(body.errors), ...objects(body.validationErrors)].flatMap(fieldFault),
    solvers: objects(body.solverErrors).flatMap(solverFault),
    support: supportDetails(body),
  };
}

/** A code is an identifier; other text must not reach labels and logs. */
function isCode(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(value);
}

/** Members that may have the reason: a problem's, the gateway's, then the deposit gateway's, the most precise first. */
function detailsOf({ detail, Message, details, errorDesc, cause, message, error, errorCode }: JsonObject) {
  const inner = isJsonObject(details) ? details : {};
  return [detail, Message, inner.cause, inner.errorDesc, errorDesc, cause, message, error, errorCode];
}

const SUPPORT = ['requestId', 'legacyCode', 'instance', 'title'] as const;

/** The deposit-address service's `requestId` is a short number (interface, Problem), sent as text or as a number. */
function supportDetails(body: JsonObject): SupportDetails {
  const details: SupportDetails = {};
  for (const name of SUPPORT) {
    const value = body[name];
    if (typeof value === 'number' || (typeof value === 'string' && value.trim() !== '')) {
      details[name] = String(value);
    }
  }
  return details;
}

/** Each detail with its name, for the end of a message: `title "…", requestId …`; empty without details. */
export function describeSupport(details: SupportDetails): string {
  return SUPPORT.toReversed()
    .flatMap((name) => {
      const value = details[name];
      return value === undefined ? [] : [`${name} ${name === 'title' ? JSON.stringify(value) : value}`];
    })
    .join(', ');
}

function fieldFault({ field, detail, message }: JsonObject): FieldFault[] {
  const why = detail ?? message;
  return typeof field === 'string' && typeof why === 'string' ? [{ field, detail: why }] : [];
}

function solverFault({ solver, solverName, code, message }: JsonObject): SolverFault[] {
  if (typeof solver !== 'string' || typeof message !== 'string') return [];
  const name = typeof solverName === 'string' && solverName !== '' ? solverName : solver;
  return [{ solver: name, code: typeof code === 'string' ? code : 'no code', message }];
}

function objects(value: JsonValue | undefined): JsonObject[] {
  return Array.isArray(value) ? value.slice(0, MAX_FAULTS).filter((item) => isJsonObject(item)) : [];
}

function jsonOrNull(text: string): JsonValue {
  if (text.length > LIMITS.upstream.bytes) return null;
  try {
    return parseJson(text, { limits: LIMITS.upstream, longNumber: 'drop' });
  } catch {
    return null;
  }
}
