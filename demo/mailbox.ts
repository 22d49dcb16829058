import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';

/** A local SMTP server that accepts every mail and stores its event id and its subject line. */
export class DemoMailbox {
  readonly #server: SMTPServer;
  readonly mails: { eventId: string; subject: string }[] = [];

  constructor(onMail: (mail: { eventId: string; subject: string }) => void) {
    this.#server = new SMTPServer({
      disabledCommands: ['AUTH', 'STARTTLS'],
      logger: false,
      onData: (stream, _session, done) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('end', () => {
          const text = Buffer.concat(chunks)
            .toString('utf8')
            .replace(/\r\n[ \t]+/g, ' ');
          const mail = { eventId: header(text, 'X-Intentwatch-Event'), subject: header(text, 'Subject') };
          this.mails.push(mail);
          done();
          onMail(mail);
        });
      },
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(0, '127.0.0.1', resolve);
    });
  }

  get url(): string {
    return `smtp://127.0.0.1:${(this.#server.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

function header(mail: string, name: string): string {
  return new RegExp(`^${name}: (.*)$`, 'im').exec(mail)?.[1]?.trim() ?? '';
}
