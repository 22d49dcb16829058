import type { SMTPSentMessageInfo } from 'nodemailer';
import type { AttemptResult } from '../notifier.ts';
import type { TextLimiter } from '../printable.ts';

/** The part of an attempt's result that follows from the server's reply. */
export type SmtpOutcome = Pick<AttemptResult, 'outcome' | 'smtpCode' | 'reason' | 'answer' | 'remaining'>;

/** Commands that carry the message. A refusal of any other is about the connection or our login. */
const MESSAGE_COMMANDS: ReadonlySet<string> = new Set(['MAIL FROM', 'RCPT TO', 'DATA']);

/** Permanent codes that are not about the message: a wrong state, and those that request a login or TLS. */
const NOT_ABOUT_THE_MESSAGE: ReadonlySet<number> = new Set([503, 530, 534, 535, 538]);

/**
 * Classifies a message that the server accepted. A recipient refused for now makes the attempt fail, and the next one is for
 * those alone. A recipient refused for good is only reported.
 */
export function classifyAccepted(info: SMTPSentMessageInfo, limiter: TextLimiter): SmtpOutcome {
  const refusals = (info.rejectedErrors ?? []).map(readSmtpError);
  const total = info.accepted.length + info.rejected.length;
  const [deferred] = refusals.filter(isForNow);
  const forGood = refusals.find((one) => !isForNow(one));
  const refusal = deferred ?? forGood;
  const accepted = `accepted for ${info.accepted.length} of ${total} recipients`;
  const words = [
    refusal === undefined ? 'accepted' : accepted,
    ...(deferred === undefined ? [] : [`refused for now: ${deferred.words}`]),
    ...(forGood === undefined ? [] : [`refused: ${forGood.words}`]),
  ].join('; ');
  return {
    outcome: deferred === undefined ? 'delivered' : 'failed',
    smtpCode: deferred?.code ?? leadingCode(info.response),
    reason: limiter.reason(words),
    answer: limiter.answer(refusal?.response ?? info.response),
    ...remainingOf(refusals),
  };
}

/** Classifies an error of the sending: a refusal of the message itself with a 5xx code is for good. */
export function classifyError(error: unknown, limiter: TextLimiter): SmtpOutcome {
  const refusals = rejectedOf(error).map(readSmtpError);
  const { code, command, isEnvelope, response, words } = refusals.find(isForNow) ?? readSmtpError(error);
  const isRefused =
    code === null
      ? isEnvelope
      : code >= 500 && !NOT_ABOUT_THE_MESSAGE.has(code) && MESSAGE_COMMANDS.has(command);
  return {
    outcome: isRefused ? 'rejected' : 'failed',
    smtpCode: code,
    reason: limiter.reason(words),
    answer: limiter.answer(response),
    ...remainingOf(refusals),
  };
}

/** A recipient that a server refused: for now, or for good; `words` are the server's. */
export type Refusal = { recipient: string; isForNow: boolean; words: string };

/** The recipients that the server refused where it accepted the message for others. */
export function refusalsBeside(info: SMTPSentMessageInfo): Refusal[] {
  return refusalsIn(info.rejectedErrors ?? []);
}

/** The recipients that the server refused where it refused all of them; empty for any other error. */
export function refusalsOf(error: unknown): Refusal[] {
  return refusalsIn(rejectedOf(error));
}

function refusalsIn(errors: readonly unknown[]): Refusal[] {
  return errors.map(readSmtpError).flatMap((error) => {
    const { recipient, words } = error;
    return recipient === null ? [] : [{ recipient, isForNow: isForNow(error), words }];
  });
}

function remainingOf(refusals: readonly SmtpError[]): { remaining?: string[] } {
  const remaining = refusals.filter(isForNow).flatMap(({ recipient }) => recipient ?? []);
  return remaining.length === 0 ? {} : { remaining };
}

function isForNow({ code }: SmtpError): boolean {
  return code === null || code < 500;
}

/** The refusals of single recipients, where the server refused all of them: else the message failed. */
function rejectedOf(error: unknown): unknown[] {
  if (!(error instanceof Error) || readSmtpError(error).command !== 'RCPT TO') return [];
  return 'rejectedErrors' in error && Array.isArray(error.rejectedErrors) ? error.rejectedErrors : [];
}

/** `isEnvelope`: refused by ourselves before any reply: an invalid address, or a message over the server's announced size. */
type SmtpError = {
  code: number | null;
  command: string;
  recipient: string | null;
  isEnvelope: boolean;
  response: string;
  words: string;
};

function readSmtpError(error: unknown): SmtpError {
  const known = error instanceof Error ? error : new Error('the mail could not be sent');
  const response = 'response' in known && typeof known.response === 'string' ? known.response : '';
  const name = 'code' in known ? known.code : undefined;
  const command = 'command' in known && typeof known.command === 'string' ? known.command : '';
  return {
    code: leadingCode(response),
    command,
    recipient: 'recipient' in known && typeof known.recipient === 'string' ? known.recipient : null,
    isEnvelope: response === '' && (name === 'EENVELOPE' || name === 'EMESSAGE'),
    response,
    // For a refused message the server's message suffices; otherwise the failed step is needed too.
    words: response !== '' && MESSAGE_COMMANDS.has(command) ? response : known.message,
  };
}

function leadingCode(response: string): number | null {
  const digits = /^\d{3}/.exec(response)?.[0];
  return digits === undefined ? null : Number(digits);
}
