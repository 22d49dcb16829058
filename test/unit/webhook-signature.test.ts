import { createHmac, createPublicKey, verify } from 'node:crypto';
import fc from 'fast-check';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { describe, expect, test } from 'vitest';
import {
  ExpiringSecret,
  formatHmacSecret,
  formatKeyPair,
  parseSigningSecret,
} from '../../src/config/fields/signing-secret.ts';
import { signatureHeader } from '../../src/notifiers/webhook/webhook.ts';
import { Secret } from '../../src/secret.ts';

const ID = `evt_${'0123456789'.repeat(4)}`;
const seeds = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes));
const hmacKeys = fc.uint8Array({ minLength: 24, maxLength: 64 }).map((bytes) => Buffer.from(bytes));
const bodies = fc.dictionary(fc.string(), fc.jsonValue()).map((value) => Buffer.from(JSON.stringify(value)));

function headersOf(
  body: Buffer,
  secrets: (string | Secret)[],
  timestampSeconds = Math.floor(Date.now() / 1_000),
) {
  const header = signatureHeader(
    { id: ID, timestampSeconds, body },
    secrets.map((secret) => (typeof secret === 'string' ? new Secret(secret) : secret)),
  );
  return {
    'webhook-id': ID,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': header,
  };
}

/** Verification at a receiver that has a public key and Node, and nothing else. */
function verifiesWithNode(publicKey: string, headers: ReturnType<typeof headersOf>, body: Buffer): boolean {
  const x = Buffer.from(publicKey.slice('whpk_'.length), 'base64').toString('base64url');
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  const signed = Buffer.concat([
    Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`),
    body,
  ]);
  return headers['webhook-signature'].split(' ').some((one) => {
    const [version, base64 = ''] = one.split(',');
    return version === 'v1a' && verify(null, signed, key, Buffer.from(base64, 'base64'));
  });
}

describe.each([
  ['standardwebhooks', StandardWebhook],
  ['svix', SvixWebhook],
])('an HMAC signature and the library %s', (_, Library) => {
  test('is verified, also beside an ed25519 signature, and not with another key or body', () => {
    fc.assert(
      fc.property(hmacKeys, hmacKeys, seeds, bodies, (key, stranger, seed, body) => {
        fc.pre(!key.equals(stranger));
        const headers = headersOf(body, [formatKeyPair(seed).secret, formatHmacSecret(key)]);
        const library = new Library(formatHmacSecret(key));
        expect(() => library.verify(body.toString(), headers)).not.toThrow();
        expect(() => library.verify(`${body} `, headers)).toThrow();
        expect(() => new Library(formatHmacSecret(stranger)).verify(body.toString(), headers)).toThrow();
      }),
      { numRuns: 50 },
    );
  });

  test('is verified with a secret that ends until it has ended, and with the one beside it before and after', () => {
    fc.assert(
      fc.property(
        hmacKeys,
        hmacKeys,
        bodies,
        fc.integer({ min: -100, max: 100 }),
        (old, next, body, left) => {
          fc.pre(!old.equals(next));
          const timestampSeconds = Math.floor(Date.now() / 1_000);
          const ending = new ExpiringSecret(formatHmacSecret(old), (timestampSeconds + left) * 1_000);
          const headers = headersOf(body, [ending, formatHmacSecret(next)], timestampSeconds);
          const verified = (key: Buffer): unknown =>
            new Library(formatHmacSecret(key)).verify(body.toString(), headers);
          expect(() => verified(next)).not.toThrow();
          if (left > 0) expect(() => verified(old)).not.toThrow();
          else expect(() => verified(old)).toThrow();
        },
      ),
      { numRuns: 50, examples: [[Buffer.alloc(32, 1), Buffer.alloc(32, 2), Buffer.from('{}'), 0]] },
    );
  });
});

describe('an ed25519 signature', () => {
  test('is verified by Node alone, also beside others, and not with another key, body, id or time', () => {
    fc.assert(
      fc.property(seeds, seeds, hmacKeys, bodies, (seed, stranger, key, body) => {
        fc.pre(!seed.equals(stranger));
        const { secret, publicKey } = formatKeyPair(seed);
        const other = formatKeyPair(stranger);
        const headers = headersOf(body, [formatHmacSecret(key), other.secret, secret]);
        expect(verifiesWithNode(publicKey, headers, body)).toBe(true);
        expect(verifiesWithNode(publicKey, headers, Buffer.concat([body, Buffer.from(' ')]))).toBe(false);
        expect(verifiesWithNode(publicKey, { ...headers, 'webhook-id': 'evt_1' }, body)).toBe(false);
        expect(verifiesWithNode(publicKey, { ...headers, 'webhook-timestamp': '1' }, body)).toBe(false);
        expect(verifiesWithNode(publicKey, headersOf(body, [other.secret]), body)).toBe(false);
      }),
      { numRuns: 50 },
    );
  });

  test('is made with the key pair of RFC 8032, test 3, for its seed', () => {
    const seed = Buffer.from('c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7', 'hex');
    const expected = 'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025';
    const { publicKey } = formatKeyPair(seed);
    expect(Buffer.from(publicKey.slice(5), 'base64').toString('hex')).toBe(expected);
  });
});

describe('a signing secret', () => {
  test('that was written is read back as the key it was', () => {
    fc.assert(
      fc.property(hmacKeys, (key) => {
        const read = parseSigningSecret(formatHmacSecret(key));
        const digest = read?.type === 'hmac' ? createHmac('sha256', read.key).digest('hex') : null;
        expect(digest).toBe(createHmac('sha256', key).digest('hex'));
      }),
    );
  });

  test('of ed25519 may leave out the public half, and signs the same', () => {
    fc.assert(
      fc.property(seeds, bodies, (seed, body) => {
        const whole = formatKeyPair(seed).secret;
        const short = `whsk_${seed.toString('base64')}`;
        expect(headersOf(body, [short], 1)).toEqual(headersOf(body, [whole], 1));
      }),
      { numRuns: 20 },
    );
  });

  const { secret, publicKey } = formatKeyPair(Buffer.alloc(32, 1));
  test.each([
    ['nothing', ''],
    ['a prefix alone', 'whsk_'],
    ['a public key', publicKey],
    ['an HMAC key as ed25519', formatHmacSecret(Buffer.alloc(24)).replace('whsec_', 'whsk_')],
    ['23 bytes', formatHmacSecret(Buffer.alloc(23))],
    ['65 bytes', formatHmacSecret(Buffer.alloc(65))],
    ['halves of two pairs', `${secret.slice(0, -6)}AAAA==`],
    ['base64 without its end', formatHmacSecret(Buffer.alloc(25)).slice(0, -1)],
    ['another prefix', `sk_${Buffer.alloc(32).toString('base64')}`],
  ])('is none: %s', (_, text) => {
    expect(parseSigningSecret(text)).toBeNull();
  });
});
