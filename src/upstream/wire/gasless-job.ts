import { isJsonObject, type JsonObject, type JsonValue } from '../../domain/json.ts';
import { kindOf, type Reading, textOrNull } from './wire.ts';

/** A gasless job that a submit queued, or found to exist already. */
export type GaslessJob = {
  /** With its prefix `gasless:`. */
  id: string;
  status: string;
  /** All the upstream said. */
  raw: JsonObject;
};

/** What the gasless submits must answer, in words. */
export const GASLESS_JOB_EXPECTED =
  'HTTP 202 (or 200 for a job that exists) with a JSON object of id and status';

/** Reads a gasless job: `id` and `status` must be there. */
export function readGaslessJob(body: JsonValue): Reading<GaslessJob> {
  if (!isJsonObject(body)) return { mismatch: `${kindOf(body)} as the body` };
  const id = textOrNull(body.id);
  if (id === null) return { mismatch: `${kindOf(body.id)} as id` };
  const status = textOrNull(body.status);
  if (status === null) return { mismatch: `${kindOf(body.status)} as status` };
  return { value: { id, status, raw: body } };
}
