import type { SMTPSentMessageInfo } from 'nodemailer';
import type { AttemptResult } from '../notifier.ts';
import { printableAnswer, printableLine } from '../printable.ts';

/** The part of an attempt's result that follows from the server's words. */
export type Verdict = Pick<AttemptResult, 'outcome' | 'smtpCode' | 'reason' | 'answer'>;

const MAX_ANSWER_BYTES = 1_024;
const MAX_REASON_LENGTH = 300;

/** The commands that carry the message; a refusal of any other is about the connection or our login. */
const MESSAGE_COMMANDS: ReadonlySet<string> = new Set(['MAIL FROM', 'RCPT TO', 'DATA']);

/** Permanent codes that say nothing about the message: wrong state, and the ones that ask for a login or for TLS. */
const NOT_ABOUT_THE_MESSAGE: ReadonlySet<number> = new Set([503, 530, 534, 535, 538]);

/**
 * What it means that the server took the message. A recipient that it refused for now makes the attempt fail, and the
 * message goes to all of them again, recognisable by its `Message-ID`; one refused for good is only told.
 */
export function classifyAccepted(info: SMTPSentMessageInfo): Verdict {
  const refusals = (info.rejectedErrors ?? []).map(readSmtpError);
  const total = info.accepted.length + info.rejected.length;
  const deferred = refusals.find(({ code }) => code === null || code < 500);
  const refusal = deferred ?? refusals[0];
  const taken = `accepted for ${info.accepted.length} of ${total} recipients`;
  const words = refusal === undefined ? 'accepted' : `${taken}; refused: ${refusal.words}`;
  return {
    outcome: deferred === undefined ? 'delivered' : 'failed',
    smtpCode: deferred?.code ?? leadingCode(info.response),
    reason: withoutAddresses(words),
    answer: keepAnswer(refusal?.response ?? info.response),
  };
}

/** What an error of the sending means: a refusal of the message itself with a 5xx code is for good. */
export function classifyError(error: unknown): Verdict {
  const { code, command, isEnvelope, response, words } = readSmtpError(error);
  const isRefused =
    code === null
      ? isEnvelope
      : code >= 500 && !NOT_ABOUT_THE_MESSAGE.has(code) && MESSAGE_COMMANDS.has(command);
  return {
    outcome: isRefused ? 'rejected' : 'failed',
    smtpCode: code,
    reason: withoutAddresses(words),
    answer: keepAnswer(response),
  };
}

/**
 * `isEnvelope`: refused by ourselves, before any word of the server, because an address cannot be sent to or the
 * message is larger than the server announced to take.
 */
type SmtpError = {
  code: number | null;
  command: string;
  isEnvelope: boolean;
  response: string;
  words: string;
};

function readSmtpError(error: unknown): SmtpError {
  const known = error instanceof Error ? error : new Error('the mail could not be sent');
  const said = 'response' in known && typeof known.response === 'string' ? known.response : '';
  const response = said.slice(0, MAX_ANSWER_BYTES);
  const name = 'code' in known ? known.code : undefined;
  const command = 'command' in known && typeof known.command === 'string' ? known.command : '';
  return {
    code: leadingCode(response),
    command,
    isEnvelope: response === '' && (name === 'EENVELOPE' || name === 'EMESSAGE'),
    response,
    // Of a message that is refused the server's words say it all; otherwise the step that failed is needed too.
    words:
      response !== '' && MESSAGE_COMMANDS.has(command) ? response : known.message.slice(0, MAX_ANSWER_BYTES),
  };
}

function leadingCode(response: string): number | null {
  const digits = /^\d{3}/.exec(response)?.[0];
  return digits === undefined ? null : Number(digits);
}

function keepAnswer(response: string): string {
  return printableAnswer(Buffer.from(response, 'utf8').subarray(0, MAX_ANSWER_BYTES));
}

/** Reasons are logged, and no log holds a mail address. */
function withoutAddresses(text: string): string {
  return printableLine(text.replace(/[^\s<>"'=:,;]+@[^\s<>"',;]+/g, '[address]'), MAX_REASON_LENGTH);
}
