import { createHmac, sign } from 'node:crypto';
import { ExpiringSecret, parseSigningSecret, type SigningKey } from '../../config/fields/signing-secret.ts';
import type { Secret } from '../../secret.ts';

/** What a signature covers; `timestampSeconds` is the Unix time of the attempt. */
export type SignedContent = { id: string; timestampSeconds: number; body: Buffer };

/** The `webhook-signature` header of Standard Webhooks: one signature per secret that has not ended, separated by spaces. */
export function signatureHeader(content: SignedContent, secrets: readonly Secret[]): string {
  const nowMs = content.timestampSeconds * 1_000;
  const valid = secrets.filter((secret) => !(secret instanceof ExpiringSecret) || nowMs < secret.untilMs);
  return valid.map((secret) => signature(content, readKey(secret))).join(' ');
}

/** `v1,` and HMAC-SHA256, or `v1a,` and ed25519, in base64, over `id.timestamp.body`. */
function signature({ id, timestampSeconds, body }: SignedContent, signing: SigningKey): string {
  const signed = Buffer.concat([Buffer.from(`${id}.${timestampSeconds}.`), body]);
  switch (signing.type) {
    case 'hmac':
      return `v1,${createHmac('sha256', signing.key).update(signed).digest('base64')}`;
    case 'ed25519':
      return `v1a,${sign(null, signed, signing.key).toString('base64')}`;
    default:
      return signing satisfies never;
  }
}

/** The keys of secrets that were read: that of ed25519 is costly to make. */
const KEYS = new WeakMap<Secret, SigningKey>();

function readKey(secret: Secret): SigningKey {
  const known = KEYS.get(secret);
  if (known !== undefined) return known;
  const key = parseSigningSecret(secret.reveal());
  if (key === null) throw new Error('a webhook secret is neither whsec_ nor whsk_ with a key behind it');
  KEYS.set(secret, key);
  return key;
}
