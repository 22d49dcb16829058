import { type ParsedMail, simpleParser } from 'mailparser';
import { SMTPServer } from 'smtp-server';

/** The server's answer to a mail: null accepts it, a refusal does not, 'nothing' never answers. */
export type MailAnswer = { code: number; text: string } | 'nothing' | null;

/** A real SMTP server that stores every mail and answers as a test decides. */
export class Mailbox {
  readonly #server: SMTPServer;
  readonly mails: ParsedMail[] = [];
  /** The envelope recipients of each mail. */
  readonly recipients: string[][] = [];
  #waiting: (() => void)[] = [];
  /** The server's answer to a recipient: null accepts it. */
  refuse: (address: string) => { code: number; text: string } | null = () => null;
  answer: (mail: ParsedMail) => MailAnswer;

  constructor(answer: (mail: ParsedMail) => MailAnswer = () => null) {
    this.answer = answer;
    this.#server = new SMTPServer({
      disabledCommands: ['AUTH', 'STARTTLS'],
      disableReverseLookup: true,
      closeTimeout: 100,
      onRcptTo: ({ address }, _session, done) => {
        const refused = this.refuse(address);
        done(refused && Object.assign(new Error(refused.text), { responseCode: refused.code }));
      },
      onData: (stream, { envelope }, done) => {
        simpleParser(stream).then((mail) => {
          const answer = this.answer(mail);
          this.mails.push(mail);
          this.recipients.push(envelope.rcptTo.map(({ address }) => address));
          for (const wake of this.#waiting.splice(0)) wake();
          if (answer === null) done();
          else if (answer !== 'nothing')
            done(Object.assign(new Error(answer.text), { responseCode: answer.code }));
        }, done);
      },
    });
    this.#server.on('error', () => undefined);
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  get url(): string {
    const address = this.#server.server.address();
    if (address === null || typeof address === 'string') throw new Error('the server does not listen');
    return `smtp://127.0.0.1:${address.port}`;
  }

  async until(condition: (mails: ParsedMail[]) => boolean): Promise<ParsedMail[]> {
    while (!condition(this.mails)) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    return this.mails;
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

/** The ids of the events that a mail names. */
export function eventsOf(mail: ParsedMail): string[] {
  const named = mail.headers.get('x-intentwatch-event');
  return (Array.isArray(named) ? named : [named]).map(String);
}
