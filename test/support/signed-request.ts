import type { WebhookRequest } from '../../consumer/src/index.ts';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { signatureHeader } from '../../src/notifiers/webhook/webhook.ts';
import { Secret } from '../../src/secret.ts';
import { WEBHOOK_SECRET } from './webhook-receiver.ts';

/** A webhook of an event as the daemon signs it now. */
export function signedRequest(event: RenderedEvent): WebhookRequest {
  const body = Buffer.from(JSON.stringify(event));
  const timestampSeconds = Math.floor(Date.now() / 1_000);
  const content = { id: event.id, timestampSeconds, body };
  return {
    headers: {
      'webhook-id': event.id,
      'webhook-timestamp': String(timestampSeconds),
      'webhook-signature': signatureHeader(content, [new Secret(WEBHOOK_SECRET)]),
    },
    body,
  };
}
