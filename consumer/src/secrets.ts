import { createPublicKey, type KeyObject } from 'node:crypto';

const MIN_HMAC_BYTES = 24;
const MAX_HMAC_BYTES = 64;
const PUBLIC_KEY_BYTES = 32;

/** Bytes before the 32 bytes of an ed25519 public key in its DER form (RFC 8410). */
const PUBLIC_DER = Buffer.from('302a300506032b6570032100', 'hex');

/** A key that checks signatures, and the version that they carry. */
export type VerifyingKey = { version: 'v1'; key: Buffer } | { version: 'v1a'; key: KeyObject };

/** One secret, several during a rotation, or a function that is called at each webhook. */
export type Secrets = string | readonly string[] | (() => string | readonly string[]);

const EXPECTED =
  'a webhook secret is whsec_ and base64 of 24 to 64 bytes, or whpk_ and base64 of an ed25519 public key of 32 bytes';

/** The keys of `secrets`, in order. Throws for an invalid one; the message does not show it. */
export function createKeyring(secrets: Secrets): () => VerifyingKey[] {
  const parsed = new Map<string, VerifyingKey>();
  const keyOf = (secret: string, index: number): VerifyingKey => {
    const key = parsed.get(secret) ?? parseSecret(secret, index);
    parsed.set(secret, key);
    return key;
  };
  const read = (): VerifyingKey[] => {
    const list = [typeof secrets === 'function' ? secrets() : secrets].flat();
    if (list.length === 0) throw new Error(`found no webhook secret, expected at least one: ${EXPECTED}`);
    return list.map(keyOf);
  };
  // An invalid secret is found at the start, not at the first webhook.
  if (typeof secrets !== 'function') read();
  return read;
}

function parseSecret(secret: string, index: number): VerifyingKey {
  const found = (what: string): Error => new Error(`secret ${index + 1} ${what}; ${EXPECTED}`);
  if (typeof secret !== 'string' || secret === '') throw found('is empty (is its variable set?)');
  if (secret.startsWith('whsk_'))
    throw found('is a private key (whsk_), which only the sender holds: take the whpk_ beside it');
  const [, prefix, text = ''] = /^(whsec_|whpk_)(.*)$/s.exec(secret) ?? [];
  if (prefix === undefined) throw found('starts with neither whsec_ nor whpk_');
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text)
    throw found('is not base64 (is there a space or a line break at its end?)');
  if (prefix === 'whsec_') {
    if (bytes.length < MIN_HMAC_BYTES || bytes.length > MAX_HMAC_BYTES)
      throw found(`has ${bytes.length} bytes`);
    return { version: 'v1', key: bytes };
  }
  if (bytes.length !== PUBLIC_KEY_BYTES) throw found(`has ${bytes.length} bytes`);
  const der = Buffer.concat([PUBLIC_DER, bytes]);
  return { version: 'v1a', key: createPublicKey({ key: der, format: 'der', type: 'spki' }) };
}
