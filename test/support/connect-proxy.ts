import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

/** The answer of the proxy to a requested tunnel: it opens it, refuses it with a status, or never answers. */
export type ProxyAnswer = 'open' | 'nothing' | number;

/** A real proxy for `CONNECT` on loopback; every name resolves to loopback. */
export class ConnectProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** The requested targets, with the login of each request. */
  readonly requests: { target: string; login: string | null }[] = [];
  answer: (request: IncomingMessage) => ProxyAnswer;

  constructor(answer: (request: IncomingMessage) => ProxyAnswer = () => 'open') {
    this.answer = answer;
    this.#server = createServer();
    this.#server.on('connect', (request, socket, head) => {
      this.#serve(request, { socket: socket as Socket, head });
    });
    this.#server.on('connection', (socket) => this.#track(socket));
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket.on('error', () => undefined));
    socket.once('close', () => this.#sockets.delete(socket));
  }

  #serve(request: IncomingMessage, { socket, head }: { socket: Socket; head: Buffer }): void {
    const target = request.url ?? '';
    const login = request.headers['proxy-authorization'] ?? null;
    this.requests.push({ target, login });
    const answer = this.answer(request);
    if (answer === 'nothing') return;
    if (answer !== 'open') {
      socket.end(`HTTP/1.1 ${answer} No\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    const there = connect(Number(target.slice(target.lastIndexOf(':') + 1)), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      there.write(head);
      socket.pipe(there).pipe(socket);
    });
    this.#track(there);
    there.once('error', () => socket.destroy());
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
