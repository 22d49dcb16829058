import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { printableAnswer } from '../../src/notifiers/printable.ts';
import { renderBody, signatureHeader } from '../../src/notifiers/webhook/webhook.ts';
import { Secret } from '../../src/secret.ts';

const secrets = fc
  .uint8Array({ minLength: 24, maxLength: 64 })
  .map((key) => `whsec_${Buffer.from(key).toString('base64')}`);

test('every secret among several verifies any event, with any texts, and no other secret does', () => {
  const texts = fc.string({ unit: 'binary' });
  const lists = fc.uniqueArray(secrets, { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(lists, secrets, fc.dictionary(texts, texts), (own, stranger, metadata) => {
      fc.pre(!own.includes(stranger));
      const event: RenderedEvent = {
        id: 'evt_1',
        type: 'intent.filled',
        timestamp: '2026-11-20T11:31:00.123Z',
        data: {
          subject: { kind: 'intent', id: 'intent:0xab' },
          sequence: 1,
          epoch: 1,
          status: 'filled',
          previousStatus: null,
          changes: [],
          record: {},
          upstreamUpdatedAt: null,
          detectionDelaySeconds: null,
          wallets: [],
          subscriptions: [],
          metadata,
        },
      };
      const body = renderBody(event, { format: 'standard', recordUrl: null });
      const timestampSeconds = Math.floor(Date.now() / 1_000);
      const signed = { id: event.id, timestampSeconds, body };
      const headers = {
        'webhook-id': event.id,
        'webhook-timestamp': String(timestampSeconds),
        'webhook-signature': signatureHeader(
          signed,
          own.map((secret) => new Secret(secret)),
        ),
      };
      for (const secret of own) {
        const verified = new Webhook(secret).verify(body.toString('utf8'), headers);
        expect(verified).toEqual(JSON.parse(JSON.stringify(event)));
      }
      expect(() => new Webhook(stranger).verify(body.toString('utf8'), headers)).toThrow();
    }),
  );
});

test('an answer of any bytes is stored as one printable line that is no longer than the bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 1_024 }), (bytes) => {
      const answer = printableAnswer(bytes);
      expect(answer).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}]/u);
      expect(answer.isWellFormed()).toBe(true);
      expect(Buffer.byteLength(answer)).toBeLessThanOrEqual(bytes.length);
    }),
  );
});
