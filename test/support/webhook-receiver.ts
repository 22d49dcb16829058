import type { WebhookReceiver } from '../../src/config/config.ts';
import { Secret } from '../../src/secret.ts';

/** The secret of the webhook receivers of tests, unless they choose their own. */
export const WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

/** A webhook receiver as a config gives it, on loopback, with one attempt. */
export function webhookReceiver(url: string, changes: Partial<WebhookReceiver> = {}): WebhookReceiver {
  return {
    name: 'backend',
    type: 'webhook',
    format: 'standard',
    url: new Secret(url),
    secrets: [new Secret(WEBHOOK_SECRET)],
    headers: {},
    tls: null,
    events: ['*'],
    filter: { wallets: null, chains: null, minAmount: null },
    rateLimit: null,
    timeoutMs: 120_000,
    retries: { delaysMs: [], jitter: 0 },
    concurrency: 2,
    ordering: 'none',
    disableAfterMs: 432_000_000,
    proxy: null,
    allowPrivateNetwork: true,
    allowNetworks: [],
    allowInsecure: true,
    apiNetworks: null,
    ...changes,
  };
}
