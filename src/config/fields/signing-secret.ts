import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import { Secret } from '../../secret.ts';
import { mapping } from './fields.ts';

const HMAC_PREFIX = 'whsec_';
const PRIVATE_PREFIX = 'whsk_';
const PUBLIC_PREFIX = 'whpk_';

const MIN_HMAC_BYTES = 24;
const MAX_HMAC_BYTES = 64;
const SEED_BYTES = 32;

/** Bytes before the 32 bytes of an ed25519 seed in PKCS #8 (RFC 8410). */
const PRIVATE_DER = Buffer.from('302e020100300506032b657004220420', 'hex');

/** A parsed signing key: the bytes of an HMAC key, or an ed25519 key pair. */
export type SigningKey = { type: 'hmac'; key: Uint8Array } | { type: 'ed25519'; key: KeyObject };

/** Highest number of a receiver's secrets: each signs every request, and the header has a limit. */
export const MOST_SECRETS = 20;

export const SECRET_EXPECTED =
  'a signing secret: whsec_ and base64 of 24 to 64 random bytes, or whsk_ and base64 of an ed25519 key (keygen makes both)';

/**
 * Parses a signing secret of Standard Webhooks: `whsec_` and base64 of 24 to 64 bytes, or `whsk_` and base64 of an ed25519
 * seed of 32 bytes, with or without the 32 bytes of its public key behind it. Null for any other text.
 */
export function parseSigningSecret(text: string): SigningKey | null {
  if (text.startsWith(HMAC_PREFIX)) {
    const key = canonicalBase64(text.slice(HMAC_PREFIX.length));
    const fits = key !== null && key.length >= MIN_HMAC_BYTES && key.length <= MAX_HMAC_BYTES;
    // A copy: a small buffer is a part of a pool of 64 kB, which it would hold.
    return fits ? { type: 'hmac', key: new Uint8Array(key) } : null;
  }
  const pair = text.startsWith(PRIVATE_PREFIX) ? canonicalBase64(text.slice(PRIVATE_PREFIX.length)) : null;
  if (pair === null || (pair.length !== SEED_BYTES && pair.length !== 2 * SEED_BYTES)) return null;
  const key = privateKeyOf(pair.subarray(0, SEED_BYTES));
  // A public half of another seed is a slip that no receiver could explain.
  if (pair.length > SEED_BYTES && !pair.subarray(SEED_BYTES).equals(publicBytes(key))) return null;
  return { type: 'ed25519', key };
}

/** Formats an HMAC secret: `whsec_…`. */
export function formatHmacSecret(key: Buffer): string {
  return `${HMAC_PREFIX}${key.toString('base64')}`;
}

/** Formats an ed25519 key pair: `whsk_…` signs, `whpk_…` verifies. `seed` has 32 bytes. */
export function formatKeyPair(seed: Buffer): { secret: string; publicKey: string } {
  const bytes = publicBytes(privateKeyOf(seed));
  return {
    secret: `${PRIVATE_PREFIX}${Buffer.concat([seed, bytes]).toString('base64')}`,
    publicKey: `${PUBLIC_PREFIX}${bytes.toString('base64')}`,
  };
}

function privateKeyOf(seed: Buffer): KeyObject {
  return createPrivateKey({ key: Buffer.concat([PRIVATE_DER, seed]), format: 'der', type: 'pkcs8' });
}

function publicBytes(key: KeyObject): Buffer {
  return createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-SEED_BYTES);
}

/** Decodes base64 in the form of an encoder; null otherwise. */
function canonicalBase64(base64: string): Buffer | null {
  const bytes = Buffer.from(base64, 'base64');
  return bytes.toString('base64') === base64 ? bytes : null;
}

export const signingSecretField = z
  .string({ error: SECRET_EXPECTED })
  .transform((text, context) => {
    if (parseSigningSecret(text) !== null) return new Secret(text);
    context.addIssue({ code: 'custom', message: SECRET_EXPECTED });
    return z.NEVER;
  })
  .meta({ writeOnly: true });

const UNTIL_EXPECTED = 'a time with its zone, like 2026-12-01T00:00:00Z';
const UNTIL = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/;

/** A signing secret with an end: from `untilMs` on, milliseconds since 1970, it signs no more. */
export class ExpiringSecret extends Secret {
  readonly untilMs: number;

  constructor(value: string, untilMs: number) {
    super(value);
    this.untilMs = untilMs;
  }
}

export const expiringSecretField = mapping({
  secret: signingSecretField.meta({ description: 'A signing secret.', label: 'text', writeOnly: true }),
  until: z
    .string({ error: UNTIL_EXPECTED })
    .refine((text) => UNTIL.test(text) && !Number.isNaN(Date.parse(text)), { error: UNTIL_EXPECTED })
    .transform((text) => Date.parse(text))
    .meta({ description: 'When it stops to sign, like `2026-12-01T00:00:00Z`.', label: 'time' }),
}).transform(({ secret, until }) => new ExpiringSecret(secret.reveal(), until));
