import { createHash } from 'node:crypto';
import { canonicalJson, type JsonValue } from '../../domain/json.ts';

/** Records are replaced, never changed: each is digested once. */
const digests = new WeakMap<object, string>();

/** A digest of what a record says besides `updatedAt`: equal for records that say the same, in whatever order. */
export function contentOf(record: object): string {
  const known = digests.get(record);
  if (known !== undefined) return known;
  const said: JsonValue = JSON.parse(JSON.stringify({ ...record, updatedAt: undefined }));
  const digest = createHash('sha256').update(canonicalJson(said)).digest('base64url').slice(0, 16);
  digests.set(record, digest);
  return digest;
}
