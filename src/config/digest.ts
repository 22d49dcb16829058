import { createHash } from 'node:crypto';
import { canonicalJson, type JsonValue } from '../domain/json.ts';
import { Secret } from '../secret.ts';
import type { ConfigContents } from './config.ts';
import { ExpiringSecret } from './fields/signing-secret.ts';

/** SHA-256 in hex over the settings that processes on one Redis must share: without secrets and settings of a single process. */
export function digestOf({ dataDir, server, log, reload, ...shared }: ConfigContents): string {
  return createHash('sha256')
    .update(canonicalJson(withoutSecrets(shared) ?? null))
    .digest('hex');
}

/**
 * SHA-256 over the text of a file and the values of its variables and files, secrets included: a confirmation must not apply
 * a file in which a token was exchanged meanwhile. Processes with one file may differ in the variables of `dataDir`, `log`
 * and `server`; there only the text counts. The digest is a secret itself, because it allows guesses of weak secrets. The
 * shown value is made from it with a key (see ConfirmationStore).
 */
export function fingerprintOf(text: string, { dataDir, log, server, ...shared }: ConfigContents): Secret {
  const { host, port, publicUrl, ...access } = server;
  const values = canonicalJson(withSecrets({ ...shared, server: access }));
  return new Secret(
    createHash('sha256')
      .update(JSON.stringify([text, values]))
      .digest('hex'),
  );
}

/** A value with its secrets, for comparison only; never shown. */
export function withSecrets(value: unknown): JsonValue {
  if (value instanceof ExpiringSecret) return [value.reveal(), value.untilMs];
  if (value instanceof Secret) return [value.reveal()];
  if (Array.isArray(value)) return value.map(withSecrets);
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withSecrets(inner)]));
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null;
}

function withoutSecrets(value: unknown): JsonValue | undefined {
  if (value instanceof Secret) return undefined;
  if (Array.isArray(value)) return value.flatMap((item) => withoutSecrets(item) ?? []);
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).flatMap(([key, inner]) => {
      const remaining = withoutSecrets(inner);
      return remaining === undefined ? [] : [[key, remaining] as const];
    });
    return Object.fromEntries(members);
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null;
}
