import { createHmac } from 'node:crypto';
import type { Secret } from '../../config/secret.ts';

const HMAC_PREFIX = 'whsec_';

/** What a signature covers; `timestampSeconds` is the Unix time of the attempt. */
export type SignedContent = { id: string; timestampSeconds: number; body: Buffer };

/** The `webhook-signature` header of Standard Webhooks: one signature per secret, separated by spaces. */
export function signatureHeader(content: SignedContent, secrets: readonly Secret[]): string {
  return secrets.map((secret) => hmacSignature(content, secret)).join(' ');
}

/** `v1,` and the base64 of an HMAC-SHA256 over `id.timestamp.body`, keyed with the bytes behind `whsec_`. */
function hmacSignature({ id, timestampSeconds, body }: SignedContent, secret: Secret): string {
  const text = secret.reveal();
  if (!text.startsWith(HMAC_PREFIX)) throw new Error(`a webhook secret does not begin with ${HMAC_PREFIX}`);
  const key = Buffer.from(text.slice(HMAC_PREFIX.length), 'base64');
  const hmac = createHmac('sha256', key).update(`${id}.${timestampSeconds}.`).update(body);
  return `v1,${hmac.digest('base64')}`;
}
