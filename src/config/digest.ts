import { createHash } from 'node:crypto';
import { canonicalJson, type JsonValue } from '../domain/json.ts';
import { Secret } from '../secret.ts';
import type { Config } from './config.ts';

/**
 * SHA-256 in hex over what processes on one Redis must agree on: the config without its secrets, and without what
 * belongs to a single process (the file's place, `dataDir`, `server`, `log`).
 */
export function digestOf({
  dataDir,
  server,
  log,
  ...shared
}: Omit<Config, 'file' | 'digest' | 'warnings'>): string {
  return createHash('sha256')
    .update(canonicalJson(withoutSecrets(shared) ?? null))
    .digest('hex');
}

function withoutSecrets(value: unknown): JsonValue | undefined {
  if (value instanceof Secret) return undefined;
  if (Array.isArray(value)) return value.flatMap((item) => withoutSecrets(item) ?? []);
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).flatMap(([key, inner]) => {
      const kept = withoutSecrets(inner);
      return kept === undefined ? [] : [[key, kept] as const];
    });
    return Object.fromEntries(members);
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null;
}
