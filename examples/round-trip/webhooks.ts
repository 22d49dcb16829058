import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { Webhook } from 'standardwebhooks';
import { z } from 'zod';

const eventSchema = z.object({
  id: z.string(),
  type: z.string(),
  data: z.object({
    subject: z.object({ kind: z.string(), id: z.string() }),
    sequence: z.int(),
    status: z.string().nullable(),
  }),
});

/** The members of an event that this program needs. */
export type Event = z.infer<typeof eventSchema>;

/** Takes the daemon's webhooks: verifies every signature, and gives each event once. */
export class Webhooks {
  readonly #webhook: Webhook;
  readonly #server: Server;
  readonly #seen = new Set<string>();
  readonly #onEvent: (event: Event) => void;
  readonly #onRefused: (reason: string) => void;

  constructor(options: {
    secret: string;
    onEvent: (event: Event) => void;
    onRefused: (reason: string) => void;
  }) {
    this.#webhook = new Webhook(options.secret);
    this.#onEvent = options.onEvent;
    this.#onRefused = options.onRefused;
    this.#server = createServer(async (request, response) => {
      response.writeHead(await this.#take(request)).end();
    });
  }

  /** Listens on a port of loopback. */
  async start(port: number): Promise<void> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  /** The status that a webhook is answered with. */
  async #take(request: IncomingMessage): Promise<number> {
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      // Only the bytes as they came carry the signature.
      const body = Buffer.concat(chunks);
      const names = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];
      const headers = Object.fromEntries(names.map((name) => [name, String(request.headers[name])]));
      const event = eventSchema.parse(this.#webhook.verify(body, headers));
      // The same event can come twice: it does nothing for an id that is known.
      if (!this.#seen.has(event.id)) {
        this.#seen.add(event.id);
        this.#onEvent(event);
      }
      return 204;
    } catch (error) {
      this.#onRefused(error instanceof Error ? error.message : String(error));
      return 401;
    }
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
