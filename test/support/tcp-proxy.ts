import { type AddressInfo, createConnection, createServer, type Server, type Socket } from 'node:net';

/** The fate of bytes on their way: pass them, cut the connection, or swallow all further bytes, with or after them. */
export type Verdict = 'pass' | 'cut' | 'swallow' | 'swallow-after';

/** A TCP proxy in front of Redis that a test makes fail at a chosen point. */
export class TcpProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #swallowing = false;
  delayMs = 0;
  onRequest: (bytes: Buffer) => Verdict = () => 'pass';
  onReply: (bytes: Buffer) => Verdict = () => 'pass';

  constructor(target: { host: string; port: number }) {
    this.#server = createServer((client) => {
      const server = createConnection(target);
      for (const socket of [client, server]) {
        this.#sockets.add(socket);
        socket.on('error', () => undefined);
        socket.on('close', () => {
          this.#sockets.delete(socket);
          client.destroy();
          server.destroy();
        });
      }
      client.on('data', (bytes: Buffer) => this.#pass(bytes, this.onRequest, { from: client, to: server }));
      server.on('data', (bytes: Buffer) => this.#pass(bytes, this.onReply, { from: server, to: client }));
    });
  }

  #pass(bytes: Buffer, judge: (bytes: Buffer) => Verdict, way: { from: Socket; to: Socket }): void {
    if (this.#swallowing) return;
    const verdict = judge(bytes);
    if (verdict === 'pass' || verdict === 'swallow-after') this.#write(way.to, bytes, judge === this.onReply);
    if (verdict === 'cut') way.from.destroy();
    if (verdict === 'swallow' || verdict === 'swallow-after') this.#swallowing = true;
  }

  #write(to: Socket, bytes: Buffer, isReply: boolean): void {
    if (!isReply || this.delayMs === 0) to.write(bytes);
    else setTimeout(() => to.writable && to.write(bytes), this.delayMs);
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Cuts every connection; new ones are possible. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
