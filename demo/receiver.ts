import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import type { RenderedEvent } from '../src/domain/events/event.ts';

/** A received webhook. `verified` is the result of the `standardwebhooks` library for its signature. */
export type ReceivedWebhook = { id: string; verified: boolean; event: RenderedEvent };

/** A small webhook consumer: verifies every signature and answers 204. */
export class DemoReceiver {
  readonly #webhook: Webhook;
  readonly #onWebhook: (received: ReceivedWebhook) => void;
  readonly #server: Server;
  readonly received: ReceivedWebhook[] = [];

  constructor(options: { secret: string; onWebhook: (received: ReceivedWebhook) => void }) {
    this.#webhook = new Webhook(options.secret);
    this.#onWebhook = options.onWebhook;
    this.#server = createServer((request, response) => void this.#take(request, response));
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(0, '127.0.0.1', resolve);
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hooks/transfers`;
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    // The sender ended the connection within it.
    if (!request.complete) return;
    const body = Buffer.concat(chunks).toString('utf8');
    const received: ReceivedWebhook = {
      id: String(request.headers['webhook-id']),
      verified: this.#verify(body, request),
      event: JSON.parse(body),
    };
    this.received.push(received);
    response.writeHead(received.verified ? 204 : 401).end();
    this.#onWebhook(received);
  }

  #verify(body: string, request: IncomingMessage): boolean {
    try {
      this.#webhook.verify(body, {
        'webhook-id': String(request.headers['webhook-id']),
        'webhook-timestamp': String(request.headers['webhook-timestamp']),
        'webhook-signature': String(request.headers['webhook-signature']),
      });
      return true;
    } catch {
      return false;
    }
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
