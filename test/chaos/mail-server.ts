import { SMTPServer } from 'smtp-server';
import { freePort } from '../support/port.ts';
import type { Arrival } from './reckoning.ts';

/** A mail server that can stop, and restart on the same port. */
export class MailServer {
  readonly #port: number;
  #server: SMTPServer | null = null;
  readonly arrivals: Arrival[] = [];

  private constructor(port: number) {
    this.#port = port;
  }

  static async start(): Promise<MailServer> {
    const mailServer = new MailServer(await freePort());
    await mailServer.up();
    return mailServer;
  }

  get url(): string {
    return `smtp://127.0.0.1:${this.#port}`;
  }

  async up(): Promise<void> {
    const server = new SMTPServer({
      disabledCommands: ['AUTH', 'STARTTLS'],
      logger: false,
      closeTimeout: 1,
      onData: (stream, _session, done) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('end', () => {
          const mail = Buffer.concat(chunks).toString('utf8');
          const id = /^X-Intentwatch-Event: (.*)$/im.exec(mail)?.[1]?.trim() ?? '';
          this.arrivals.push({ id, subject: '', sequence: 0, atMs: Date.now() });
          done();
        });
      },
    });
    server.on('error', () => undefined);
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', () => resolve()));
    this.#server = server;
  }

  /** Stops the server and all its connections, in the middle of their dialogues. */
  async down(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
}
