import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { RenderedEvent } from '../../src/domain/events/event.ts';

/** A received webhook: its event, its headers, and its body as it was. */
export type Came = { event: RenderedEvent; headers: IncomingHttpHeaders; body: string };

/** A webhook consumer whose every answer the test decides; null never answers. */
export class Hook {
  readonly came: Came[] = [];
  readonly #server: Server;
  #waiting: (() => void)[] = [];
  headers: Record<string, string> = {};
  answer: (came: Came) => number | null | Promise<number | null>;

  constructor(answer: (came: Came) => number | null | Promise<number | null> = () => 204) {
    this.answer = answer;
    this.#server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const body = Buffer.concat(chunks).toString('utf8');
      const event: RenderedEvent = JSON.parse(body);
      await this.#take({ event, headers: request.headers, body }, response);
    });
  }

  async #take(came: Came, response: ServerResponse): Promise<void> {
    this.came.push(came);
    this.#wake();
    const status = await this.answer(came);
    if (status !== null) response.writeHead(status, this.headers).end();
    this.#wake();
  }

  /** A webhook counts on arrival: it may never be answered. */
  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  get ids(): string[] {
    return this.came.map(({ event }) => event.id);
  }

  async until(condition: (came: Came[]) => boolean): Promise<Came[]> {
    while (!condition(this.came)) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return this.came;
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
