import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { Arrival } from './reckoning.ts';

/** Behaviour of a receiver: correct, or one of the ways in which receivers fail. */
export type Mood = 'well' | 'hanging' | 'resetting' | 'slow' | 'failing' | 'overloaded';

export const BAD_MOODS: readonly Mood[] = ['hanging', 'resetting', 'slow', 'failing', 'overloaded'];

/** Answer time of a working consumer, so that some deliveries are under way at any time. */
const USUAL_MS = 30;

/** Some are within the timeout of a delivery, some beyond it. */
const SLOW_MS = [300, 1_000, 3_000];

/** A webhook consumer that changes its mood, and records what it accepted. */
export class MoodyReceiver {
  readonly name: string;
  readonly secret = `whsec_${randomBytes(32).toString('base64')}`;
  readonly #webhook = new Webhook(this.secret);
  readonly #server: Server;
  readonly #hanging = new Set<ServerResponse>();
  #requests = 0;
  #mood: Mood = 'well';
  /** The requests answered with 204, in order. */
  readonly arrivals: Arrival[] = [];
  readonly received: { id: string; event: RenderedEvent; atMs: number }[] = [];
  readonly forged: string[] = [];

  constructor(name: string) {
    this.name = name;
    this.#server = createServer((request, response) => void this.#take(request, response));
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hooks`;
  }

  get mood(): Mood {
    return this.#mood;
  }

  set mood(mood: Mood) {
    this.#mood = mood;
    for (const response of this.#hanging) response.destroy();
    this.#hanging.clear();
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch {
      // The daemon that sent it was killed in the middle of it.
      return;
    }
    this.#requests += 1;
    const body = Buffer.concat(chunks).toString('utf8');
    switch (this.#mood) {
      case 'hanging':
        this.#hanging.add(response);
        return;
      case 'resetting':
        response.destroy();
        return;
      case 'failing':
        response.writeHead(500).end('<h1>Internal Server Error</h1>');
        return;
      case 'overloaded':
        response.writeHead(503, { 'retry-after': '1' }).end();
        return;
      case 'slow':
        await new Promise((resolve) => setTimeout(resolve, SLOW_MS[this.#requests % SLOW_MS.length]));
        break;
      case 'well':
        await new Promise((resolve) => setTimeout(resolve, USUAL_MS));
        break;
    }
    // A daemon that did not wait, or is gone, gets no answer.
    if (response.destroyed || response.closed) return;
    this.#accept(request, response, body);
  }

  #accept(request: IncomingMessage, response: ServerResponse, body: string): void {
    const id = String(request.headers['webhook-id']);
    if (!this.#verify(request, body)) this.forged.push(id);
    const event: RenderedEvent = JSON.parse(body);
    response.writeHead(204).end();
    const { subject, sequence } = event.data;
    this.arrivals.push({ id, subject: subject.id, sequence, atMs: Date.now() });
    this.received.push({ id, event, atMs: Date.now() });
  }

  #verify(request: IncomingMessage, body: string): boolean {
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
