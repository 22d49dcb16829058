import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** A TCP server on a free loopback port with a protocol of the test; a broken socket is no error. */
export class RawServer {
  readonly #server: Server;
  readonly sockets: Socket[] = [];

  /** `serve` gets each connection, with its number from 0. */
  constructor(serve: (socket: Socket, index: number) => void) {
    this.#server = createServer((socket) => {
      socket.on('error', () => undefined);
      this.sockets.push(socket);
      serve(socket, this.sockets.length - 1);
    });
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
